//! Thread pools and barriers under criterion, the contenders of `ck_bench::pool`.
//!
//! For comparing two versions of one contender. Comparing contenders is what the interleaved runner
//! (`--bin pool`) is for.

use ck_bench::pool::cases;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn pools(criterion: &mut Criterion) {
    for case in cases().into_iter().filter(|case| !case.busy_host) {
        let mut group = criterion.benchmark_group(format!("{}/{}", case.name, case.threads));
        for (contender, setup) in &case.contenders {
            let id = BenchmarkId::from_parameter(contender);
            let mut session = setup(case.threads);
            group.bench_function(id, |bencher| {
                bencher.iter_custom(|ops| {
                    let ops = u32::try_from(ops).expect("criterion asks for fewer operations");
                    session(ops)
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, pools);
criterion_main!(benches);
