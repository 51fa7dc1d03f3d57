//! Published cases with values that were worked out by hand: the oracle must give them, or it judges nothing.

use ck_testing::oracle::{
    Attention, Block, Format, Pairing, Rejected, Rope, Scaling, block_dot, dequantize_row,
    quantize_row, rmsnorm,
};
use half::f16;

/// A block's worth of values: the given ones, then zeros.
fn block_of(values: &[f32]) -> Vec<f32> {
    let mut row = values.to_vec();
    row.resize(32, 0.0);
    row
}

fn quantized(format: Format, values: &[f32]) -> Block {
    let bytes = quantize_row(format, &block_of(values)).expect("finite values");
    Block::decode(format, &bytes)
}

fn near(got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance, "got {got}, expected {expected}");
}

/// Case B01.
#[test]
fn a_block_of_zeros_has_fixed_bytes_and_stays_zero() {
    let q8_0 = quantize_row(Format::Q8_0, &[0.0; 32]).expect("zeros");
    assert_eq!(q8_0, [0; 34]);
    let q5_0 = quantize_row(Format::Q5_0, &[-0.0; 32]).expect("zeros");
    let mut expected = vec![0x00, 0x80, 0xFF, 0xFF, 0xFF, 0xFF];
    expected.resize(22, 0);
    assert_eq!(q5_0, expected);
    for (format, bytes) in [(Format::Q8_0, &q8_0), (Format::Q5_0, &q5_0)] {
        assert!(dequantize_row(format, bytes).iter().all(|&x| x == 0.0), "{format}");
        let ones = Block { scale: f16::ONE, quants: [127; 32] };
        assert_eq!(block_dot(&Block::decode(format, bytes), &ones), 0, "{format}");
    }
}

/// Case B01, for values so small that the stored scale is zero.
#[test]
fn a_block_whose_scale_rounds_to_zero_is_the_block_of_zeros() {
    for (format, divisor) in [(Format::Q8_0, 127.0), (Format::Q5_0, 16.0)] {
        let zeros = quantize_row(format, &[0.0; 32]).expect("zeros");
        // The scale is a tie at 2^-25, which goes to zero, and the next larger one does not.
        let tie = divisor * 2f32.powi(-25);
        for tiny in [tie, -tie, f32::from_bits(1), -f32::MIN_POSITIVE] {
            let bytes = quantize_row(format, &block_of(&[0.0, tiny])).expect("finite");
            assert_eq!(bytes, zeros, "{format} {tiny:e}");
        }
        let kept = quantized(format, &[0.0, tie.next_up().next_up()]);
        assert_eq!(kept.scale.to_f64().abs(), 2f64.powi(-24), "{format}");
        assert_eq!(kept.quants[1], if format == Format::Q8_0 { 127 } else { -16 });
    }
}

/// Case B03 (a) and (b), and the range of `f16`.
#[test]
fn non_finite_values_and_scales_are_refused() {
    for format in Format::ALL {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let row = block_of(&[127.0, 0.0, 0.0, 0.0, 0.0, bad]);
            assert_eq!(quantize_row(format, &row), Err(Rejected::NonFinite { index: 5 }));
        }
        assert_eq!(quantize_row(format, &[0.0; 33]), Err(Rejected::PartialBlock { len: 33 }));
        // 65520 is the tie between the largest f16 and infinity.
        let divisor = if format == Format::Q8_0 { 127.0 } else { 16.0 };
        let mut row = block_of(&[1.0]);
        row.extend(block_of(&[65519.0 * divisor]));
        assert!(quantize_row(format, &row).is_ok(), "{format}");
        row[32] = 65520.0 * divisor;
        assert_eq!(quantize_row(format, &row), Err(Rejected::ScaleOverflow { block: 1 }));
    }
}

/// Case B05.
#[test]
fn integer_dots_are_exact_at_the_ends() {
    let constant = |quant| Block { scale: f16::ONE, quants: [quant; 32] };
    for (a, b, expected) in [
        (-1, -128, 4096),
        (-128, -1, 4096),
        (-128, -128, 524_288),
        (127, 127, 516_128),
        (127, -128, -520_192),
    ] {
        assert_eq!(block_dot(&constant(a), &constant(b)), expected, "{a} {b}");
    }
}

/// Case B07.
#[test]
fn q5_0_elements_and_fifth_bits_are_where_they_belong() {
    let mut bytes = vec![0u8; 22];
    bytes[..2].copy_from_slice(&0x3C00u16.to_le_bytes());
    bytes[2..6].copy_from_slice(&0x8000_0002u32.to_le_bytes());
    bytes[6 + 1] = 0x73;
    bytes[6 + 15] = 0x5A;
    let mut expected = [-16.0; 32];
    for (element, value) in [(1, 3.0), (15, -6.0), (17, -9.0), (31, 5.0)] {
        expected[element] = value;
    }
    assert_eq!(dequantize_row(Format::Q5_0, &bytes), expected);
    assert_eq!(Block::decode(Format::Q5_0, &bytes).encode(Format::Q5_0), bytes);
}

