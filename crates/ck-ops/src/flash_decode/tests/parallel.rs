//! Whoever computes which piece, in which order: the same bits.

use super::{Sample, attention, windows, with_window};
use crate::flash_decode::{
    Attention, HEADS_PER_ITEM, WorkItem, attend_chunk, flash_decode_heads, merge, partial_len,
};
use crate::testing::{levels, on_every_level};
use crate::{AttendScratch, CHUNK, Context};
use ck_isa::Isa;
use ck_testing::compare::assert_bits_eq;
use ck_testing::generate::{Values, sizes};

/// Computes every item by itself, the last first, and merges.
fn by_items(isa: Isa, sample: &Sample) -> Vec<f32> {
    let attention = &sample.attention;
    let (cache, new) = sample.stored::<f32>();
    let context = Context::new(&cache, Some(&new)).unwrap();
    let positions = context.positions();
    let head_dim = attention.head_dim();
    let mut partials = vec![f32::NAN; attention.partials_len(positions)];
    for index in (0..attention.n_items(positions)).rev() {
        let mut scratch = AttendScratch::new(attention).unwrap();
        let item = attention.item(index, positions);
        let place = attention.partials_start(index, positions)
            ..attention.partials_start(index + 1, positions);
        let heads = item.heads();
        let q = &sample.q[heads.start * head_dim..heads.end * head_dim];
        let partials = &mut partials[place];
        attend_chunk(isa, attention, context, item, q, &mut scratch, partials).unwrap();
    }
    let mut scratch = AttendScratch::new(attention).unwrap();
    let mut out = vec![f32::NAN; sample.q.len()];
    for (head, out) in out.chunks_exact_mut(head_dim).enumerate() {
        let partials = attention.head_partials(&partials, head, positions);
        merge(isa, head_dim, partials, &mut scratch, out).unwrap();
    }
    out
}

#[test]
fn a_partial_is_a_head_and_two_numbers_in_whole_lines() {
    assert_eq!([1, 14, 15, 64, 128].map(partial_len), [16, 16, 32, 80, 144]);
    assert_eq!(
        [usize::MAX - 20, usize::MAX - 15, usize::MAX].map(partial_len),
        [usize::MAX - 15, usize::MAX, usize::MAX]
    );
}

#[test]
fn items_in_any_order_give_the_bits_of_the_serial_call() {
    for (heads, kv_heads) in sizes::HEAD_COUNTS.into_iter().chain([(20, 1), (36, 2), (17, 1)]) {
        for positions in [1, CHUNK, CHUNK + 1, 3 * CHUNK - 5] {
            let sample = Sample::new(attention(heads, kv_heads, 6), positions, Values::Normal, 1);
            let serial = sample.decode(&sample.stored::<f32>()).unwrap();
            for isa in levels() {
                let context = format!("{isa}: {heads} on {kv_heads}");
                assert_bits_eq(&context, &by_items(isa, &sample), &serial);
            }
        }
    }
    for window in windows() {
        let attention = with_window(attention(4, 2, 6), window);
        let sample = Sample::new(attention, 4 * CHUNK + 9, Values::Normal, 2);
        let serial = sample.decode(&sample.stored::<f32>()).unwrap();
        for isa in levels() {
            assert_bits_eq(&format!("{isa}: {window:?}"), &by_items(isa, &sample), &serial);
        }
    }
}

// Fault 1 of the original: a thread's part of the heads.
#[test]
fn any_part_of_a_groups_heads_gives_the_same_partials() {
    let sample = Sample::new(attention(30, 2, 10), CHUNK + 20, Values::Normal, 3);
    let (cache, new) = sample.stored::<f32>();
    let context = Context::new(&cache, Some(&new)).unwrap();
    // Without the padding, which means nothing.
    let attend = |first_head, n_heads, chunk| {
        let partials = on_every_level(|isa| {
            let mut scratch = AttendScratch::new(&sample.attention)?;
            let mut partials = vec![0.0; n_heads * partial_len(10)];
            let q = &sample.q[first_head * 10..][..n_heads * 10];
            let item = WorkItem { first_head, n_heads, chunk };
            attend_chunk(isa, &sample.attention, context, item, q, &mut scratch, &mut partials)?;
            Ok(partials.chunks(partial_len(10)).flat_map(|p| &p[..12]).copied().collect())
        });
        partials.unwrap()
    };
    for chunk in 0..2 {
        for kv_head in 0..2 {
            let whole = attend(15 * kv_head, 15, chunk);
            for first in 0..15 {
                for n in 1..=15 - first {
                    let part = attend(15 * kv_head + first, n, chunk);
                    assert_bits_eq("part", &part, &whole[first * 12..][..part.len()]);
                }
            }
        }
    }
}

