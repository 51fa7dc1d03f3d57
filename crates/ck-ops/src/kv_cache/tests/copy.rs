//! Taking over the beginning of another cache.

use super::{contents, fill, shape};
use crate::OpError;
use crate::kv_cache::{CHUNK, CacheElement, KvCache, Q8_0};
use half::f16;

fn copies_are_what_was_stored<E: CacheElement>(head_dim: usize) {
    let mut source = KvCache::<E>::with_capacity(shape(2, head_dim), 7).unwrap();
    source.reserve(2 * CHUNK).unwrap(); // a second arena
    fill(&mut source, 2 * CHUNK);
    let all = contents(&source);
    for positions in [0, 1, 16, 17, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK] {
        let mut other = KvCache::<E>::with_capacity(shape(2, head_dim), 2 * CHUNK + 3).unwrap();
        fill(&mut other, 5);
        other.copy_prefix(&source, positions).unwrap();
        assert_eq!((other.len(), other.capacity()), (positions, 2 * CHUNK + 3));
        assert_eq!(contents(&other), all[..positions * 4 * head_dim], "{}", E::NAME);

        // What follows is the caller's.
        fill(&mut other, 3);
        let mut longer = KvCache::<E>::with_capacity(shape(2, head_dim), positions + 3).unwrap();
        fill(&mut longer, positions + 3);
        assert_eq!(contents(&other), contents(&longer));
    }
    assert_eq!(contents(&source), all);
}

#[test]
fn a_copied_prefix_is_what_was_stored_and_can_be_continued() {
    copies_are_what_was_stored::<f32>(6);
    copies_are_what_was_stored::<f16>(34);
    copies_are_what_was_stored::<Q8_0>(64);
}

#[test]
fn copies_that_do_not_fit_are_refused_and_change_nothing() {
    let mut source = KvCache::<f32>::with_capacity(shape(2, 4), 20).unwrap();
    fill(&mut source, 20);
    let mut cache = KvCache::<f32>::with_capacity(shape(2, 4), 10).unwrap();
    fill(&mut cache, 4);
    let before = contents(&cache);
    let full = OpError::CacheFull { capacity: 10 };
    assert_eq!(cache.copy_prefix(&source, 11), Err(full));
    let mut exact = KvCache::<f32>::with_capacity(shape(2, 4), 10).unwrap();
    assert_eq!(exact.copy_prefix(&source, 10), Ok(()));
    let missing = |position| Err(OpError::NotStored { position, len: 20 });
    assert_eq!(cache.copy_prefix(&source, 21), missing(20));
    assert_eq!(cache.copy_prefix(&source, usize::MAX), missing(usize::MAX - 1));
    for (kv_heads, head_dim) in [(1, 4), (2, 6), (4, 2), (1, 8)] {
        let other = KvCache::<f32>::with_capacity(shape(kv_heads, head_dim), 20).unwrap();
        assert!(matches!(cache.copy_prefix(&other, 0), Err(OpError::Shape { .. })));
    }
    assert_eq!(contents(&cache), before);
}
