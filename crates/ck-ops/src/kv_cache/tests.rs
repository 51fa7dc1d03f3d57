//! The cache, and the cases of its kind.

mod copy;
mod saved;

use super::{CHUNK, CacheElement, CacheShape, KvCache, NewPosition, Q8_0};
use crate::OpError;
use crate::testing::{levels, on_every_level};
use ck_isa::Isa;
use ck_testing::generate::{Rng, Values};
use ck_testing::oracle::{BLOCK, CacheRounding, narrow, widen};
use half::f16;
use proptest::prelude::*;

fn shape(n_kv_heads: usize, head_dim: usize) -> CacheShape {
    CacheShape::new(n_kv_heads, head_dim).unwrap()
}

/// Appends positions whose keys are `10 * head + position` and whose values are a thousand more.
fn fill<E: CacheElement>(cache: &mut KvCache<E>, positions: usize) {
    let shape = cache.shape();
    let mut new = NewPosition::new(shape).unwrap();
    for _ in 0..positions {
        for head in 0..shape.n_kv_heads() {
            let key = (10 * head + cache.len()) as f32;
            let (k, v) = (vec![key; shape.head_dim()], vec![key + 1000.0; shape.head_dim()]);
            new.set_head(Isa::detect(), head, &k, &v).unwrap();
        }
        cache.append(&new).unwrap();
    }
}

/// Every stored element, keys before values.
fn contents<E: CacheElement>(cache: &KvCache<E>) -> Vec<f32> {
    let mut row = vec![0.0; cache.shape().head_dim()];
    let mut all = Vec::new();
    for position in 0..cache.len() {
        for head in 0..cache.shape().n_kv_heads() {
            cache.key(head, position, &mut row).unwrap();
            all.extend(&row);
            cache.value(head, position, &mut row).unwrap();
            all.extend(&row);
        }
    }
    all
}

// Case B26; fault 5 of the original: positions at capacity overwrite the next head.
#[test]
fn a_full_cache_refuses_and_keeps_every_row() {
    let mut cache = KvCache::<f32>::with_capacity(shape(2, 64), 4).unwrap();
    fill(&mut cache, 4);
    let before = contents(&cache);
    let new = NewPosition::new(shape(2, 64)).unwrap();
    assert_eq!(cache.append(&new), Err(OpError::CacheFull { capacity: 4 }));
    assert_eq!(cache.len(), 4);
    assert_eq!(contents(&cache), before);
    let mut row = [0.0; 64];
    cache.key(1, 0, &mut row).unwrap();
    assert_eq!(row, [10.0; 64]);

    for position in [4, 5, usize::MAX] {
        let expected = Err(OpError::NotStored { position, len: 4 });
        assert_eq!(cache.key(0, position, &mut row), expected);
        assert_eq!(cache.value(0, position, &mut row), expected);
    }
    let missing = Err(OpError::NoSuchKvHead { kv_head: 2, n_kv_heads: 2 });
    assert_eq!(cache.key(2, 0, &mut row), missing);
    assert!(matches!(cache.key(0, 0, &mut row[1..]), Err(OpError::Length { .. })));
    assert_eq!(row, [10.0; 64]);
}

#[test]
fn capacity_is_what_was_asked_for_and_grows_without_moving_anything() {
    for capacity in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
        let cache = KvCache::<f32>::with_capacity(shape(1, 2), capacity).unwrap();
        assert_eq!((cache.capacity(), cache.len(), cache.is_empty()), (capacity, 0, true));
    }
    let mut cache = KvCache::<f16>::with_capacity(shape(2, 6), 3).unwrap();
    fill(&mut cache, 3);
    let before = contents(&cache);
    for (additional, capacity) in [(0, 3), (1, 4), (1, 4), (CHUNK, CHUNK + 3), (2 * CHUNK, 515)] {
        cache.reserve(additional).unwrap();
        assert_eq!((cache.capacity(), cache.len(), cache.is_empty()), (capacity, 3, false));
        assert_eq!(contents(&cache), before);
        // No more memory than that takes, and none for what is there already.
        assert_eq!(cache.segments.len(), capacity.div_ceil(CHUNK));
        assert_eq!(cache.arenas.len(), cache.segments.len());
    }
    fill(&mut cache, 512);
    assert_eq!(contents(&cache)[..before.len()], before);
}

