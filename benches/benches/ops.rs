//! RMSNorm, RoPE and attention, per level: `cargo bench -p ck-bench --bench ops`.

use ck_bench::attention::{Ours, case};
use ck_bench::case::Heat;
use ck_bench::contender::Contender;
use ck_bench::context::{Kv, Stored};
use ck_bench::memory::PageKind;
use ck_bench::model::MODELS;
use ck_isa::Isa;
use ck_ops::{Q8_0, rms_norm};
use ck_testing::generate::{Rng, Values};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use half::f16;
use std::hint::black_box;

fn norm(c: &mut Criterion) {
    for len in [576, 896, 4096] {
        let mut rng = Rng::new(3);
        let [x, gamma] = [(); 2].map(|()| Values::Normal.row(&mut rng, len));
        let mut y = vec![0.0; len];
        let mut group = c.benchmark_group(format!("rms_norm {len}"));
        group.throughput(Throughput::Elements(len as u64));
        for isa in Isa::available() {
            group.bench_function(isa.to_string(), |b| {
                b.iter(|| rms_norm(isa, black_box(&x), &gamma, 1e-6, &mut y).expect("finite"));
            });
        }
        group.finish();
    }
}

fn rope(c: &mut Criterion) {
    for model in &MODELS[..4] {
        let table = model.rope(1024).expect("memory");
        let mut heads = Values::Normal.row(&mut Rng::new(5), model.shape().q_dim());
        let mut group = c.benchmark_group(format!("rope {}", model.name));
        group.throughput(Throughput::Elements(heads.len() as u64));
        for isa in Isa::available() {
            // A rotation keeps lengths, so that the same heads can be turned again and again.
            group.bench_function(isa.to_string(), |b| {
                b.iter(|| table.apply(isa, 1000, black_box(&mut heads)).expect("finite"));
            });
        }
        group.finish();
    }
}

fn attention(c: &mut Criterion) {
    for model in MODELS {
        let stored = Stored::new(model.shape(), 1024);
        for kv in [Kv::F32, Kv::F16, Kv::Q8_0] {
            let case = case(model, 1024, kv, Heat::Hot);
            let mut group = c.benchmark_group(case.name());
            group.throughput(Throughput::Elements(case.work.f32_macs as u64));
            for isa in Isa::available() {
                let mut ours: Box<dyn Contender> = match kv {
                    Kv::F32 => Box::new(
                        Ours::<f32>::new(model, &stored, 1, isa, PageKind::Large).expect("memory"),
                    ),
                    Kv::F16 => Box::new(
                        Ours::<f16>::new(model, &stored, 1, isa, PageKind::Large).expect("memory"),
                    ),
                    Kv::Q8_0 => Box::new(
                        Ours::<Q8_0>::new(model, &stored, 1, isa, PageKind::Large).expect("memory"),
                    ),
                };
                group.bench_function(isa.to_string(), |b| b.iter(|| ours.run(0)));
            }
            group.finish();
        }
    }
}

criterion_group!(benches, norm, rope, attention);
criterion_main!(benches);
