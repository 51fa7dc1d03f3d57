//! Files that are wrong, cut short, or made to harm: each gives an error that says where, quickly and
//! without memory.

use crate::ALLOCATOR;
use crate::files::{LayerFile, RawFile, SMALL, golden, one_tensor};
use ck_gguf::{AttentionLayer, Error, GgufFile, Place, Value};
use ck_ops::RopeTable;
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// The error of a file that must not open, after checking that finding it took little memory and time.
fn refused(bytes: &[u8]) -> Error {
    let mut quickest = Duration::MAX;
    let mut error = None;
    for _ in 0..3 {
        let start = Instant::now();
        let (result, used) = ALLOCATOR.on_this_thread(|| GgufFile::parse(bytes));
        quickest = quickest.min(start.elapsed());
        error = Some(result.expect_err("this file must not open"));
        assert!(used.peak_bytes < 1 << 20, "{used:?} for {error:?}");
    }
    assert!(quickest < Duration::from_millis(100), "{quickest:?} for {error:?}");
    error.expect("three errors")
}

// Case B47 (a), and the same for tensors.
#[test]
fn counts_are_not_believed() {
    let mut bytes = vec![0x47, 0x47, 0x55, 0x46, 3, 0, 0, 0];
    bytes.extend([0; 8]);
    bytes.extend([0, 0x65, 0xCD, 0x1D, 0, 0, 0, 0]);
    assert_error!(refused(&bytes), Error::Truncated { .. }, "500000000 entries", "found 0");

    for count in [1, 100_000, 1 << 32, u64::MAX] {
        let text = count.to_string();
        assert_error!(refused(&RawFile::new(0, count).0), Error::Truncated { .. }, &text);
        assert_error!(refused(&RawFile::new(count, 0).0), Error::Truncated { .. }, &text);
        let padded = RawFile::new(count, count).resize(4096);
        refused(&padded);
    }
}

// Case B47 (a): nor are counts that a large file might just hold.
#[test]
fn counts_that_fit_the_file_are_not_believed_either() {
    let refusal = refused(&RawFile::new(0, 200_000).resize(4 << 20));
    assert_error!(refusal, Error::NameLength { .. }, "entry 0");
    let refusal = refused(&RawFile::new(100_000, 0).resize(4 << 20));
    assert_error!(refusal, Error::NameLength { .. }, "tensor entry 0");
}

// Case B47 (b), (e).
#[test]
fn lengths_of_names_are_not_believed() {
    let key = RawFile::new(0, 1).u64(0xFFFF_FFFF_FFFF).0;
    assert_eq!(key.len(), 32);
    refused(&key);
    let key = RawFile::new(0, 1).u64(0xFFFF_FFFF_FFFF).resize(64);
    assert_error!(refused(&key), Error::NameLength { .. }, "entry 0", "281474976710655");
    let key = RawFile::new(0, 1).u64(65_535).resize(64);
    assert_error!(refused(&key), Error::Truncated { .. }, "entry 0", "65535");
    let key = RawFile::new(0, 1).string("").u32(4).u32(7).resize(64);
    assert_error!(refused(&key), Error::NameLength { len: 0, .. }, "entry 0");
    let tensor = RawFile::new(1, 0).tensor("", &[1], 0, 0).resize(128);
    assert_error!(refused(&tensor), Error::NameLength { len: 0, .. }, "tensor entry 0");
    let value = RawFile::new(0, 1).string("k").u32(8).u64(u64::MAX).0;
    assert_error!(refused(&value), Error::Truncated { .. }, "\"k\"", "18446744073709551615");
    let value = RawFile::new(0, 1).string("k").u32(8).string("").bytes(&[0xFF]).0;
    GgufFile::parse(&value).expect("bytes behind the last entry are nobody's");
}

// Case B47 (c).
#[test]
fn lengths_of_arrays_are_not_believed() {
    for element in 0..=12 {
        for len in [1, 1 << 32, 1 << 61, 1 << 62, u64::MAX] {
            let file = RawFile::new(0, 1).string("k").u32(9).u32(element).u64(len).0;
            assert_error!(refused(&file), Error::Truncated { .. }, "\"k\"");
        }
    }
}

// Case B47 (d): no recursion as deep as the file says.
#[test]
fn nested_arrays_end() {
    let nested = |depth: usize| {
        let file = RawFile::new(0, 1).string("k").u32(9);
        let file = (1..depth).fold(file, |file, _| file.u32(9).u64(1));
        file.u32(0).u64(0).0
    };
    assert_error!(refused(&nested(10_000)), Error::NestedTooDeep { limit: 4, .. }, "\"k\"");
    assert_error!(refused(&nested(5)), Error::NestedTooDeep { .. }, "\"k\"");
    GgufFile::parse(&nested(4)).expect("four arrays in one another");
}

