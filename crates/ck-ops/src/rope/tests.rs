//! The rotation against f64, and the cases of its kind.

mod scaling;

use super::{Pairing, RopeConfig, RopeTable};
use crate::OpError;
use crate::testing::{levels, on_every_level};
use ck_isa::Isa;
use ck_testing::generate::{Placed, Rng, Values};
use ck_testing::{bounds, compare, oracle};
use proptest::prelude::*;

/// The result of every level, which is the same.
fn rotated(config: RopeConfig, position: usize, heads: &[f32]) -> Vec<f32> {
    let table = RopeTable::new(config, position + 1).unwrap();
    let rotate = |isa| {
        let mut heads = heads.to_vec();
        table.apply(isa, position, &mut heads)?;
        Ok(heads)
    };
    on_every_level(rotate).unwrap()
}

/// Compares with the oracle on one head; the result may come from elsewhere.
fn check(got: &[f32], config: &RopeConfig, position: usize, head: &[f32]) -> Result<(), String> {
    let rope = oracle::Rope::new(pairing(config), config.rot_dim, config.base);
    check_within(got, &rope, position, head)
}

fn pairing(config: &RopeConfig) -> oracle::Pairing {
    match config.pairing {
        Pairing::SplitHalf => oracle::Pairing::SplitHalf,
        Pairing::Interleaved => oracle::Pairing::Interleaved,
    }
}

/// Compares with a rotation of the oracle.
fn check_within(
    got: &[f32],
    rope: &oracle::Rope,
    position: usize,
    head: &[f32],
) -> Result<(), String> {
    let head: Vec<f64> = head.iter().map(|&x| f64::from(x)).collect();
    let mut exact = head.clone();
    rope.rotate_head(position, &mut exact);
    let bounds = bounds::rope(rope, position, &head, &vec![0.0; head.len()]);
    compare::check_within(got, &exact, &bounds)
}

#[test]
fn the_bound_sees_the_next_position_and_the_other_pairing() {
    let head = Values::Normal.row(&mut Rng::new(1), 64);
    for pairing in [Pairing::SplitHalf, Pairing::Interleaved] {
        let config = RopeConfig::new(64, 1e4).with_pairing(pairing);
        let got = rotated(config.clone(), 100, &head);
        assert_eq!(check(&got, &config, 100, &head), Ok(()));
        assert!(check(&got, &config, 101, &head).is_err());
        let other = match pairing {
            Pairing::SplitHalf => Pairing::Interleaved,
            Pairing::Interleaved => Pairing::SplitHalf,
        };
        assert!(check(&got, &config.clone().with_pairing(other), 100, &head).is_err());
        assert!(check(&got, &RopeConfig { base: 1.0001e4, ..config }, 100, &head).is_err());
    }
}

// Case B18.
#[test]
fn split_halves_and_neighbours_are_different_pairs() {
    let config = RopeConfig::new(4, 10_000.0);
    let (cos, sin) = (1f64.cos() as f32, 1f64.sin() as f32);
    assert_eq!(rotated(config.clone(), 1, &[1.0, 0.0, 0.0, 0.0]), [cos, 0.0, sin, 0.0]);
    assert!((cos - 0.540_302_3).abs() < 1e-7 && (sin - 0.841_471).abs() < 1e-7);
    let y = rotated(config.clone(), 1, &[0.0, 1.0, 0.0, 0.0]);
    assert_eq!((y[0], y[2]), (0.0, 0.0));
    assert!((y[1] - 0.999_95).abs() < 1e-7 && (y[3] - 0.009_999_8).abs() < 1e-7, "{y:?}");

    let neighbours = config.with_pairing(Pairing::Interleaved);
    assert_eq!(rotated(neighbours, 1, &[1.0, 0.0, 0.0, 0.0]), [cos, sin, 0.0, 0.0]);
}

// Case B18.
#[test]
fn position_zero_changes_no_bit() {
    let head = [-0.0, f32::MIN_POSITIVE / 2.0, -1.0, f32::INFINITY, f32::NAN, -0.0, 1e38, -3.5];
    for pairing in [Pairing::SplitHalf, Pairing::Interleaved] {
        let y = rotated(RopeConfig::new(8, 10_000.0).with_pairing(pairing), 0, &head);
        compare::assert_bits_eq("position 0", &y, &head);
    }
}

#[test]
fn elements_beyond_the_rotated_width_pass_through() {
    let head: Vec<f32> = (0..12).map(|i| i as f32 - 5.5).collect();
    for pairing in [Pairing::SplitHalf, Pairing::Interleaved] {
        let partial = RopeConfig::new(12, 500.0).with_rot_dim(8).with_pairing(pairing);
        let whole = RopeConfig::new(8, 500.0).with_pairing(pairing);
        let y = rotated(partial, 3, &head);
        assert_eq!(y[8..], head[8..]);
        assert_eq!(y[..8], rotated(whole, 3, &head[..8]));
        assert_ne!(y[..8], head[..8]);
    }
}

