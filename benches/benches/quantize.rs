//! Quantizing activations, per level: `cargo bench -p ck-bench --bench quantize`.

use ck_bench::contender::{Contender, check};
use ck_bench::quantize::Ours;
use ck_quant::Isa;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn quantize(c: &mut Criterion) {
    for len in [576, 896, 4096] {
        let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
        for isa in Isa::available() {
            contenders.push(Box::new(Ours::new(isa, len)));
        }
        #[cfg(feature = "peer-ggml")]
        contenders.push(Box::new(ck_bench::peers::ggml::Quantize::new(len)));
        contenders[0].run(0);
        let expected = contenders[0].answer().into();
        let mut group = c.benchmark_group(format!("quantize {len}"));
        group.throughput(Throughput::Elements(len as u64));
        for contender in &mut contenders {
            check(contender.as_mut(), 0, &expected).expect("a right answer");
            group.bench_function(contender.name(), |b| b.iter(|| contender.run(0)));
        }
        group.finish();
    }
}

criterion_group!(benches, quantize);
criterion_main!(benches);