// Fault 9 of the original: 32-bit offsets.
#[test]
fn sizes_beyond_the_machine_are_errors_that_lose_nothing() {
    let mut cache = KvCache::<f32>::with_capacity(shape(1, 64), 2).unwrap();
    fill(&mut cache, 2);
    let before = contents(&cache);
    for additional in [usize::MAX, usize::MAX / 2, usize::MAX >> 10] {
        let error = cache.reserve(additional).unwrap_err();
        assert!(matches!(error, OpError::SizeOverflow { .. } | OpError::OutOfMemory { .. }));
        assert_eq!((cache.len(), cache.capacity()), (2, 2));
        assert_eq!(contents(&cache), before);
    }
    let huge = shape(1 << 40, 1 << 40);
    assert!(matches!(KvCache::<f32>::with_capacity(huge, 1), Err(OpError::SizeOverflow { .. })));
    assert!(matches!(NewPosition::<f32>::new(huge), Err(OpError::SizeOverflow { .. })));
    let large = shape(1, 1 << 50);
    assert!(NewPosition::<f16>::new(large).is_err());
}

#[test]
fn rows_across_segments_are_read_back() {
    fn check<E: CacheElement>(head_dim: usize, rounding: CacheRounding) {
        let mut cache = KvCache::<E>::with_capacity(shape(3, head_dim), 2 * CHUNK + 20).unwrap();
        fill(&mut cache, 2 * CHUNK + 17);
        for (i, got) in contents(&cache).chunks_exact(head_dim).enumerate() {
            let (position, head, is_value) = (i / 6, i / 2 % 3, i % 2);
            let row = vec![(10 * head + position + 1000 * is_value) as f64; head_dim];
            let expected = narrow(&rounding.round(&row).unwrap());
            ck_testing::compare::assert_bits_eq(E::NAME, got, &expected);
        }
    }
    check::<f32>(6, CacheRounding::None);
    check::<f16>(6, CacheRounding::F16);
    check::<Q8_0>(96, CacheRounding::Q8_0);
}

// Case B25 and B27: what was dropped has no influence, and the next position is the length.
#[test]
fn truncated_positions_are_written_again() {
    let mut cache = KvCache::<f32>::with_capacity(shape(2, 4), 600).unwrap();
    fill(&mut cache, 300);
    let all = contents(&cache);
    cache.truncate(400);
    assert_eq!(cache.len(), 300);
    cache.truncate(17);
    assert_eq!(cache.len(), 17);
    assert_eq!(contents(&cache), all[..17 * 16]);
    fill(&mut cache, 283);
    assert_eq!(contents(&cache), all);
    cache.clear();
    assert_eq!((cache.len(), cache.capacity()), (0, 600));
}

#[test]
fn shapes_that_make_no_sense_are_refused() {
    assert_eq!(CacheShape::new(0, 64), Err(OpError::Zero { what: "n_kv_heads" }));
    assert_eq!(CacheShape::new(2, 0), Err(OpError::Zero { what: "head_dim" }));
    assert_eq!(CacheShape::new(2, 63), Err(OpError::Odd { what: "head_dim", found: 63 }));
    let mut cache = KvCache::<f32>::with_capacity(shape(2, 8), 4).unwrap();
    let error = cache.append(&NewPosition::new(shape(2, 6)).unwrap()).unwrap_err();
    assert!(matches!(error, OpError::Shape { .. }));
    assert_eq!(
        error.to_string(),
        "new position: expected 2 KV heads of 8 dimensions, found 2 KV heads of 6 dimensions"
    );
}