/// Case B08.
#[test]
fn the_q5_0_scale_has_the_sign_of_the_largest_value() {
    for (values, scale, quants, restored) in [
        (vec![-16.0, 15.0, 7.0, -8.0], 0x3C00, [0, 31, 23, 8], vec![-16.0, 15.0, 7.0, -8.0]),
        (vec![16.0, -15.0, -7.0, 8.0], 0xBC00, [0, 31, 23, 8], vec![16.0, -15.0, -7.0, 8.0]),
        (vec![16.0, -16.0], 0xBC00, [0, 31, 16, 16], vec![16.0, -15.0, 0.0, 0.0]),
        (vec![-16.0, 16.0], 0x3C00, [0, 31, 16, 16], vec![-16.0, 15.0, 0.0, 0.0]),
    ] {
        let block = quantized(Format::Q5_0, &values);
        assert_eq!(block.scale.to_bits(), scale, "{values:?}");
        assert_eq!(block.quants[..4], quants.map(|stored: i8| stored - 16), "{values:?}");
        assert!(block.quants[4..].iter().all(|&quant| quant == 0), "{values:?}");
        assert_eq!(block.values()[..4], restored[..], "{values:?}");
    }
}

/// Case B09.
#[test]
fn ties_round_to_even_in_q8_0_and_up_in_q5_0() {
    let values = [127.0, 0.5, 1.5, 2.5, -0.5, -2.5, 0.499_999_97, 126.5];
    let block = quantized(Format::Q8_0, &values);
    assert_eq!(block.scale, f16::ONE);
    assert_eq!(block.quants[..8], [127, 0, 2, 2, 0, -2, 0, 126]);
    let block = quantized(Format::Q5_0, &[16.0, -16.0, 0.5, -0.5]);
    assert_eq!(block.quants[..4], [0, 31, 16, 17].map(|stored: i8| stored - 16));
}

/// Case B18.
#[test]
fn rope_pairs_halves_or_neighbours() {
    let rotated = |pairing, mut head: [f64; 4], position| {
        Rope::new(pairing, 4, 1e4).rotate_head(position, &mut head);
        head
    };
    let (cos, sin) = (0.540_302_3, 0.841_471_0);
    for (pairing, head, expected) in [
        (Pairing::SplitHalf, [1.0, 0.0, 0.0, 0.0], [cos, 0.0, sin, 0.0]),
        (Pairing::SplitHalf, [0.0, 1.0, 0.0, 0.0], [0.0, 0.999_950_0, 0.0, 0.009_999_8]),
        (Pairing::Interleaved, [1.0, 0.0, 0.0, 0.0], [cos, sin, 0.0, 0.0]),
        (Pairing::Interleaved, [0.0, 1.0, 0.0, 0.0], [-sin, cos, 0.0, 0.0]),
    ] {
        let got = rotated(pairing, head, 1);
        for (got, expected) in got.into_iter().zip(expected) {
            near(got, expected, 5e-8);
        }
        assert_eq!(rotated(pairing, head, 0), head, "position 0 is the identity");
    }
}

/// Case B57: the angle of pair 1 depends on the base.
#[test]
fn rope_angles_follow_the_base() {
    for (base, expected) in [(1e6, 0.649_381_6), (1e4, 0.749_894_2)] {
        let rope = Rope::new(Pairing::SplitHalf, 64, base);
        near(rope.angle(1, 1), expected, 5e-8);
    }
}

/// Llama 3.1, pair 32 of heads of 128: 500000^(-1/2) turns 1.843849 times in 8192 positions, so 0.281283 of the way from
/// 1 to 4; (1 - s) / 8 + s = 0.371122. Qwen's YaRN: the ramp is from 23.596 rounded down to 39.651 rounded up.
#[test]
fn rope_scalings_by_hand() {
    let llama3 = Scaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, context: 8192.0 };
    let rope = Rope::new(Pairing::Interleaved, 128, 5e5);
    let kept = |rope: Rope, scaling, pair| {
        rope.with_scaling(scaling).angle(1000, pair) / rope.angle(1000, pair)
    };
    for (pair, expected) in [(0, 1.0), (28, 1.0), (32, 0.371_122_3), (35, 0.125), (63, 0.125)] {
        near(kept(rope, llama3, pair), expected, 5e-8);
    }
    let yarn = Scaling::llama_cpp_yarn(4.0, 32_768.0, (32.0, 1.0), 1.0, (1.0, 0.0));
    let rope = Rope::new(Pairing::SplitHalf, 128, 1e6);
    for (pair, expected) in [(23, 1.0), (31, 11.0 / 17.0), (40, 0.25), (63, 0.25)] {
        near(kept(rope, yarn, pair), expected, 1e-12);
    }
    near(rope.with_scaling(yarn).magnitude(), 1.138_629_436_112, 1e-12);
    let linear = rope.with_scaling(Scaling::linear(8.0));
    assert_eq!((linear.angle(800, 5), linear.magnitude()), (rope.angle(100, 5), 1.0));
    let mut head = [1.0, 0.0];
    Rope { factors: &[4.0], ..Rope::new(Pairing::SplitHalf, 2, 1e4) }.rotate_head(4, &mut head);
    near(head[0], 0.540_302_3, 5e-8);
}