// -1e-30 * 1e-30 is -0 in f32. Which of two zeros is the larger is nobody's to say, but it is in the partial.
#[test]
fn a_largest_score_of_zero_is_positive_on_every_level() {
    for keys in [[1e-30, -1e-30], [-1e-30, 1e-30], [-1e-30, -1e-30]] {
        let mut sample = Sample::new(attention(1, 1, 2), 2, Values::Normal, 5);
        sample.q = vec![0.0, 1e-30];
        sample.keys = vec![0.0, keys[0], 0.0, keys[1]];
        let (cache, new) = sample.stored::<f32>();
        let context = Context::new(&cache, Some(&new)).unwrap();
        let partials = on_every_level(|isa| {
            let mut scratch = AttendScratch::new(&sample.attention)?;
            let mut partials = vec![0.0; partial_len(2)];
            let item = sample.attention.item(0, 2);
            attend_chunk(
                isa,
                &sample.attention,
                context,
                item,
                &sample.q,
                &mut scratch,
                &mut partials,
            )?;
            Ok(partials[..4].to_vec())
        });
        assert_eq!(partials.unwrap()[2].to_bits(), 0, "{keys:?}");
    }
}

// A range may begin and end within the heads of a KV head, and hold more of them than an item.
#[test]
fn any_range_of_heads_gives_the_bits_of_the_serial_call() {
    let sample = Sample::new(attention(22, 2, 6), CHUNK + 20, Values::Normal, 4);
    let stored = sample.stored::<f32>();
    let serial = sample.decode(&stored).unwrap();
    let context = Context::new(&stored.0, Some(&stored.1)).unwrap();
    for isa in levels() {
        for start in 0..22 {
            for end in start..=22 {
                let (mut scratch, place) =
                    (AttendScratch::new(&sample.attention).unwrap(), start * 6..end * 6);
                let mut out = vec![f32::NAN; place.len()];
                let q = &sample.q[place.clone()];
                let heads = start..end;
                flash_decode_heads(
                    isa,
                    &sample.attention,
                    context,
                    heads,
                    q,
                    &mut scratch,
                    &mut out,
                )
                .unwrap();
                assert_bits_eq(&format!("{isa}: {start} to {end}"), &out, &serial[place]);
            }
        }
    }
}

#[test]
fn items_cover_every_head_and_visible_chunk_once() {
    for (heads, kv_heads) in [(14, 2), (9, 3), (20, 1), (17, 1), (64, 2), (1, 1)] {
        for window in windows() {
            for positions in [1, CHUNK, CHUNK + 1, 5 * CHUNK + 3] {
                let attention = with_window(attention(heads, kv_heads, 4), window);
                check_cover(&attention, positions);
            }
        }
    }
}

fn check_cover(attention: &Attention, positions: usize) {
    let n_chunks = attention.n_chunks(positions);
    let mut seen = vec![0; attention.n_heads() * n_chunks];
    let mut end = 0;
    for (index, item) in attention.items(positions).enumerate() {
        assert_eq!(attention.check_item(item, positions), Ok(()));
        assert!(item.n_heads <= HEADS_PER_ITEM);
        for head in item.heads() {
            seen[head * n_chunks + item.chunk] += 1;
        }
        assert_eq!(attention.partials_start(index, positions), end);
        end += item.n_heads * partial_len(attention.head_dim());
    }
    assert_eq!(end, attention.partials_len(positions));
    assert!(seen.iter().all(|&count| count == 1), "{attention:?} at {positions}");

    let visible: Vec<usize> = (0..n_chunks)
        .flat_map(|chunk| {
            let number = attention.chunk_number(chunk, positions);
            let visible: Vec<usize> = attention.visible(number, positions).positions().collect();
            assert!(!visible.is_empty(), "{attention:?} at {positions}: chunk {number} is empty");
            visible.into_iter().map(move |i| number * CHUNK + i)
        })
        .collect();
    let window = attention.window().unwrap_or(positions);
    let expected: Vec<usize> =
        (0..positions).filter(|p| p + window >= positions || *p < attention.sinks()).collect();
    assert_eq!(visible, expected, "{attention:?} at {positions}");
}
