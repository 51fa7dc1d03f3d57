//! The whole attention block, hot, per strategy, on all CPUs: `cargo bench -p ck-bench --bench layer`.

use ck_bench::case::Heat;
use ck_bench::contender::{Contender, check};
use ck_bench::context::{Kv, Stored};
use ck_bench::layer::{Caches, Ours, Packed, case, expected};
use ck_bench::memory::PageKind;
use ck_bench::model::{LayerData, MODELS};
use ck_fused::Strategy;
use ck_isa::Isa;
use ck_threadpool::ThreadPool;
use criterion::{Criterion, criterion_group, criterion_main};
use std::cell::RefCell;

/// Positions that the token attends to.
const POSITIONS: usize = 128;

fn layer(c: &mut Criterion) {
    let pool = ThreadPool::new(ck_threadpool::available_cpus()).expect("threads");
    for model in &MODELS[..4] {
        let data = LayerData::new(*model).expect("memory");
        let packed = Packed::new(&data, 1, PageKind::Large).expect("memory");
        let stored = Stored::new(model.shape(), POSITIONS - 1);
        let caches = RefCell::new(
            Caches::<f32>::new(*model, &stored, 1, Kv::F32, PageKind::Large).expect("memory"),
        );
        let expected = expected::<f32>(&data, &stored).expect("memory");
        let case = case(*model, POSITIONS, Heat::Hot, pool.threads());
        let mut group = c.benchmark_group(case.name());
        for &strategy in Strategy::ALL {
            let how = (Isa::detect(), strategy);
            let mut ours = Ours::new(&data, &packed, &caches, how, &pool).expect("memory");
            check(&mut ours, 0, &expected).expect("a right answer");
            group.bench_function(strategy.name(), |b| b.iter(|| ours.run(0)));
        }
        group.finish();
    }
}

criterion_group!(benches, layer);
criterion_main!(benches);