/// Case B21.
#[test]
fn rmsnorm_uses_the_epsilon_it_is_given() {
    let input = [0.001; 896];
    for (eps, expected) in [(1e-6, std::f64::consts::FRAC_1_SQRT_2), (1e-5, 0.301_511_34)] {
        let got = rmsnorm(&input, &[1.0; 896], eps).expect("finite");
        // The epsilon is an f32, which is not exactly the decimal number.
        got.values.iter().for_each(|&y| near(y, expected, 2e-8));
    }
    let zeros = rmsnorm(&[0.0; 896], &[1.0; 896], 1e-6).expect("finite");
    assert!(zeros.values.iter().all(|&y| y == 0.0));
    assert_eq!(rmsnorm(&[0.0; 896], &[1.0; 896], 0.0), Err(Rejected::NormOfZero));
}

/// Case B22.
#[test]
fn rmsnorm_counts_every_element_at_any_magnitude() {
    let alternating: Vec<f64> = (0..896).map(|i| if i % 2 == 0 { 7e9 } else { -7e9 }).collect();
    let got = rmsnorm(&alternating, &[1.0; 896], 1e-6).expect("finite");
    got.values.iter().zip(&alternating).for_each(|(y, x)| near(*y, x.signum(), 1e-6));
    let mut tail = [0.0; 35];
    tail[34] = 35.0;
    let got = rmsnorm(&tail, &[1.0; 35], 0.0).expect("finite").values;
    near(got[34], 5.916_079_8, 5e-8);
    assert!(got[..34].iter().all(|&y| y == 0.0));
    let large = rmsnorm(&[1e18; 896], &[1.0; 896], 1e-6).expect("within f32");
    large.values.iter().for_each(|&y| near(y, 1.0, 1e-12));
    assert_eq!(rmsnorm(&[1e20; 896], &[1.0; 896], 1e-6), Err(Rejected::NormOverflow));
    let nan = [1.0, f64::NAN];
    assert_eq!(rmsnorm(&nan, &[1.0; 2], 1e-6), Err(Rejected::NonFinite { index: 1 }));
}

/// Case B23.
#[test]
fn attention_bears_logits_of_any_size() {
    let attention = Attention::new(1, 1, 64).expect("head counts");
    assert_eq!(attention.scale, 0.125);
    let q = [1000.0; 64];
    for key in [-0.025, -12.5] {
        let values = [[4.0; 64], [8.0; 64]].concat();
        let output = attention.attend(&q, &[key; 128], &values);
        assert_eq!(output, [6.0; 64], "{key}");
    }
    let mut keys = [12.5; 128];
    keys[64] = 12.492_187_5;
    assert_eq!(attention.scores(0, &q, &keys), [100_000.0, 99_999.023_437_5]);
    let output = attention.attend(&q, &keys, &[[0.0; 64], [1.0; 64]].concat());
    output.iter().for_each(|&x| near(x, 0.273_574_4, 5e-8));
}

/// Case B28.
#[test]
fn query_heads_share_kv_heads_by_global_numbers() {
    for (n_heads, n_kv_heads) in [(14, 2), (28, 4), (32, 8), (12, 12), (8, 1)] {
        let attention = Attention::new(n_heads, n_kv_heads, 4).expect("head counts");
        let values: Vec<f64> = (0..n_kv_heads).flat_map(|head| [(head + 1) as f64; 4]).collect();
        let q = vec![1.0; n_heads * 4];
        let output = attention.attend(&q, &values, &values);
        for (head, output) in output.chunks_exact(4).enumerate() {
            let expected = (head / (n_heads / n_kv_heads) + 1) as f64;
            assert_eq!(output, [expected; 4], "head {head} of ({n_heads}, {n_kv_heads})");
        }
    }
    for (n_heads, n_kv_heads) in [(15, 2), (2, 14), (14, 0), (0, 2)] {
        let got = Attention::new(n_heads, n_kv_heads, 64);
        assert_eq!(got, Err(Rejected::HeadCounts { n_heads, n_kv_heads }));
    }
}
