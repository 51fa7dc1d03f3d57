//! What is refused, and that nothing has then changed.

use super::{Sample, attention};
use crate::flash_decode::{WorkItem, attend_chunk, flash_decode_heads, merge, partial_len};
use crate::testing::levels;
use crate::{AttendScratch, Attention, CacheShape, Context, KvCache, NewPosition, OpError};
use crate::{CHUNK, flash_decode};
use ck_isa::Isa;
use ck_testing::generate::{Values, sizes};

// Case B28.
#[test]
fn shapes_that_make_no_sense_are_refused() {
    for (n_heads, n_kv_heads) in sizes::BAD_HEAD_COUNTS {
        let error = Attention::new(n_heads, n_kv_heads, 64).unwrap_err();
        let expected = match (n_heads, n_kv_heads) {
            (_, 0) => OpError::Zero { what: "n_kv_heads" },
            (0, _) => OpError::Zero { what: "n_heads" },
            _ => OpError::HeadGroups { n_heads, n_kv_heads },
        };
        assert_eq!(error, expected);
    }
    assert_eq!(Attention::new(2, 1, 63), Err(OpError::Odd { what: "head_dim", found: 63 }));
    assert_eq!(Attention::new(2, 1, 0), Err(OpError::Zero { what: "head_dim" }));
    assert!(matches!(Attention::new(2, 1, usize::MAX - 1), Err(OpError::SizeOverflow { .. })));
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(matches!(attention(1, 1, 2).with_scale(bad), Err(OpError::ScoreScale { .. })));
        assert!(matches!(attention(1, 1, 2).with_soft_cap(bad), Err(OpError::SoftCap { .. })));
    }
    for bad in [0.0, -50.0] {
        assert!(matches!(attention(1, 1, 2).with_soft_cap(bad), Err(OpError::SoftCap { .. })));
    }
    assert!(matches!(attention(1, 1, 2).with_window(0), Err(OpError::Zero { .. })));
}

#[test]
fn arguments_that_do_not_fit_each_other_are_refused() {
    let isa = Isa::detect();
    let sample = Sample::new(attention(4, 2, 8), 5, Values::Normal, 1);
    let (cache, new) = sample.stored::<f32>();
    let mut scratch = AttendScratch::new(&sample.attention).unwrap();
    let mut out = [7.0; 32];

    for len in [0, 31] {
        let q = &sample.q[..len];
        let error = OpError::Length { what: "queries", expected: 32, found: len };
        let result =
            flash_decode(isa, &sample.attention, &cache, Some(&new), q, &mut scratch, &mut out);
        assert_eq!(result, Err(error));
    }
    let short = &mut out[..31];
    let result =
        flash_decode(isa, &sample.attention, &cache, Some(&new), &sample.q, &mut scratch, short);
    assert!(matches!(result, Err(OpError::Length { what: "attention output", .. })));

    let other = NewPosition::new(CacheShape::new(1, 8).unwrap()).unwrap();
    let result = flash_decode(
        isa,
        &sample.attention,
        &cache,
        Some(&other),
        &sample.q,
        &mut scratch,
        &mut out,
    );
    assert!(matches!(result, Err(OpError::Shape { what: "new position", .. })));

    let empty = KvCache::<f32>::with_capacity(sample.attention.shape(), 4).unwrap();
    let result =
        flash_decode(isa, &sample.attention, &empty, None, &sample.q, &mut scratch, &mut out);
    assert_eq!(result, Err(OpError::EmptyContext));

    let wider = attention(4, 1, 8);
    let result = flash_decode(isa, &wider, &cache, None, &sample.q, &mut scratch, &mut out);
    assert!(matches!(result, Err(OpError::Shape { what: "kv cache", .. })));

    let mut other = AttendScratch::new(&attention(2, 2, 8)).unwrap();
    let result =
        flash_decode(isa, &sample.attention, &cache, Some(&new), &sample.q, &mut other, &mut out);
    assert_eq!(result, Err(OpError::Scratch { expected: (4, 8), found: (2, 8) }));
    assert_eq!(out, [7.0; 32]);
}

