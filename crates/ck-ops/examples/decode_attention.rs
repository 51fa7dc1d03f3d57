//! Grouped-query attention token by token: rotate, attend to everything so far, then store.
//!
//!     cargo run -p ck-ops --example decode_attention

use ck_isa::Isa;
use ck_ops::{
    AttendScratch, Attention, CacheShape, KvCache, NewPosition, OpError, RopeConfig, RopeTable,
    flash_decode, rms_norm,
};

const HEADS: usize = 8;
const KV_HEADS: usize = 2;
const HEAD_DIM: usize = 64;
const TOKENS: usize = 600;

fn main() -> Result<(), OpError> {
    let isa = Isa::detect();
    // Each of the two KV heads serves four query heads, which look back 512 positions at most.
    let attention = Attention::new(HEADS, KV_HEADS, HEAD_DIM)?.with_window(512)?;
    let shape = CacheShape::new(KV_HEADS, HEAD_DIM)?;
    let rope = RopeTable::new(RopeConfig::new(HEAD_DIM, 10_000.0), TOKENS)?;
    let mut cache = KvCache::<f32>::with_capacity(shape, TOKENS)?;
    let mut new = NewPosition::new(shape)?;
    let mut scratch = AttendScratch::new(&attention)?;
    let mut out = [0.0; HEADS * HEAD_DIM];

    for token in 0..TOKENS {
        let raw = wave(token, HEADS * HEAD_DIM);
        let mut q = [0.0; HEADS * HEAD_DIM];
        rms_norm(isa, &raw, &[1.0; HEADS * HEAD_DIM], 1e-6, &mut q)?;
        let (mut k, v) = (wave(token + 1, KV_HEADS * HEAD_DIM), wave(token, KV_HEADS * HEAD_DIM));
        rope.apply(isa, cache.len(), &mut q)?;
        rope.apply(isa, cache.len(), &mut k)?;
        new.set(isa, &k, &v)?;
        flash_decode(isa, &attention, &cache, Some(&new), &q, &mut scratch, &mut out)?;
        cache.append(&new)?;
        // An average of values lies among them.
        assert!(out.iter().all(|y| y.abs() <= 1.0));
    }
    println!(
        "{} positions attended with level {isa}; last output {:.4?} ...",
        cache.len(),
        &out[..4]
    );

    // The position is the cache's length, so there is none beyond its end.
    let full = cache.append(&new).unwrap_err();
    println!("one more: {full}");
    // A conversation may go back.
    cache.truncate(100);
    assert_eq!(cache.len(), 100);
    Ok(())
}

/// Numbers between -1 and 1 that differ from token to token.
fn wave(token: usize, len: usize) -> Vec<f32> {
    (0..len).map(|i| (0.3 * token as f32 + 0.7 * i as f32).sin()).collect()
}
