//! Caches as bytes.

use super::{contents, fill, shape};
use crate::kv_cache::{
    CHUNK, CacheElement, CacheShape, KvCache, NewPosition, Q8_0, SavedCacheError, SavedPart,
};
use ck_isa::Isa;
use ck_testing::generate::{Rng, Values};
use half::f16;
use proptest::prelude::*;

/// A cache of random rows.
fn random<E: CacheElement>(shape: CacheShape, positions: usize, seed: u64) -> KvCache<E> {
    let mut cache = KvCache::with_capacity(shape, positions).unwrap();
    let (mut new, mut rng) = (NewPosition::new(shape).unwrap(), Rng::new(seed));
    let width = shape.n_kv_heads() * shape.head_dim();
    for _ in 0..positions {
        let [keys, values] = [(); 2].map(|()| Values::Normal.row(&mut rng, width));
        new.set(Isa::detect(), &keys, &values).unwrap();
        cache.append(&new).unwrap();
    }
    cache
}

fn saved<E: CacheElement>(cache: &KvCache<E>) -> Vec<u8> {
    let mut bytes = Vec::new();
    cache.write_to(&mut bytes).unwrap();
    bytes
}

fn load<E: CacheElement>(
    shape: CacheShape,
    capacity: usize,
    bytes: &[u8],
) -> Result<KvCache<E>, SavedCacheError> {
    KvCache::read_from(shape, capacity, bytes)
}

fn check_round_trip<E: CacheElement>(shape: CacheShape, positions: usize) {
    let cache = random::<E>(shape, positions, 3);
    let bytes = saved(&cache);
    let again = load::<E>(shape, positions + 9, &bytes).unwrap();
    assert_eq!((again.len(), again.capacity()), (positions, positions + 9));
    ck_testing::compare::assert_bits_eq(E::NAME, &contents(&again), &contents(&cache));
    assert_eq!(saved(&again), bytes);
}

#[test]
fn what_is_read_is_what_was_written() {
    for positions in [0, 1, 15, 17, CHUNK - 1, CHUNK, CHUNK + 1] {
        check_round_trip::<f32>(shape(3, 6), positions);
        check_round_trip::<f16>(shape(2, 34), positions);
        check_round_trip::<Q8_0>(shape(2, 96), positions);
    }
}

// The layout of docs/formats.md, byte by byte.
#[test]
fn the_bytes_are_the_documented_ones() {
    let mut cache = KvCache::<f16>::with_capacity(shape(2, 4), 600).unwrap();
    fill(&mut cache, 2);
    let mut expected = b"ck cache".to_vec();
    expected.extend([1, 0, 0, 0, 1, 0, 0, 0]);
    for number in [2u64, 4, 2] {
        expected.extend(number.to_le_bytes());
    }
    for number in [0, 1000, 10, 1010, 1, 1001, 11, 1011] {
        expected.extend(f16::from_f32(number as f32).to_le_bytes().repeat(4));
    }
    expected.extend(crc32(&expected).to_le_bytes());
    assert_eq!(saved(&cache), expected);

    let mut cache = KvCache::<Q8_0>::with_capacity(shape(1, 32), 1).unwrap();
    let mut new = NewPosition::new(shape(1, 32)).unwrap();
    let mut key = [2.0; 32];
    key[31] = -254.0;
    new.set(Isa::detect(), &key, &[0.0; 32]).unwrap();
    cache.append(&new).unwrap();
    let mut block = vec![0x00, 0x40]; // 2.0
    block.extend([1; 31]);
    block.push(0x81); // -127
    block.extend([0; 34]);
    assert_eq!(saved(&cache)[40..108], block);
}

/// CRC-32 by its definition, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let shift = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| shift(sum)))
}

#[test]
fn caches_one_after_the_other_are_read_one_by_one() {
    let (a, b) = (random::<f32>(shape(1, 4), 3, 1), random::<f16>(shape(2, 8), 5, 2));
    let bytes = [saved(&a), saved(&b)].concat();
    let mut rest = &bytes[..];
    let first = KvCache::<f32>::read_from(shape(1, 4), 3, &mut rest).unwrap();
    let second = KvCache::<f16>::read_from(shape(2, 8), 5, &mut rest).unwrap();
    assert_eq!((contents(&first), contents(&second)), (contents(&a), contents(&b)));
    assert!(rest.is_empty());
}

#[test]
fn bytes_that_end_early_are_refused() {
    fn check<E: CacheElement>(row: usize) {
        let bytes = saved(&random::<E>(shape(1, 32), 3, 4));
        assert_eq!(bytes.len(), 40 + 3 * row + 4);
        for len in 0..bytes.len() {
            let expected = match len {
                0..40 => SavedPart::Header,
                _ if len < 40 + 3 * row => SavedPart::Position((len - 40) / row),
                _ => SavedPart::Checksum,
            };
            match load::<E>(shape(1, 32), 3, &bytes[..len]) {
                Err(error @ SavedCacheError::Ends { within }) => {
                    assert_eq!(within, expected, "{len}");
                    let place = match expected {
                        SavedPart::Header => "the header".to_owned(),
                        SavedPart::Position(position) => format!("position {position}"),
                        SavedPart::Checksum => "the checksum".to_owned(),
                    };
                    assert!(error.to_string().ends_with(&place), "{error}");
                }
                other => panic!("{len}: {other:?}"),
            }
        }
    }
    check::<f32>(2 * 32 * 4);
    check::<f16>(2 * 32 * 2);
    check::<Q8_0>(2 * 34);
}

