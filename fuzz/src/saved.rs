//! Bytes as saved caches: what is accepted is written back as it was, and everything else is an error.

use arbitrary::{Arbitrary, Result, Unstructured};
use ck_isa::Isa;
use ck_ops::{CacheElement, CacheShape, KvCache, NewPosition, Q8_0};
use ck_testing::generate::{Rng, Values};
use half::f16;

/// Reads the bytes as a saved cache, of the element type and the heads that they say: as they are, or as
/// changes of a good one whose checksum is then made good again.
///
/// # Panics
///
/// If reading panics, or what was read is written as other bytes.
pub fn check(bytes: &[u8]) {
    // Bytes that end early end the sequence.
    let mut input = Unstructured::new(bytes);
    let _ = match input.int_in_range(0..=2) {
        Ok(1) => run::<f16>(&mut input),
        Ok(2) => run::<Q8_0>(&mut input),
        _ => run::<f32>(&mut input),
    };
}

fn run<E: CacheElement>(input: &mut Unstructured<'_>) -> Result<()> {
    let shape = CacheShape::new(input.int_in_range(1..=2)?, 32).unwrap();
    let capacity = input.int_in_range(0..=300)?;
    if bool::arbitrary(input)? {
        read::<E>(shape, capacity, input.bytes(input.len())?);
        return Ok(());
    }
    let mut bytes = Vec::new();
    good::<E>(shape, input.int_in_range(0..=5)?).write_to(&mut bytes).unwrap();
    for _ in 0..input.int_in_range(0..=4)? {
        let index = input.choose_index(bytes.len())?;
        bytes[index] = u8::arbitrary(input)?;
    }
    if bool::arbitrary(input)? {
        let end = bytes.len() - 4;
        let sum = crc32fast::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum.to_le_bytes());
    }
    bytes.truncate(bytes.len() - usize::from(u8::arbitrary(input)?).min(bytes.len()));
    read::<E>(shape, capacity, &bytes);
    Ok(())
}

/// A cache that can be saved.
fn good<E: CacheElement>(shape: CacheShape, positions: usize) -> KvCache<E> {
    let mut cache = KvCache::with_capacity(shape, positions).unwrap();
    let (mut new, mut rng) = (NewPosition::new(shape).unwrap(), Rng::new(1));
    for _ in 0..positions {
        let row = Values::Normal.row(&mut rng, shape.n_kv_heads() * shape.head_dim());
        new.set(Isa::detect(), &row, &row).unwrap();
        cache.append(&new).unwrap();
    }
    cache
}

fn read<E: CacheElement>(shape: CacheShape, capacity: usize, bytes: &[u8]) {
    let mut rest = bytes;
    let Ok(cache) = KvCache::<E>::read_from(shape, capacity, &mut rest) else { return };
    assert!(cache.len() <= capacity && cache.capacity() == capacity);
    let mut again = Vec::new();
    cache.write_to(&mut again).unwrap();
    assert_eq!(again, bytes[..bytes.len() - rest.len()]);
    let mut row = vec![0.0; shape.head_dim()];
    for position in 0..cache.len() {
        for head in 0..shape.n_kv_heads() {
            cache.key(head, position, &mut row).unwrap();
            assert!(row.iter().all(|x| x.is_finite()));
            cache.value(head, position, &mut row).unwrap();
            assert!(row.iter().all(|x| x.is_finite()));
        }
    }
}