// Case B47 (f).
#[test]
fn every_prefix_is_refused() {
    let file = RawFile::new(1, 3)
        .string("a.number")
        .u32(4)
        .u32(7)
        .string("a.text")
        .u32(8)
        .string("llama")
        .string("a.list")
        .u32(9)
        .u32(8)
        .u64(2)
        .string("x")
        .string("")
        .tensor("w", &[32, 2], 8, 0);
    let whole = file.0.len().next_multiple_of(32) + 68;
    let whole = file.resize(whole);
    GgufFile::parse(&whole).expect("the whole file opens");
    for len in 0..whole.len() {
        refused(&whole[..len]);
    }
}

// Case B47 (f), on a recording.
#[test]
fn prefixes_of_a_recording_are_refused() {
    let whole = std::fs::read(golden("qwen2-random-layer1.gguf")).expect("the recording");
    GgufFile::parse(&whole).expect("the whole file opens");
    let lengths = (0..4096).chain((4096..whole.len()).step_by(9973));
    for len in lengths.chain([whole.len() - 1]) {
        assert!(GgufFile::parse(&whole[..len]).is_err(), "{len} bytes");
    }
}

// Case B48, case B12: sizes are neither wrapped nor rounded.
#[test]
fn sizes_that_wrap_are_refused() {
    let with = |number, dims: &[u64]| {
        refused(&RawFile::new(1, 0).tensor("w", dims, number, 0).resize(4096))
    };
    let w = "\"w\"";
    assert_error!(
        with(0, &[4_611_686_018_427_387_903]),
        Error::OutsideFile { .. },
        w,
        "18446744073709551612"
    );
    assert_error!(with(8, &[1 << 32, 1 << 32]), Error::TooLarge { .. }, w, "4294967296");
    assert_error!(
        with(24, &[(1 << 63) - 1, 2]),
        Error::OutsideFile { .. },
        w,
        "18446744073709551614"
    );
    assert_error!(with(24, &[(1 << 63) - 1, 3]), Error::TooLarge { .. }, w);
    assert_error!(with(0, &[(1 << 63) - 1, 2]), Error::TooLarge { .. }, w);
    assert_error!(with(8, &[1 << 59]), Error::OutsideFile { .. }, w, "612489549322387456");
    assert_error!(with(8, &[48]), Error::PartialBlock { .. }, w, "48", "32", "Q8_0");
    assert_error!(with(8, &[33, 32]), Error::PartialBlock { .. }, w);
    for axis in 0..4 {
        let mut dims = [32; 4];
        dims[axis] = 0;
        assert_error!(with(0, &dims), Error::ZeroDimension { .. }, w, &format!("dimension {axis}"));
    }
    assert_error!(with(0, &[0]), Error::ZeroDimension { axis: 0, .. }, w);
}

// Case B48 for every type whose size is known.
#[test]
fn no_type_escapes_the_size_check() {
    let known = (0..64).filter(|&number| ck_gguf::TensorType::from_number(number).is_some());
    let mut checked = 0;
    for number in known {
        let huge: [&[u64]; 7] = [
            &[1 << 63],
            &[1 << 32, 1 << 32],
            &[1 << 62, 4],
            &[1 << 40, 1 << 23],
            &[256, 1 << 32, 1 << 32],
            &[256, 1 << 63, 1, 2],
            &[1 << 16, 1 << 16, 1 << 16, 1 << 16],
        ];
        for dims in huge {
            let file = RawFile::new(1, 0).tensor("w", dims, number, 0).resize(4096);
            assert_error!(
                refused(&file),
                Error::TooLarge { .. } | Error::OutsideFile { .. },
                "\"w\""
            );
        }
        checked += 1;
    }
    assert_eq!(checked, 34);
}

