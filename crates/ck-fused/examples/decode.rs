//! A layer with random weights decodes tokens, once with every strategy: the bits are the same, the times are not.
//!
//!     cargo run --release -p ck-fused --example decode

use ck_fused::{
    DecodeContext, DecodeLayer, LayerError, LayerShape, LayerWeights, Norm, Projection,
    Projections, Runner, Scratch, Strategy,
};
use ck_isa::Isa;
use ck_ops::{KvCache, RopeConfig, RopeTable};
use ck_quant::{Format, Matrix};
use ck_threadpool::ThreadPool;
use std::error::Error;
use std::time::Instant;

const TOKENS: usize = 128;

fn main() -> Result<(), Box<dyn Error>> {
    // The shape of Qwen2-0.5B: embed_dim, n_heads, n_kv_heads, head_dim.
    let shape = LayerShape::new(896, 14, 2, 64)?;
    let mut random = Random(1);
    let bytes = |format: Format, rows: usize, columns: usize, random: &mut Random| {
        format.quantize(&random.numbers(rows * columns))
    };
    let q = bytes(Format::Q5_0, shape.q_dim(), shape.embed_dim(), &mut random)?;
    let k = bytes(Format::Q5_0, shape.kv_dim(), shape.embed_dim(), &mut random)?;
    let v = bytes(Format::Q8_0, shape.kv_dim(), shape.embed_dim(), &mut random)?;
    let o = bytes(Format::Q5_0, shape.embed_dim(), shape.q_dim(), &mut random)?;
    let weights = LayerWeights::new(
        Norm::new(vec![1.0; shape.embed_dim()], 1e-6),
        Projections {
            q: Projection::new(Matrix::new(Format::Q5_0, shape.q_dim(), shape.embed_dim(), &q)?)
                .with_bias(random.numbers(shape.q_dim())),
            k: Projection::new(Matrix::new(Format::Q5_0, shape.kv_dim(), shape.embed_dim(), &k)?),
            v: Projection::new(Matrix::new(Format::Q8_0, shape.kv_dim(), shape.embed_dim(), &v)?),
            o: Projection::new(Matrix::new(Format::Q5_0, shape.embed_dim(), shape.q_dim(), &o)?),
        },
    );
    // Packed once at load time; the bytes above are not needed any more.
    let layer = DecodeLayer::new(shape, weights)?.pack()?;

    let pool = ThreadPool::new(ck_threadpool::available_cpus())?;
    let serial = Runner::serial(Isa::detect());
    let mut expected = None;
    for strategy in [
        Strategy::Serial,
        Strategy::Barrier,
        Strategy::MultiDispatch,
        Strategy::Redundant,
        Strategy::Unfused,
    ] {
        let team = Runner::new(Isa::detect(), &pool).with_strategy(strategy);
        let runner = if strategy == Strategy::Serial { serial } else { team };
        let start = Instant::now();
        let hidden = decode(&layer, &runner)?;
        let time = start.elapsed() / TOKENS as u32;
        println!("{strategy:14} {time:?} a token, team of {}, {}", runner.team(), runner.isa());
        let bits: Vec<u32> = hidden.iter().map(|x| x.to_bits()).collect();
        assert_eq!(*expected.get_or_insert_with(|| bits.clone()), bits);
    }
    println!("the same bits from all of them");
    Ok(())
}

/// Decodes from an empty cache, and returns the last hidden state.
fn decode(layer: &DecodeLayer<'_>, runner: &Runner<'_>) -> Result<Vec<f32>, LayerError> {
    let shape = layer.shape();
    let rope = RopeTable::new(RopeConfig::new(shape.head_dim(), 1_000_000.0), TOKENS)?;
    let mut cache = KvCache::<f32>::with_capacity(shape.cache()?, TOKENS)?;
    let mut scratch = Scratch::for_team(shape, TOKENS, runner.team())?;
    let mut hidden = vec![0.0; shape.embed_dim()];
    for token in 0..TOKENS {
        for (i, x) in hidden.iter_mut().enumerate() {
            *x = (token as f32 + 0.1 * i as f32).sin();
        }
        let context = DecodeContext { rope: Some(&rope), cache: &mut cache, scratch: &mut scratch };
        layer.decode_in_place(runner, context, &mut hidden)?;
    }
    Ok(hidden)
}

/// Marsaglia's generator of 64 bits, shifts 13, 7 and 17.
struct Random(u64);

impl Random {
    /// Numbers between -0.05 and 0.05.
    fn numbers(&mut self, count: usize) -> Vec<f32> {
        let next = |_| {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            ((self.0 >> 40) as f32 / (1 << 24) as f32 - 0.5) * 0.1
        };
        (0..count).map(next).collect()
    }
}