// Fault 8 of the original: NaN and infinity vanish.
#[test]
fn a_query_that_is_not_finite_is_named_and_leaves_the_output_alone() {
    for bad in Values::NON_FINITE {
        for (soft_cap, isa) in [None, Some(50.0)]
            .into_iter()
            .flat_map(|cap| levels().into_iter().map(move |isa| (cap, isa)))
        {
            let mut attention = attention(4, 2, 8);
            if let Some(soft_cap) = soft_cap {
                attention = attention.with_soft_cap(soft_cap).unwrap();
            }
            let mut sample = Sample::new(attention, CHUNK + 40, Values::Normal, 2);
            sample.q[2 * 8 + 5] = bad;
            let (cache, new) = sample.stored::<f32>();
            let mut scratch = AttendScratch::new(&sample.attention).unwrap();
            let mut out = [7.0; 32];
            let error = flash_decode(
                isa,
                &sample.attention,
                &cache,
                Some(&new),
                &sample.q,
                &mut scratch,
                &mut out,
            );
            let Err(OpError::NonFiniteScore { head: 2, position: 0, score }) = error else {
                panic!("{error:?}")
            };
            assert!(!score.is_finite());
            assert_eq!(out, [7.0; 32]);
        }
    }
}

// The 13th head of a part that begins with head 15: in the part's second block of 8 heads.
#[test]
fn the_head_of_a_query_that_is_not_finite_counts_from_the_first_of_all() {
    let mut sample = Sample::new(attention(30, 2, 8), 9, Values::Normal, 6);
    sample.q[27 * 8 + 3] = f32::NAN;
    let (cache, new) = sample.stored::<f32>();
    let context = Context::new(&cache, Some(&new)).unwrap();
    for isa in levels() {
        let mut scratch = AttendScratch::new(&sample.attention).unwrap();
        let mut partials = vec![0.0; 15 * partial_len(8)];
        let item = WorkItem { first_head: 15, n_heads: 15, chunk: 0 };
        let q = &sample.q[15 * 8..];
        let result =
            attend_chunk(isa, &sample.attention, context, item, q, &mut scratch, &mut partials);
        let Err(OpError::NonFiniteScore { head: 27, position: 0, score }) = result else {
            panic!("{result:?}")
        };
        assert!(score.is_nan());
    }
}

#[test]
fn heads_that_do_not_exist_are_refused() {
    let sample = Sample::new(attention(6, 2, 4), 5, Values::Normal, 7);
    let (cache, new) = sample.stored::<f32>();
    let context = Context::new(&cache, Some(&new)).unwrap();
    let mut scratch = AttendScratch::new(&sample.attention).unwrap();
    let mut out = [7.0; 24];
    for (start, end) in [(0, 7), (6, 7), (4, 3), (usize::MAX, 0)] {
        let n_heads = usize::saturating_sub(end, start);
        let values = 4 * n_heads.min(6);
        let result = flash_decode_heads(
            Isa::detect(),
            &sample.attention,
            context,
            start..end,
            &sample.q[..values],
            &mut scratch,
            &mut out[..values],
        );
        let error = OpError::WorkItemHeads { first_head: start, n_heads, group: 3, total: 6 };
        assert_eq!(result, Err(error));
        assert_eq!(out, [7.0; 24]);
    }
}

#[test]
fn a_score_that_overflows_is_named() {
    let mut sample = Sample::new(attention(1, 1, 2), CHUNK + 40, Values::Zeros, 3);
    sample.q = vec![1e30, 1.0];
    sample.keys[2 * (CHUNK + 17)] = -1e30;
    let error = sample.decode(&sample.stored::<f32>()).unwrap_err();
    let position = CHUNK + 17;
    assert_eq!(error, OpError::NonFiniteScore { head: 0, position, score: f32::NEG_INFINITY });
    assert!(error.to_string().contains("position 273"), "{error}");

    // The new position's own.
    sample.keys[2 * (CHUNK + 17)] = 0.0;
    sample.keys[2 * (CHUNK + 39)] = 1e30;
    let error = sample.decode(&sample.stored::<f32>()).unwrap_err();
    let position = CHUNK + 39;
    assert_eq!(error, OpError::NonFiniteScore { head: 0, position, score: f32::INFINITY });
}

#[test]
fn a_result_that_overflows_is_an_error() {
    for positions in [3, CHUNK + 3] {
        let mut sample = Sample::new(attention(2, 1, 4), positions, Values::Zeros, 4);
        for row in sample.values.chunks_mut(4) {
            row[2] = f32::MAX;
        }
        let error = sample.decode(&sample.stored::<f32>()).unwrap_err();
        assert_eq!(error, OpError::NonFiniteResult { head: 0, dim: 2 });
    }
}