// Case B49.
#[test]
fn data_outside_the_file_is_refused() {
    assert_eq!(one_tensor(0).0.len(), 65);
    let whole = one_tensor(0).resize(164);
    let file = GgufFile::parse(&whole).expect("the whole file opens");
    assert_eq!(file.tensor("w").expect("the tensor").bytes(), &whole[96..]);
    GgufFile::parse(&one_tensor(0).resize(165)).expect("a byte more is nobody's");

    for len in [163, 96, 95, 65] {
        let error = refused(&one_tensor(0).resize(len));
        assert_error!(error, Error::OutsideFile { size: 68, .. }, "\"w\"");
    }
    for offset in [0xFFFF_FFFF_FFFF_FFA0, 32, 1 << 63, 96, 0xFFFF_FFFF_FFFF_FFE0] {
        let error = refused(&one_tensor(offset).resize(164));
        assert_error!(error, Error::OutsideFile { .. }, "\"w\"", &offset.to_string());
    }
    assert_error!(refused(&one_tensor(1).resize(1000)), Error::Misaligned { .. }, "\"w\"", "32");
}

// Case B52: refused before the dimensions are read.
#[test]
fn other_numbers_of_dimensions_are_refused() {
    for count in [0, 5, 9, u32::MAX] {
        let file = RawFile::new(1, 0).string("w").u32(count).resize(4096);
        assert_error!(refused(&file), Error::DimensionCount { .. }, "\"w\"", &count.to_string());
    }
}

// Case B53: a type of unknown size, at open.
#[test]
fn unknown_types_are_refused() {
    for number in [4, 5, 31, 36, 99, u32::MAX] {
        let file = RawFile::new(1, 0).tensor("blk.0.attn_q.weight", &[256], number, 0);
        let error = refused(&file.resize(4096));
        let name = "\"blk.0.attn_q.weight\"";
        assert_error!(error, Error::UnsupportedType { .. }, name, &number.to_string());
    }
    let value = RawFile::new(0, 1).string("k").u32(13).resize(64);
    assert_error!(refused(&value), Error::UnknownValueType { number: 13, .. }, "\"k\"");
}

// Case B58.
#[test]
fn other_versions_and_byte_orders_are_refused() {
    let with = |version: u32| {
        let mut bytes = RawFile::new(0, 0).0;
        bytes[4..8].copy_from_slice(&version.to_le_bytes());
        bytes
    };
    let swapped = with(u32::from_le_bytes([0, 0, 0, 3]));
    assert_error!(
        refused(&swapped),
        Error::ByteSwapped { found: 50_331_648 },
        "50331648",
        "swapped"
    );
    for version in [0, 1, 4, u32::MAX] {
        let error = refused(&with(version));
        assert_error!(error, Error::UnsupportedVersion { .. }, &version.to_string(), "2 or 3");
    }
    for version in [2, 3] {
        assert_eq!(GgufFile::parse(&with(version)).expect("this version").version(), version);
    }
    let mut bytes = RawFile::new(0, 0).0;
    bytes[..4].copy_from_slice(b"FUGG");
    assert_error!(refused(&bytes), Error::NotGguf { .. }, "FUGG");
    assert_error!(refused(b""), Error::Truncated { place: Place::Header, .. }, "header");
}

#[test]
fn alignments_are_powers_of_two() {
    let with = |value_type: u32, value: &[u8]| {
        let file = RawFile::new(1, 1).string("general.alignment").u32(value_type).bytes(value);
        file.tensor("w", &[1], 0, 0).resize(200)
    };
    for alignment in [0_u32, 3, 24, u32::MAX] {
        let error = refused(&with(4, &alignment.to_le_bytes()));
        assert_error!(error, Error::BadValue { .. }, "general.alignment", "power of two");
    }
    assert_error!(refused(&with(6, &32_f32.to_le_bytes())), Error::BadValue { .. }, "f32 32");
    assert_error!(
        refused(&with(4, &0x8000_0000_u32.to_le_bytes())),
        Error::OutsideFile { .. },
        "\"w\""
    );
    for (alignment, start) in [(1_u32, 90), (8, 96), (64, 128)] {
        let bytes = with(4, &alignment.to_le_bytes());
        let file = GgufFile::parse(&bytes).expect("a power of two");
        assert_eq!(file.alignment(), alignment as usize);
        let tensor = file.tensor("w").expect("the tensor");
        assert_eq!(tensor.bytes().as_ptr(), bytes[start..].as_ptr(), "alignment {alignment}");
    }
}

#[test]
fn names_appear_once() {
    let keys = RawFile::new(0, 2).string("k").u32(7).bytes(&[1]).string("k").u32(7).bytes(&[0]);
    assert_error!(refused(&keys.0), Error::Duplicate { .. }, "metadata key \"k\"");
    let tensors = RawFile::new(2, 0).tensor("w", &[1], 0, 0).tensor("w", &[1], 0, 0);
    assert_error!(refused(&tensors.resize(256)), Error::Duplicate { .. }, "tensor \"w\"");
}