#[test]
fn every_width_is_rotated_with_the_same_bits_anywhere_in_memory() {
    let mut rng = Rng::new(4);
    for half in (1..=40).chain([64, 96, 128]) {
        for pairing in [Pairing::SplitHalf, Pairing::Interleaved] {
            let config = RopeConfig::new(2 * half, 1e4).with_pairing(pairing);
            let table = RopeTable::new(config.clone(), 8).unwrap();
            let heads = Values::Normal.row(&mut rng, 6 * half);
            let expected = rotated(config, 7, &heads);
            for (i, isa) in levels().into_iter().enumerate() {
                let mut placed = Placed::new(&heads, 4 * ((half + i) % 16), f32::NAN);
                table.apply(isa, 7, placed.as_mut_slice()).unwrap();
                compare::assert_bits_eq(&format!("{isa}, {half}"), placed.as_slice(), &expected);
                placed.assert_guards();
            }
        }
    }
}

#[test]
fn values_of_every_kind_are_rotated_with_the_same_bits() {
    let mut rng = Rng::new(5);
    for kind in Values::ALL {
        for pairing in [Pairing::SplitHalf, Pairing::Interleaved] {
            rotated(RopeConfig::new(72, 1e6).with_pairing(pairing), 3, &kind.row(&mut rng, 144));
        }
    }
}

#[test]
fn every_head_of_a_slice_is_rotated_alike() {
    let config = RopeConfig::new(6, 10_000.0);
    let heads: Vec<f32> = (0..18).map(|i| (i as f32).cos()).collect();
    let all = rotated(config.clone(), 5, &heads);
    for (all, head) in all.chunks(6).zip(heads.chunks(6)) {
        assert_eq!(all, rotated(config.clone(), 5, head));
    }
}

#[test]
fn a_table_that_grows_keeps_its_bits() {
    let config = RopeConfig::new(64, 1e6);
    let mut table = RopeTable::new(config.clone(), 3).unwrap();
    table.reserve(100).unwrap();
    table.reserve(50).unwrap();
    assert_eq!((table.positions(), table.head_dim()), (100, 64));
    assert_eq!(table.rows.capacity(), 100 * 64, "no more than what was asked for");
    let whole = RopeTable::new(config, 100).unwrap();
    compare::assert_bits_eq("a table that grew", &table.rows, &whole.rows);
}

#[test]
fn configurations_that_make_no_sense_are_refused() {
    let new = |config| RopeTable::new(config, 1).map(|_| ());
    let even = RopeConfig::new(8, 1e4);
    let odd = OpError::Odd { what: "head_dim", found: 7 };
    assert_eq!(new(RopeConfig::new(7, 1e4)), Err(odd));
    assert_eq!(new(even.clone().with_rot_dim(3)), Err(OpError::Odd { what: "rot_dim", found: 3 }));
    assert_eq!(new(RopeConfig::new(0, 1e4)), Err(OpError::Zero { what: "head_dim" }));
    assert_eq!(new(even.clone().with_rot_dim(0)), Err(OpError::Zero { what: "rot_dim" }));
    assert_eq!(new(even.with_rot_dim(10)), Err(OpError::RotDim { rot_dim: 10, head_dim: 8 }));
    for base in [0.0, -1.0, f64::INFINITY] {
        assert_eq!(new(RopeConfig::new(8, base)), Err(OpError::RopeBase { base }));
    }
    assert!(matches!(new(RopeConfig::new(8, f64::NAN)), Err(OpError::RopeBase { .. })));
    assert!(matches!(
        RopeTable::new(RopeConfig::new(8, 1e4), usize::MAX),
        Err(OpError::SizeOverflow { .. })
    ));
    assert!(matches!(
        RopeTable::new(RopeConfig::new(8, 1e4), usize::MAX >> 7),
        Err(OpError::OutOfMemory { .. })
    ));
    let pairs = |head_dim| RopeConfig::new(head_dim, 1e4).check();
    assert_eq!(pairs(usize::MAX - 1), Err(OpError::SizeOverflow { what: "rope frequencies" }));
    assert!(matches!(pairs(usize::MAX >> 3 & !1), Err(OpError::OutOfMemory { .. })));
}

// Fault 5 of the original: positions beyond what there is.
#[test]
fn positions_outside_the_table_are_refused() {
    let table = RopeTable::new(RopeConfig::new(4, 1e4), 8).unwrap();
    let mut heads = [1.0; 8];
    for position in [8, 9, usize::MAX] {
        assert_eq!(
            table.apply(Isa::Scalar, position, &mut heads),
            Err(OpError::PositionOutsideTable { position, positions: 8 })
        );
    }
    for found in [1, 3, 5, 7] {
        assert_eq!(
            table.apply(Isa::Scalar, 7, &mut heads[..found]),
            Err(OpError::PartialHead { what: "rope heads", head_dim: 4, found })
        );
    }
    assert_eq!(heads, [1.0; 8]);
    assert_eq!(table.apply(Isa::Scalar, 7, &mut []), Ok(()));
}

proptest! {
    #[test]
    fn agrees_with_the_oracle(
        values in prop::collection::vec(-10f32..10.0, 128),
        half in 1usize..=64,
        rest in 0usize..8,
        position in 0usize..4096,
        interleaved: bool,
    ) {
        let head_dim = (2 * (half + rest)).min(128);
        let pairing = if interleaved { Pairing::Interleaved } else { Pairing::SplitHalf };
        let config = RopeConfig::new(head_dim, 1e4).with_rot_dim(2 * half).with_pairing(pairing);
        let head = &values[..head_dim];
        let got = rotated(config.clone(), position, head);
        prop_assert_eq!(check(&got, &config, position, head), Ok(()));
    }
}
