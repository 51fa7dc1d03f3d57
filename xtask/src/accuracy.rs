//! `cargo xtask accuracy`: how far attention is from the f64 oracle, for every type of cache and many lengths.

use anyhow::Result;
use ck_isa::Isa;
use ck_ops::{AttendScratch, CacheElement, KvCache, NewPosition, Q8_0, flash_decode};
use ck_testing::generate::{Rng, Values};
use ck_testing::oracle::{Attention, CacheRounding, Rejected, widen};
use half::f16;
use std::process::ExitCode;

/// The heads of Qwen2-0.5B that share one KV head.
const HEADS: usize = 7;

/// Their dimension.
const HEAD_DIM: usize = 64;

/// Arguments of `cargo xtask accuracy`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Context lengths, as a comma list.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "1,16,256,1024,4096,16384,65536,131072"
    )]
    ctx: Vec<usize>,
}

/// Prints the table of docs/numerics.md.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut lengths = args.ctx.clone();
    lengths.sort_unstable();
    anyhow::ensure!(
        lengths.first().is_some_and(|first| *first > 0),
        "expected contexts of at least 1 position, found 0"
    );
    let history = History::new(lengths[lengths.len() - 1])?;
    let columns = [
        history.errors::<f32>(&lengths, CacheRounding::None)?,
        history.errors::<f16>(&lengths, CacheRounding::F16)?,
        history.errors::<Q8_0>(&lengths, CacheRounding::Q8_0)?,
    ];
    println!("| positions | f32 | f16 | its arithmetic | q8_0 | its arithmetic |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    for (row, positions) in lengths.iter().enumerate() {
        let [f32_errors, f16_errors, q8_0_errors] = columns.each_ref().map(|column| column[row]);
        println!(
            "| {positions} | {:.1e} | {:.1e} | {:.1e} | {:.1e} | {:.1e} |",
            f32_errors.in_all,
            f16_errors.in_all,
            f16_errors.arithmetic,
            q8_0_errors.in_all,
            q8_0_errors.arithmetic,
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Random keys, values and queries.
struct History {
    attention: Attention,
    q: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// The largest errors, as parts of the largest number of a result.
#[derive(Clone, Copy)]
struct Errors {
    /// Beside attention over what was to be stored.
    in_all: f64,
    /// Beside attention over what was stored.
    arithmetic: f64,
}

impl History {
    fn new(positions: usize) -> Result<Self, Rejected> {
        // A generator for each, so that a position has the same numbers however many follow it.
        let rows = |seed, n: usize| Values::Normal.row(&mut Rng::new(seed), n * HEAD_DIM);
        let (q, keys, values) = (rows(1, HEADS), rows(2, positions), rows(3, positions));
        Ok(Self { attention: Attention::new(HEADS, 1, HEAD_DIM)?, q, keys, values })
    }

    /// The errors at each of the lengths, which ascend.
    fn errors<E: CacheElement>(
        &self,
        lengths: &[usize],
        rounding: CacheRounding,
    ) -> Result<Vec<Errors>> {
        let (q, exact) = (widen(&self.q), [widen(&self.keys), widen(&self.values)]);
        let round = |rows: &Vec<f64>| rounding.round(rows);
        let rounded = [round(&exact[0])?, round(&exact[1])?];
        let attention = ck_ops::Attention::new(HEADS, 1, HEAD_DIM)?;
        let positions = self.keys.len() / HEAD_DIM;
        let mut cache = KvCache::<E>::with_capacity(attention.shape(), positions)?;
        let mut new = NewPosition::new(attention.shape())?;
        let mut scratch = AttendScratch::new(&attention)?;
        let mut out = vec![f32::NAN; self.q.len()];
        let mut errors = Vec::new();
        for &positions in lengths {
            for row in (cache.len()..positions).map(|p| p * HEAD_DIM..(p + 1) * HEAD_DIM) {
                new.set(Isa::detect(), &self.keys[row.clone()], &self.values[row])?;
                cache.append(&new)?;
            }
            flash_decode(Isa::detect(), &attention, &cache, None, &self.q, &mut scratch, &mut out)?;
            let error = |[keys, values]: &[Vec<f64>; 2]| {
                let stored = ..positions * HEAD_DIM;
                let right = self.attention.attend(&q, &keys[stored], &values[stored]);
                let off = out.iter().zip(&right).map(|(got, right)| f64::from(*got) - right);
                largest(off) / largest(right.iter().copied())
            };
            errors.push(Errors { in_all: error(&exact), arithmetic: error(&rounded) });
        }
        Ok(errors)
    }
}

fn largest(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |largest, x| largest.max(x.abs()))
}