#[test]
fn strings_are_utf8_and_errors_escape_them() {
    let value = RawFile::new(0, 1).string("a\nb").u32(8).u64(1).bytes(&[0xFF]).0;
    assert_error!(refused(&value), Error::NotUtf8 { .. }, "metadata key \"a\\nb\"");
    let key = RawFile::new(0, 1).u64(2).bytes(&[0xC0, 0x80]).u32(7).bytes(&[0]).0;
    assert_error!(refused(&key), Error::NotUtf8 { .. }, "metadata entry 0");
    let list = RawFile::new(0, 1).string("k").u32(9).u32(8).u64(1).u64(1).bytes(&[0xFF]).0;
    assert_error!(refused(&list), Error::NotUtf8 { .. }, "\"k\"");
}

/// Opens a file and uses everything in it.
fn use_all(bytes: &[u8]) {
    let Ok(file) = GgufFile::parse(bytes) else { return };
    for (key, value) in file.metadata().iter() {
        let _ = (format!("{value} {value:?}"), file.metadata().get::<u32>(key));
    }
    for tensor in file.tensors() {
        let rows = tensor.rows() as u64;
        let size = tensor.tensor_type().byte_size(tensor.columns() as u64, rows);
        assert_eq!(size, Some(tensor.bytes().len() as u64), "{tensor:?}");
        let _ = tensor.to_f32();
    }
    for layer in 0..2 {
        let (layer, used) = ALLOCATOR.on_this_thread(|| AttentionLayer::read(&file, layer));
        assert!(used.peak_bytes < 1 << 20, "{used:?} for {layer:?}");
        match layer {
            Ok(layer) => {
                RopeTable::new(layer.rope, 2).expect("a rotation that was checked");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

proptest! {
    #[test]
    fn changed_bytes_never_panic(
        changes in prop::collection::vec((0.0_f64..1.0, any::<u8>()), 1..12),
        header_only: bool,
        which in 0_usize..6,
        cut in prop::option::of(0.0_f64..1.0),
    ) {
        let mut bytes = layer_file(which);
        let range = if header_only { 1024 } else { bytes.len() };
        for (place, byte) in changes {
            bytes[(place * range as f64) as usize] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate((cut * bytes.len() as f64) as usize);
        }
        use_all(&bytes);
    }

    #[test]
    fn changed_words_never_panic(
        place in 0_usize..1024,
        which in 0_usize..6,
        word in prop::sample::select(vec![0, 1, 0xFFFF, u32::MAX.into(), 1 << 59, 1 << 63, u64::MAX]),
    ) {
        let mut bytes = layer_file(which);
        bytes[place..place + 8].copy_from_slice(&word.to_le_bytes());
        use_all(&bytes);
    }

    #[test]
    fn any_bytes_after_the_header_never_panic(
        tensors in 0_u64..4,
        entries in 0_u64..4,
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        use_all(&RawFile::new(tensors, entries).bytes(&rest).0);
    }
}

/// Valid files of more than 1024 bytes of header and data: with biases; with frequency factors, a scale and a linear
/// scaling; with YaRN and a soft cap; with windows; with norms of heads.
fn layer_file(which: usize) -> Vec<u8> {
    let mut file =
        LayerFile::new(["qwen2", "llama", "qwen2", "gemma2", "qwen3", "gemma3"][which], SMALL);
    match which {
        0 => file.add_biases(),
        1 => {
            file.set("llama.rope.scaling.factor", Value::F32(8.0));
            file.set("llama.attention.scale", Value::F32(0.25));
            file.add_f32("rope_freqs.weight", &[2.0; 16]);
        }
        2 => {
            file.set("qwen2.rope.scaling.type", Value::String("yarn"));
            file.set("qwen2.rope.scaling.factor", Value::F32(4.0));
            file.set("qwen2.rope.scaling.original_context_length", Value::U32(4096));
            file.set("qwen2.rope.scaling.yarn_beta_fast", Value::F32(32.0));
            file.set("qwen2.rope.scaling.yarn_log_multiplier", Value::F32(0.1));
            file.set("qwen2.attn_logit_softcapping", Value::F32(30.0));
        }
        3 => {
            file.set("gemma2.attention.sliding_window", Value::U32(16));
            file.set("gemma2.attention.sliding_window_pattern", Value::U32(2));
            file.set("gemma2.rope.freq_base_swa", Value::F32(1e4));
        }
        4 => file.set("qwen3.attention.key_length", Value::U32(32)),
        _ => file.set("gemma3.attention.sliding_window", Value::U32(16)),
    }
    file.bytes()
}
