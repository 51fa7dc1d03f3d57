//! A long prompt is decoded once, its cache saved to a file, and two answers go on from what the file holds: with the bits
//! of a cache that was never saved.
//!
//!     cargo run --release -p ck-fused --example long_context [-- FILE]
//!
//! Without a file it takes one in the folder for temporary files, and removes it.

use ck_fused::{
    DecodeContext, DecodeLayer, LayerError, LayerShape, LayerWeights, Norm, Projection,
    Projections, Runner, Scratch,
};
use ck_isa::Isa;
use ck_ops::{KvCache, RopeConfig, RopeScaling, RopeTable, Yarn};
use ck_quant::{Format, Matrix};
use ck_threadpool::ThreadPool;
use half::f16;
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

/// Positions of the prompt and of an answer.
const PROMPT: usize = 4096;
const ANSWER: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let path = given.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("ck-long-context-{}.cache", std::process::id()))
    });

    // The shape of Qwen2-0.5B, of made-up weights: embed_dim, n_heads, n_kv_heads, head_dim.
    let shape = LayerShape::new(896, 14, 2, 64)?;
    let bytes = Format::Q8_0.quantize(&wave(896 * 896, 0.03))?;
    let projection = |rows: usize| {
        Matrix::new(Format::Q8_0, rows, 896, &bytes[..rows * 896 / 32 * 34]).map(Projection::new)
    };
    let weights = LayerWeights::new(
        Norm::new(vec![1.0; 896], 1e-6),
        Projections {
            q: projection(shape.q_dim())?,
            k: projection(shape.kv_dim())?,
            v: projection(shape.kv_dim())?,
            o: projection(896)?,
        },
    );
    let layer = DecodeLayer::new(shape, weights)?.pack()?;

    // A model trained on 2048 positions, stretched to twice as many and some.
    let scaling = RopeScaling::Yarn(Yarn::new(2.5, 2048));
    let rope = RopeConfig::new(shape.head_dim(), 1e6).with_scaling(scaling);
    let positions = PROMPT + ANSWER;
    let pool = ThreadPool::new(ck_threadpool::available_cpus())?;
    let runner = Runner::new(Isa::detect(), &pool);
    let mut decoder = Decoder {
        runner,
        rope: RopeTable::new(rope, positions)?,
        scratch: Scratch::for_team(shape, positions, runner.team())?,
        layer,
    };

    let mut cache = KvCache::<f16>::with_capacity(shape.cache()?, positions)?;
    let start = Instant::now();
    decoder.decode(&mut cache, 0..PROMPT)?;
    println!("prompt: {PROMPT} positions decoded in {:.0?}", start.elapsed());

    let start = Instant::now();
    let mut file = BufWriter::new(File::create(&path)?);
    cache.write_to(&mut file)?;
    file.flush()?;
    let megabytes = std::fs::metadata(&path)?.len() as f64 / 1e6;
    println!("saved:  {megabytes:.1} MB in {:.1?}, {}", start.elapsed(), path.display());

    // What comes back is checked: type, shape, finite numbers, checksum.
    let start = Instant::now();
    let file = BufReader::new(File::open(&path)?);
    let mut loaded = KvCache::<f16>::read_from(shape.cache()?, positions, file)?;
    println!("loaded: {} positions in {:.1?}", loaded.len(), start.elapsed());

    for (name, first) in [("one", 100_000), ("another", 200_000)] {
        let tokens = first..first + ANSWER;
        let never_saved = decoder.decode(&mut cache, tokens.clone())?;
        let answer = decoder.decode(&mut loaded, tokens)?;
        assert_eq!(never_saved.map(f32::to_bits), answer.map(f32::to_bits));
        println!("{name} answer of {ANSWER} tokens: the bits of a cache that was never saved");
        // Back to the end of the prompt, for the next one.
        cache.truncate(PROMPT);
        loaded.truncate(PROMPT);
    }
    if given.is_none() {
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

/// What stays the same from token to token.
struct Decoder<'a> {
    layer: DecodeLayer<'a>,
    runner: Runner<'a>,
    rope: RopeTable,
    scratch: Scratch<f16>,
}

impl Decoder<'_> {
    /// Decodes tokens behind what the cache holds, and returns the last hidden state.
    fn decode(
        &mut self,
        cache: &mut KvCache<f16>,
        tokens: std::ops::Range<usize>,
    ) -> Result<[f32; 896], LayerError> {
        let mut hidden = [0.0; 896];
        for token in tokens {
            // In the place of an embedding.
            hidden.copy_from_slice(&wave(896, 1.0 + token as f32 * 0.001));
            let context =
                DecodeContext { rope: Some(&self.rope), cache, scratch: &mut self.scratch };
            self.layer.decode_in_place(&self.runner, context, &mut hidden)?;
        }
        Ok(hidden)
    }
}

/// Numbers between -1 and 1.
fn wave(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}