#[test]
fn heads_that_a_new_position_does_not_have_are_refused() {
    let mut new = NewPosition::<f32>::new(shape(2, 4)).unwrap();
    new.set(Isa::detect(), &[1.0; 8], &[2.0; 8]).unwrap();
    let mut row = [7.0; 5];
    let missing = Err(OpError::NoSuchKvHead { kv_head: 2, n_kv_heads: 2 });
    assert_eq!(new.key(2, &mut row[..4]), missing);
    assert_eq!(new.value(2, &mut row[..4]), missing);
    for len in [3, 5] {
        let length = Err(OpError::Length { what: "head", expected: 4, found: len });
        assert_eq!(new.key(0, &mut row[..len]), length);
        assert_eq!(new.value(0, &mut row[..len]), length);
    }
    assert_eq!(row, [7.0; 5]);
}

// Safe code can exchange the heads of two positions.
#[test]
fn a_head_of_another_dimension_makes_every_use_an_error() {
    for (head_dim, other_dim) in [(64, 32), (32, 64)] {
        let mut new = NewPosition::<f32>::new(shape(2, head_dim)).unwrap();
        let mut other = NewPosition::<f32>::new(shape(1, other_dim)).unwrap();
        std::mem::swap(&mut new.heads_mut()[1], &mut other.heads_mut()[0]);
        let what = "head of the new position";
        let error = OpError::Length { what, expected: head_dim, found: other_dim };
        let mut cache = KvCache::<f32>::with_capacity(shape(2, head_dim), 4).unwrap();
        assert_eq!(cache.append(&new), Err(error));
        assert_eq!(crate::Context::new(&cache, Some(&new)).err(), Some(error));
        let mut row = vec![7.0; 2 * head_dim];
        assert_eq!(new.set(Isa::detect(), &row, &row), Err(error));
        let own = vec![7.0; other_dim];
        assert_eq!(new.set_head(Isa::detect(), 1, &own, &own), Err(error));
        assert_eq!(new.key(0, &mut row[..head_dim]), Err(error));
        assert_eq!(new.value(1, &mut row[..head_dim]), Err(error));
        assert_eq!((cache.len(), row), (0, vec![7.0; 2 * head_dim]));
    }
}

/// Key and value of every head of a new position.
fn read_new<E: CacheElement>(new: &NewPosition<E>) -> Vec<f32> {
    let mut row = vec![0.0; new.shape().head_dim()];
    let mut all = Vec::new();
    for head in 0..new.shape().n_kv_heads() {
        new.key(head, &mut row).unwrap();
        all.extend(&row);
        new.value(head, &mut row).unwrap();
        all.extend(&row);
    }
    all
}

// Fault 8 of the original: a poisoned row spoils the tokens after it.
#[test]
fn values_that_the_element_type_cannot_hold_are_refused_and_change_nothing() {
    fn check<E: CacheElement>(isa: Isa, head_dim: usize, bad: f32) {
        let mut new = NewPosition::<E>::new(shape(2, head_dim)).unwrap();
        let good = vec![0.25; 2 * head_dim];
        new.set(isa, &good, &good).unwrap();
        let before = read_new(&new);
        for index in 0..2 * head_dim {
            let mut row = good.clone();
            row[index] = bad;
            for result in [new.set(isa, &row, &good), new.set(isa, &good, &row)] {
                let (OpError::NonFinite { index: at, value, .. }
                | OpError::BeyondRange { index: at, value, .. }) = result.unwrap_err()
                else {
                    panic!("{bad} in {}", E::NAME)
                };
                assert_eq!((at, value.to_bits()), (index, bad.to_bits()));
            }
        }
        let (row, good_row) = (vec![bad; head_dim], &good[..head_dim]);
        assert!(new.set_head(isa, 1, &row, good_row).is_err());
        assert!(new.set_head(isa, 1, good_row, &row).is_err());
        assert!(new.heads_mut()[1].set(isa, good_row, &row).is_err());
        assert!(new.set_head(isa, 2, good_row, good_row).is_err());
        assert!(new.set_head(isa, 1, &good[1..head_dim], good_row).is_err());
        assert!(new.set(isa, &good, good_row).is_err());
        assert_eq!(read_new(&new), before);
    }
    for isa in levels() {
        for bad in Values::NON_FINITE {
            check::<f32>(isa, 10, bad);
            check::<f16>(isa, 10, bad);
            check::<Q8_0>(isa, 32, bad);
        }
        for bad in [65_520.0, -65_520.0, 1e30] {
            check::<f16>(isa, 10, bad);
        }
        for bad in [127.0 * 65_520.0, -127.0 * 65_520.0, 1e30] {
            check::<Q8_0>(isa, 32, bad);
        }
    }
}

