//! Reads the attention block of a layer from a GGUF file and decodes tokens through it:
//! `cargo run --release -p ck-gguf --example decode -- [FILE [LAYER]]`. Without a file it takes the recorded
//! layers of the repository, and the hidden states that were recorded with them; `cargo xtask parity` compares the results.

use ck_fused::{DecodeContext, Runner, Scratch};
use ck_gguf::{AttentionLayer, GgufFile};
use ck_ops::{KvCache, RopeTable, rms_norm};
use ck_quant::Isa;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The most tokens that are decoded.
const TOKENS: usize = 64;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().map(PathBuf::from);
    let layer = arguments.next().map(|layer| layer.parse()).transpose()?;
    match file {
        Some(file) => decode(&file, layer),
        None => ck_testing::golden::golden_files().iter().try_for_each(|file| decode(file, None)),
    }
}

/// Decodes through layer `number` of a file; without a number, the layer that a recording is of, or 0.
fn decode(path: &Path, number: Option<usize>) -> Result<(), Box<dyn Error>> {
    // Read rather than mapped: a tool cannot promise that nobody writes to a file it was told to open.
    let bytes = std::fs::read(path)?;
    let file = GgufFile::parse(&bytes)?;
    let recorded = file.metadata().get("golden.layer")?;
    let number = number.or(recorded).unwrap_or(0);
    let layer = AttentionLayer::read(&file, number)?;
    layer.warnings.iter().for_each(|warning| eprintln!("{warning}"));

    let AttentionLayer { rope, post_norm, .. } = &layer;
    // The only copy of the weights: in panels, for speed.
    let block = layer.layer.pack()?;
    let shape = block.shape();
    println!("{}, layer {number}: {shape}", path.display());
    println!(
        "  rotation {:?} of {} elements, base {}, scaling {:?}",
        rope.pairing, rope.rot_dim, rope.base, rope.scaling
    );
    let attention = block.attention();
    println!("  scale {}, window {:?}", attention.scale(), attention.window());

    let isa = Isa::detect();
    let runner = Runner::serial(isa);
    let inputs = hidden_states(&file, shape.embed_dim())?;
    let table = RopeTable::new(rope.clone(), inputs.len())?;
    let mut cache = KvCache::<f32>::with_capacity(shape.cache()?, inputs.len())?;
    let mut scratch = Scratch::new(shape, inputs.len())?;
    let mut update = vec![0.0; shape.embed_dim()];
    let mut hidden = Vec::new();
    for input in inputs {
        let context =
            DecodeContext { rope: Some(&table), cache: &mut cache, scratch: &mut scratch };
        block.decode(&runner, context, &input, None, &mut update)?;
        if let Some(norm) = post_norm {
            rms_norm(isa, &update.clone(), &norm.gamma, norm.eps, &mut update)?;
        }
        hidden = input.iter().zip(&update).map(|(x, update)| x + update).collect();
    }
    println!("  {} tokens; the last hidden state begins with {:?}", cache.len(), &hidden[..4]);
    if let Some(recorded) = file.find("golden.output") {
        let rows = recorded.to_f32()?;
        let row = rows.chunks_exact(shape.embed_dim()).nth(cache.len() - 1);
        println!(
            "  llama.cpp's begins with {:?}",
            row.ok_or("the recording ends early")?.split_at(4).0
        );
    }
    Ok(())
}

/// The hidden states of a recording, or made-up ones.
fn hidden_states(file: &GgufFile<'_>, embed_dim: usize) -> Result<Vec<Vec<f32>>, Box<dyn Error>> {
    if let Some(tensor) = file.find("golden.input") {
        let rows = tensor.to_f32()?;
        return Ok(rows.chunks_exact(embed_dim).take(TOKENS).map(<[f32]>::to_vec).collect());
    }
    let row =
        |token| (0..embed_dim).map(|i| (((token * 31 + i) % 17) as f32 - 8.0) / 4.0).collect();
    Ok((0..TOKENS).map(row).collect())
}
