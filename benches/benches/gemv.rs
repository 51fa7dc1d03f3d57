//! Matrix times vector, hot, per level and form: `cargo bench -p ck-bench --bench gemv`.

use ck_bench::contender::{Contender, check};
use ck_bench::gemv::{Case, Ours};
use ck_bench::memory::{Copies, PageKind, ReadLoop};
use ck_quant::{Format, Isa, PackedMatrix};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn gemv(c: &mut Criterion) {
    for format in [Format::Q5_0, Format::Q8_0] {
        for (rows, columns) in [(896, 896), (2048, 2048), (4096, 4096)] {
            let case = Case::new(format, rows, columns);
            let copies = Copies::new(&case.bytes, 1, PageKind::Large);
            let packed = [PackedMatrix::pack(case.matrix(copies.get(0))).expect("memory")];
            let mut contenders: Vec<Box<dyn Contender + '_>> = Vec::new();
            for isa in Isa::available() {
                contenders.push(Box::new(Ours::packed(&case, isa, &packed, PageKind::Large)));
                contenders.push(Box::new(Ours::rows(&case, isa, &copies, 1)));
            }
            contenders.push(Box::new(ReadLoop::new(&copies, Isa::detect())));
            #[cfg(feature = "peer-ggml")]
            contenders.push(Box::new(ck_bench::peers::ggml::Gemv::new(&case, &copies)));
            #[cfg(feature = "peer-candle")]
            contenders.push(Box::new(ck_bench::peers::candle::Gemv::new(&case).expect("candle")));
            let expected = case.expected().into();
            let mut group = c.benchmark_group(case.name(false));
            group.throughput(Throughput::Bytes(case.bytes.len() as u64));
            for contender in &mut contenders {
                check(contender.as_mut(), 0, &expected).expect("a right answer");
                group.bench_function(contender.name(), |b| b.iter(|| contender.run(0)));
            }
            group.finish();
        }
    }
}

criterion_group!(benches, gemv);
criterion_main!(benches);