#[test]
fn f16_rows_are_rounded_once_with_ties_to_even() {
    let mut new = NewPosition::<f16>::new(shape(1, 8)).unwrap();
    let tiny = 2f32.powi(-24);
    let row = [
        1.0 + 2f32.powi(-11),                // a tie: to 1
        1.0 + 3.0 * 2f32.powi(-11),          // a tie: up to the even neighbour
        1.0 + 2f32.powi(-11) + f32::EPSILON, // above the tie
        65_519.996,                          // below the overflow
        tiny * 0.5,                          // a tie: to 0
        tiny * 1.5,                          // a tie: up
        -tiny * 0.500_1,
        -0.0,
    ];
    let expected =
        [1.0, 1.0 + 2f32.powi(-9), 1.0 + 2f32.powi(-10), 65_504.0, 0.0, tiny * 2.0, -tiny, -0.0];
    for isa in levels() {
        new.set(isa, &row, &row).unwrap();
        let expected = [expected, expected].concat();
        ck_testing::compare::assert_bits_eq("f16", &read_new(&new), &expected);
    }
}

#[test]
fn rows_of_every_width_and_kind_are_rounded_with_the_bits_of_the_oracle() {
    let mut rng = Rng::new(9);
    for kind in Values::ALL {
        for head_dim in (2..=128).step_by(2).chain([160, 256]) {
            let row = kind.row(&mut rng, head_dim);
            check_rounding::<f32>(CacheRounding::None, &row);
            check_rounding::<f16>(CacheRounding::F16, &row);
            if head_dim.is_multiple_of(BLOCK) {
                check_rounding::<Q8_0>(CacheRounding::Q8_0, &row);
            }
        }
    }
}

/// Every level rounds the row, as key and as value, to the oracle's numbers, or refuses it as the oracle does.
fn check_rounding<E: CacheElement>(rounding: CacheRounding, row: &[f32]) {
    let rounded = on_every_level(|isa| {
        let mut new = NewPosition::<E>::new(shape(1, row.len())).unwrap();
        new.set(isa, row, row)?;
        Ok(read_new(&new))
    });
    match (rounded, rounding.round(&widen(row))) {
        (Ok(rounded), Ok(expected)) => {
            let expected = narrow(&[&expected[..], &expected[..]].concat());
            ck_testing::compare::assert_bits_eq(E::NAME, &rounded, &expected);
        }
        (rounded, expected) => {
            assert!(rounded.is_err() && expected.is_err(), "{rounded:?} instead of {expected:?}");
        }
    }
}

#[test]
fn blocks_of_q8_0_are_rounded_with_ties_to_even_and_scales_at_the_ends_of_f16() {
    // With a scale of 1 the quants are the rounded values; nothing else shares a block's scale.
    let mut new = NewPosition::<Q8_0>::new(shape(1, 64)).unwrap();
    let mut row = [0.0; 64];
    row[..7].copy_from_slice(&[127.0, 0.5, 1.5, -2.5, 126.5, -126.5, 3.499_999_8]);
    row[32..].fill(1e-3);
    let expected = [127.0, 0.0, 2.0, -2.0, 126.0, -126.0, 3.0];
    for isa in levels() {
        new.set(isa, &row, &row).unwrap();
        let got = read_new(&new);
        assert_eq!(got[..7], expected);
        assert_eq!(got[32..64], [127.0 * f16::from_f32(1e-3 / 127.0).to_f32(); 32]);
    }
    // A scale that is a tie of zero and the smallest, one above it, the largest one, and one that would be infinite.
    let tiny = 2f32.powi(-25) * 127.0;
    for (largest, scale) in [(tiny, 0.0), (tiny.next_up(), 2f32.powi(-24)), (8_321_039.5, 65_504.0)]
    {
        for isa in levels() {
            new.set(isa, &[largest; 64], &[-largest; 64]).unwrap();
            let got = read_new(&new);
            assert_eq!(got[..64], [127.0 * scale; 64], "{largest:e}");
            assert_eq!(got[64..], [-127.0 * scale; 64], "{largest:e}");
        }
    }
}