#[test]
fn work_items_that_do_not_exist_are_refused() {
    let sample = Sample::new(attention(6, 2, 4), CHUNK + 1, Values::Normal, 5);
    let (cache, new) = sample.stored::<f32>();
    let context = Context::new(&cache, Some(&new)).unwrap();
    let mut scratch = AttendScratch::new(&sample.attention).unwrap();
    let mut attend = |(first_head, n_heads, chunk), q: usize, partials: usize| {
        let mut buffer = vec![0.0; partials * partial_len(4)];
        let item = WorkItem { first_head, n_heads, chunk };
        let q = &sample.q[..q * 4];
        attend_chunk(Isa::detect(), &sample.attention, context, item, q, &mut scratch, &mut buffer)
    };
    assert_eq!(attend((1, 2, 1), 2, 2), Ok(()));
    assert_eq!(attend((1, 2, 2), 2, 2), Err(OpError::NoSuchChunk { chunk: 2, n_chunks: 2 }));
    for (first_head, n_heads) in [(0, 0), (0, 4), (2, 2), (5, 2), (6, 1), (usize::MAX, 1)] {
        assert_eq!(
            attend((first_head, n_heads, 0), 2, 2),
            Err(OpError::WorkItemHeads { first_head, n_heads, group: 3, total: 6 })
        );
    }
    for (q, partials) in [(1, 2), (3, 2), (2, 1), (2, 3)] {
        assert!(matches!(attend((1, 2, 0), q, partials), Err(OpError::Length { .. })));
    }
}

// What the constructor lets through has no size that overflows, whatever the context.
#[test]
fn numbers_beyond_the_machine_are_refused_or_the_largest() {
    for (n_heads, n_kv_heads, head_dim) in
        [(1, 1, 1 << 61), (1 << 40, 1, 2), (usize::MAX, usize::MAX, 2), (1 << 62, 1 << 62, 2)]
    {
        let result = Attention::new(n_heads, n_kv_heads, head_dim);
        assert!(matches!(result, Err(OpError::SizeOverflow { .. })), "{result:?}");
    }
    let many = Attention::new(1 << 58, 1 << 58, 2).unwrap();
    assert_eq!((many.n_items(usize::MAX), many.partials_len(usize::MAX)), (usize::MAX, usize::MAX));
    let last = many.item((1 << 58) - 1, 1);
    assert_eq!(last, WorkItem { first_head: (1 << 58) - 1, n_heads: 1, chunk: 0 });
    let beyond = WorkItem { first_head: usize::MAX, n_heads: 2, chunk: 0 };
    assert!(beyond.heads().is_empty());
    let mut scratch = AttendScratch::new(&attention(1, 1, 4)).unwrap();
    let merged = merge(Isa::detect(), usize::MAX, [], &mut scratch, &mut []);
    assert!(matches!(merged, Err(OpError::Length { .. })), "{merged:?}");
}

#[test]
fn partials_whose_weights_have_no_sum_are_refused() {
    let mut scratch = AttendScratch::new(&attention(1, 1, 4)).unwrap();
    for (max, sum) in
        [(0.0, 0.0), (0.0, f32::NAN), (f32::NAN, 1.0), (0.0, f32::INFINITY), (0.0, -1.0)]
    {
        let mut partial = vec![0.0; partial_len(4)];
        partial[4..6].copy_from_slice(&[max, sum]);
        for isa in levels() {
            let mut out = [7.0; 4];
            let pair = [&partial[..], &partial[..]];
            let merged = merge(isa, 4, pair, &mut scratch, &mut out);
            assert_eq!(
                merged,
                Err(OpError::NonFiniteResult { head: 0, dim: 0 }),
                "{isa}: {max} {sum}"
            );
            assert_eq!(out, [7.0; 4]);
        }
    }
}

#[test]
fn merging_nothing_or_too_little_is_refused() {
    let attention = attention(1, 1, 4);
    let mut scratch = AttendScratch::new(&attention).unwrap();
    let mut out = [7.0; 4];
    let partial = vec![1.0; partial_len(4)];
    let mut merge = |partials: &[&[f32]], out: &mut [f32]| {
        merge(Isa::detect(), 4, partials.iter().copied(), &mut scratch, out)
    };
    assert_eq!(merge(&[], &mut out), Err(OpError::EmptyContext));
    assert!(matches!(merge(&[&partial, &partial[1..]], &mut out), Err(OpError::Length { .. })));
    assert!(matches!(merge(&[&partial], &mut out[1..]), Err(OpError::Length { .. })));
    assert_eq!(out, [7.0; 4]);
    assert_eq!(merge(&[&partial, &partial], &mut out), Ok(()));
    assert_eq!(out, [1.0; 4]);
}
