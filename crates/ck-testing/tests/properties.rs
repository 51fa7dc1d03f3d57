//! What must hold of the oracle whatever the numbers are.

use ck_testing::bounds;
use ck_testing::oracle::{
    Attention, BLOCK, Block, CacheRounding, Format, Pairing, Rope, block_dot, dequantize_row,
    quantize_row, rmsnorm, row_dot, softmax, widen,
};
use half::f16;
use proptest::collection::vec;
use proptest::prelude::*;

fn numbers(len: usize) -> impl Strategy<Value = Vec<f64>> {
    vec(-4.0f64..4.0, len)
}

fn close(got: f64, expected: f64) -> bool {
    (got - expected).abs() <= 1e-12 * (1.0 + expected.abs())
}

proptest! {
    #[test]
    fn any_bytes_of_a_block_survive_decoding(bytes in vec(any::<u8>(), 34)) {
        for format in Format::ALL {
            let bytes = &bytes[..format.block_bytes()];
            prop_assert_eq!(Block::decode(format, bytes).encode(format), bytes);
        }
    }

    #[test]
    fn a_quantized_element_is_within_half_a_step(row in vec(-1e3f32..1e3, 2 * BLOCK)) {
        let bytes = quantize_row(Format::Q8_0, &row).expect("finite");
        let limits = bounds::cache_rounding(CacheRounding::Q8_0, &widen(&row));
        for ((x, restored), limit) in row.iter().zip(dequantize_row(Format::Q8_0, &bytes)).zip(limits) {
            prop_assert!((f64::from(*x) - restored).abs() <= limit, "{x} became {restored}");
        }
        // Q5_0: half a step, but a whole one beside the clamped end; and the scale's own rounding.
        let bytes = quantize_row(Format::Q5_0, &row).expect("finite");
        for (values, restored) in row.chunks(BLOCK).zip(dequantize_row(Format::Q5_0, &bytes).chunks(BLOCK)) {
            let amax = values.iter().fold(0.0f32, |amax, x| amax.max(x.abs()));
            let step = f64::from(amax) / 16.0;
            for (&x, &restored) in values.iter().zip(restored) {
                let clamped = f64::from(x).abs() > 15.5 * step;
                let limit = step * if clamped { 1.0 } else { 0.5 } + f64::from(amax) * 0.001;
                prop_assert!((f64::from(x) - restored).abs() <= limit, "{x} became {restored}");
            }
        }
    }

    #[test]
    fn quantizing_scales_with_powers_of_two(row in vec(-1.0f32..1.0, BLOCK), exponent in -4i32..10) {
        for format in Format::ALL {
            let factor = 2f32.powi(exponent);
            let scaled: Vec<f32> = row.iter().map(|x| x * factor).collect();
            let block = Block::decode(format, &quantize_row(format, &row).expect("finite"));
            // A subnormal scale loses bits that a larger one keeps.
            prop_assume!(block.scale.to_f32().abs() > 0.002);
            let other = Block::decode(format, &quantize_row(format, &scaled).expect("finite"));
            prop_assert_eq!(block.quants, other.quants);
            prop_assert_eq!(block.scale.to_f32() * factor, other.scale.to_f32());
        }
    }

    #[test]
    fn integers_and_values_give_the_same_dot(a in vec(any::<i8>(), BLOCK), b in vec(any::<i8>(), BLOCK), x: u16, y: u16) {
        let scale = |bits: u16| f16::from_bits(bits & 0x3FFF);
        let block = |quants: Vec<i8>, bits| Block { scale: scale(bits), quants: quants.try_into().expect("32") };
        let (a, b) = (block(a, x), block(b, y));
        let of_values: f64 = a.values().iter().zip(b.values()).map(|(a, b)| a * b).sum();
        let sum = row_dot(&[a, a], &[b, b]);
        prop_assert!(close(sum.value, 2.0 * of_values), "{sum:?} {of_values}");
        prop_assert_eq!(sum.magnitude, sum.value.abs());
        prop_assert!(block_dot(&a, &b).abs() <= 32 * 128 * 128);
    }

    #[test]
    fn a_normalized_row_has_unit_mean_square(row in numbers(77), factor in 1e-3f64..1e3) {
        let ones = [1.0; 77];
        let normed = rmsnorm(&row, &ones, 0.0).expect("not all zero");
        let mean_square: f64 = normed.values.iter().map(|y| y * y).sum::<f64>() / 77.0;
        prop_assert!(close(mean_square, 1.0), "{mean_square}");
        let scaled: Vec<f64> = row.iter().map(|x| x * factor).collect();
        let other = rmsnorm(&scaled, &ones, 0.0).expect("not all zero");
        for (one, other) in normed.values.iter().zip(other.values) {
            prop_assert!(close(*one, other));
        }
    }

    #[test]
    fn a_rotation_keeps_lengths_and_depends_on_distances(q in numbers(16), k in numbers(16), at in 0usize..4000, distance in 0usize..100) {
        for pairing in Pairing::ALL {
            for width in [16, 10] {
                let rope = Rope::new(pairing, width, 1e4);
                let rotated = |head: &[f64], position| {
                    let mut head = head.to_vec();
                    rope.rotate_head(position, &mut head);
                    head
                };
                let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
                let far = dot(&rotated(&q, at + distance), &rotated(&k, at));
                let near = dot(&rotated(&q, distance), &k);
                prop_assert!((far - near).abs() < 1e-9, "{far} {near}");
                let turned = rotated(&q, at);
                prop_assert!((dot(&turned, &turned) - dot(&q, &q)).abs() < 1e-10);
                prop_assert_eq!(&turned[width..], &q[width..]);
            }
        }
    }

    #[test]
    fn softmax_weights_add_up_to_one_and_ignore_a_shift(scores in vec(-50.0f64..50.0, 1..40), shift in -1e3f64..1e3) {
        let weights = softmax(&scores);
        prop_assert!(close(weights.iter().sum(), 1.0));
        let shifted: Vec<f64> = scores.iter().map(|score| score + shift).collect();
        for (one, other) in weights.iter().zip(softmax(&shifted)) {
            prop_assert!(*one >= 0.0 && (one - other).abs() < 1e-11);
        }
    }

    #[test]
    fn attention_does_not_depend_on_the_order_of_the_history(q in numbers(32), keys in numbers(8 * 16), values in numbers(8 * 16), swap in (0usize..8, 0usize..8)) {
        let attention = Attention::new(4, 2, 8).expect("head counts");
        let output = attention.attend(&q, &keys, &values);
        let swapped = |rows: &[f64]| {
            let mut rows: Vec<&[f64]> = rows.chunks(16).collect();
            rows.swap(swap.0, swap.1);
            rows.concat()
        };
        for (one, other) in output.iter().zip(attention.attend(&q, &swapped(&keys), &swapped(&values))) {
            prop_assert!(close(other, *one));
        }
        // Each head stays within the values that it sees.
        for (head, output) in output.chunks(8).enumerate() {
            for (dim, out) in output.iter().enumerate() {
                let seen = (0..8).map(|p| attention.kv_row(&values, head, p)[dim]);
                let (low, high) = seen.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
                prop_assert!((low - 1e-12..=high + 1e-12).contains(out));
            }
        }
    }

    #[test]
    fn options_of_attention_meet_the_plain_one_at_their_ends(q in numbers(16), keys in numbers(6 * 8), values in numbers(6 * 8), window in 1usize..6, sinks in 0usize..6) {
        let plain = Attention::new(2, 1, 8).expect("head counts");
        let all = plain.attend(&q, &keys, &values);
        prop_assert_eq!(&Attention { window: Some(6), ..plain }.attend(&q, &keys, &values), &all);
        let capped = Attention { soft_cap: Some(1e7), ..plain }.attend(&q, &keys, &values);
        prop_assert!(capped.iter().zip(&all).all(|(a, b)| (a - b).abs() < 1e-9));
        // A window with sinks is plain attention to the rows it keeps.
        let some = Attention { window: Some(window), sinks, ..plain };
        let kept = |rows: &[f64]| -> Vec<f64> {
            let rows = rows.chunks(8).enumerate();
            rows.filter(|(p, _)| *p < sinks || *p >= 6 - window).flat_map(|(_, row)| row.to_vec()).collect()
        };
        prop_assert_eq!(some.attend(&q, &keys, &values), plain.attend(&q, &kept(&keys), &kept(&values)));
    }
}
