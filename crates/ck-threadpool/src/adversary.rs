//! Programs that safe code might try and that must not compile. Only doc tests see this file; the first
//! example of each item compiles, so that the second fails for the line that differs.

/// A handle kept beyond its dispatch could stand for a member that no longer takes part.
///
/// ```
/// # use ck_threadpool::{Team, ThreadPool};
/// # use std::sync::Mutex;
/// let pool = ThreadPool::new(2).unwrap();
/// let kept = Mutex::new(None);
/// pool.run(|team| *kept.lock().unwrap() = Some(team.index()));
/// ```
///
/// ```compile_fail,E0277
/// # use ck_threadpool::{Team, ThreadPool};
/// # use std::sync::Mutex;
/// let pool = ThreadPool::new(2).unwrap();
/// let kept = Mutex::new(None);
/// pool.run(|team| *kept.lock().unwrap() = Some(team));
/// ```
struct KeepsAHandle;

/// A handle on another thread would be used by two members at once.
///
/// ```
/// # use ck_threadpool::{Team, ThreadPool};
/// let pool = ThreadPool::new(2).unwrap();
/// pool.run(|team| {
///     let index = team.index();
///     std::thread::scope(|scope| drop(scope.spawn(|| index + 1)));
/// });
/// ```
///
/// ```compile_fail,E0277
/// # use ck_threadpool::{Team, ThreadPool};
/// let pool = ThreadPool::new(2).unwrap();
/// pool.run(|team| {
///     std::thread::scope(|scope| drop(scope.spawn(|| team.index() + 1)));
/// });
/// ```
struct LendsAHandle;

/// Handles exchanged between two dispatches would take each other's shares.
///
/// ```
/// # use ck_threadpool::solo;
/// solo(|outer| solo(|inner| assert_eq!(outer.index(), inner.index())));
/// ```
///
/// ```compile_fail
/// # use ck_threadpool::solo;
/// solo(|outer| solo(|inner| std::mem::swap(outer, inner)));
/// ```
struct SwapsHandles;

/// A part kept beyond its dispatch would be written while the slice is free again.
///
/// ```
/// # use ck_threadpool::{SharedSlice, ThreadPool};
/// # use std::sync::Mutex;
/// let pool = ThreadPool::new(2).unwrap();
/// let mut data = [0; 8];
/// let kept = Mutex::new(None);
/// let shared = SharedSlice::new(&mut data);
/// pool.run(|team| *kept.lock().unwrap() = Some(shared.part(team).len()));
/// ```
///
/// ```compile_fail,E0521
/// # use ck_threadpool::{SharedSlice, ThreadPool};
/// # use std::sync::Mutex;
/// let pool = ThreadPool::new(2).unwrap();
/// let mut data = [0; 8];
/// let kept = Mutex::new(None);
/// let shared = SharedSlice::new(&mut data);
/// pool.run(|team| *kept.lock().unwrap() = Some(shared.part(team)));
/// ```
struct KeepsAPart;

/// A slice that is shared belongs to the dispatch alone.
///
/// ```
/// # use ck_threadpool::{SharedSlice, ThreadPool};
/// let pool = ThreadPool::new(2).unwrap();
/// let mut data = [0; 8];
/// let shared = SharedSlice::new(&mut data);
/// pool.run(|team| shared.part(team).fill(1));
/// data[0] = 2;
/// ```
///
/// ```compile_fail,E0506
/// # use ck_threadpool::{SharedSlice, ThreadPool};
/// let pool = ThreadPool::new(2).unwrap();
/// let mut data = [0; 8];
/// let shared = SharedSlice::new(&mut data);
/// data[0] = 2;
/// pool.run(|team| shared.part(team).fill(1));
/// ```
struct WritesAroundAShare;

/// Elements that may not go to another thread do not.
///
/// ```
/// # use ck_threadpool::{SharedSlice, ThreadPool};
/// # use std::sync::Arc;
/// let pool = ThreadPool::new(2).unwrap();
/// let mut data = vec![Arc::new(1); 8];
/// let shared = SharedSlice::new(&mut data);
/// pool.run(|team| shared.part(team).fill(Arc::new(2)));
/// ```
///
/// ```compile_fail,E0277
/// # use ck_threadpool::{SharedSlice, ThreadPool};
/// # use std::rc::Rc;
/// let pool = ThreadPool::new(2).unwrap();
/// let mut data = vec![Rc::new(1); 8];
/// let shared = SharedSlice::new(&mut data);
/// pool.run(|team| shared.part(team).fill(Rc::new(2)));
/// ```
struct SharesCountsThatAreNotAtomic;

/// Elements that may go to another thread, but not be seen by two, are not read by all.
///
/// ```
/// # use ck_threadpool::{SharedSlice, ThreadPool};
/// let pool = ThreadPool::new(2).unwrap();
/// let mut data = vec![1; 8];
/// let shared = SharedSlice::new(&mut data);
/// pool.run(|team| assert_eq!(shared.read(team).len(), 8));
/// ```
///
/// ```compile_fail,E0277
/// # use ck_threadpool::{SharedSlice, ThreadPool};
/// # use std::cell::Cell;
/// let pool = ThreadPool::new(2).unwrap();
/// let mut data = vec![Cell::new(1); 8];
/// let shared = SharedSlice::new(&mut data);
/// pool.run(|team| assert_eq!(shared.read(team).len(), 8));
/// ```
struct ReadsCellsTogether;