#[test]
fn heads_that_are_no_whole_blocks_have_no_q8_0_cache() {
    for head_dim in [2, 16, 30, 34, 48, 80] {
        let expected = OpError::HeadDimBlock { head_dim, block: 32, element: "q8_0" };
        let cache = KvCache::<Q8_0>::with_capacity(shape(1, head_dim), 1);
        assert_eq!(cache.unwrap_err(), expected);
        assert_eq!(NewPosition::<Q8_0>::new(shape(1, head_dim)).unwrap_err(), expected);
    }
}

/// The nearest `f16` by searching all of them; of two equally near the one with an even pattern.
fn nearest_f16(x: f32) -> f16 {
    let candidates = (0..=u16::MAX).map(f16::from_bits).filter(|h| h.is_finite());
    let distance = |h: &f16| (h.to_f64() - f64::from(x)).abs();
    candidates
        .filter(|h| h.is_sign_negative() == x.is_sign_negative())
        .min_by(|a, b| {
            distance(a).total_cmp(&distance(b)).then((a.to_bits() % 2).cmp(&(b.to_bits() % 2)))
        })
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn f16_rounding_is_to_the_nearest(mantissa: u32, exponent in 95u32..143, negative: bool) {
        let bits = (mantissa & 0x7f_ffff) | (exponent << 23) | (u32::from(negative) << 31);
        let x = f32::from_bits(bits);
        prop_assume!(x.abs() < 65_520.0);
        let mut new = NewPosition::<f16>::new(shape(1, 2)).unwrap();
        let expected = nearest_f16(x).to_f32();
        for isa in levels() {
            new.set(isa, &[x, x], &[x, x]).unwrap();
            for got in read_new(&new) {
                prop_assert_eq!(got.to_bits(), expected.to_bits(), "{} of {}", got, x);
            }
        }
    }

    #[test]
    fn blocks_of_q8_0_are_those_of_the_oracle(
        row in prop::collection::vec(any::<u32>().prop_map(f32::from_bits), 64),
        exponent in 0u32..254,
        narrow: bool,
    ) {
        // Either any numbers, or those of one power of two and a few below.
        let near = |x: f32| {
            let drop = (x.to_bits() >> 23 & 7).min(exponent);
            f32::from_bits(x.to_bits() & 0x807f_ffff | (exponent - drop) << 23)
        };
        let row: Vec<f32> = if narrow { row.into_iter().map(near).collect() } else { row };
        check_rounding::<Q8_0>(CacheRounding::Q8_0, &row);
    }

    #[test]
    fn any_sequence_of_operations_keeps_what_a_list_would(
        operations in prop::collection::vec((0u8..5, 0usize..400), 1..40),
    ) {
        let mut rng = Rng::new(7);
        let mut cache = KvCache::<f32>::with_capacity(shape(2, 4), 0).unwrap();
        let mut list: Vec<Vec<f32>> = Vec::new();
        let mut new = NewPosition::new(shape(2, 4)).unwrap();
        let mut capacity = 0;
        for (operation, n) in operations {
            match operation {
                0 => {
                    cache.reserve(n).unwrap();
                    capacity = capacity.max(list.len() + n);
                }
                1 => {
                    cache.truncate(n);
                    list.truncate(n);
                }
                2 if n < 10 => {
                    cache.clear();
                    list.clear();
                }
                _ => for _ in 0..n {
                    let row = Values::Normal.row(&mut rng, 8);
                    new.set(Isa::detect(), &row, &row).unwrap();
                    let full = list.len() == capacity;
                    prop_assert_eq!(cache.append(&new).is_err(), full);
                    if !full {
                        list.push([&row[..4], &row[..4], &row[4..], &row[4..]].concat());
                    }
                },
            }
            prop_assert_eq!((cache.len(), cache.capacity()), (list.len(), capacity));
        }
        prop_assert_eq!(contents(&cache), list.concat());
    }
}