#[test]
fn every_changed_bit_is_seen() {
    fn check<E: CacheElement>() {
        let bytes = saved(&random::<E>(shape(1, 32), 2, 5));
        for bit in 0..8 * bytes.len() {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(load::<E>(shape(1, 32), 4, &bytes).is_err(), "{} bit {bit}", E::NAME);
        }
    }
    check::<f32>();
    check::<f16>();
    check::<Q8_0>();
}

#[test]
fn another_cache_than_was_asked_for_is_refused_by_name() {
    let bytes = saved(&random::<f16>(shape(2, 32), 3, 6));
    let error = |result: Result<KvCache<f16>, SavedCacheError>| result.unwrap_err().to_string();
    assert_eq!(
        error(load(shape(1, 64), 3, &bytes)),
        "saved cache: expected 1 KV heads of 64 dimensions, found 2 KV heads of 32 dimensions"
    );
    assert_eq!(
        error(load(shape(2, 32), 2, &bytes)),
        "saved cache: expected at most 2 positions, found 3"
    );
    assert_eq!(
        load::<Q8_0>(shape(2, 32), 3, &bytes).unwrap_err().to_string(),
        "saved cache: expected elements of type 2 (q8_0), found type 1"
    );
    let with = |at: usize, byte| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        load::<f16>(shape(2, 32), 3, &bytes)
    };
    assert!(matches!(with(7, b'f'), Err(SavedCacheError::Magic { .. })));
    let version = with(8, 2);
    assert!(matches!(version, Err(SavedCacheError::Version { expected: 1, found: 2 })));
    // A length that nobody has memory for, and one beyond usize on some machines.
    assert!(matches!(with(38, 1), Err(SavedCacheError::TooLong { capacity: 3, len })
        if len == 3 | 1 << 48));
    // A length of one less: then the last position is taken for the checksum.
    assert!(matches!(with(32, 2), Err(SavedCacheError::Checksum { .. })));
}

#[test]
fn numbers_that_are_not_finite_are_refused_even_with_their_checksum() {
    fn check<E: CacheElement>(at: usize, bytes: &[u8]) {
        let mut all = saved(&random::<E>(shape(1, 32), 3, 7));
        all[at..at + bytes.len()].copy_from_slice(bytes);
        let end = all.len() - 4;
        let sum = crc32(&all[..end]);
        all[end..].copy_from_slice(&sum.to_le_bytes());
        let position = (at - 40) / ((end - 40) / 3);
        match load::<E>(shape(1, 32), 3, &all) {
            Err(SavedCacheError::NonFinite { position: found }) => assert_eq!(found, position),
            other => panic!("{}: {other:?}", E::NAME),
        }
    }
    for bad in Values::NON_FINITE {
        check::<f32>(40, &bad.to_le_bytes());
        check::<f32>(40 + 256 + 4 * 63, &bad.to_le_bytes());
        check::<f16>(40, &f16::from_f32(bad).to_le_bytes());
        check::<f16>(40 + 2 * 128 + 126, &f16::from_f32(bad).to_le_bytes());
        check::<Q8_0>(40, &f16::from_f32(bad).to_le_bytes());
        check::<Q8_0>(40 + 2 * 68 + 34, &f16::from_f32(bad).to_le_bytes());
    }
}

#[test]
fn errors_of_the_reader_and_the_writer_are_handed_on() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no disk"))
        }
    }
    let error = KvCache::<f32>::read_from(shape(1, 2), 1, Broken).unwrap_err();
    assert_eq!(error.to_string(), "saved cache: the bytes cannot be read: no disk");
    let cache = random::<f32>(shape(1, 2), 3, 8);
    let bytes = saved(&cache);
    for room in 0..bytes.len() {
        let mut out = vec![0; room];
        assert!(cache.write_to(&mut out[..]).is_err(), "{room}");
        assert_eq!(out, bytes[..room]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_cache_is_read_back(
        kv_heads in 1usize..4,
        half_dim in 1usize..40,
        positions in 0usize..300,
    ) {
        check_round_trip::<f32>(shape(kv_heads, 2 * half_dim), positions);
        check_round_trip::<f16>(shape(kv_heads, 2 * half_dim), positions);
        check_round_trip::<Q8_0>(shape(kv_heads, 32 * half_dim.div_ceil(16)), positions);
    }

    #[test]
    fn any_bytes_after_a_good_header_are_a_cache_or_an_error(
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = [&saved(&random::<Q8_0>(shape(1, 32), 2, 9))[..40], &rest].concat();
        // The checksum of random bytes is not theirs.
        prop_assert!(load::<Q8_0>(shape(1, 32), 2, &bytes).is_err());
    }
}
