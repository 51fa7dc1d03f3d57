//! Faults that users of other projects met.

use super::{Sample, attention};
use crate::testing::on_every_level;
use crate::{AttendScratch, CacheElement, KvCache, NewPosition, flash_decode};
use ck_isa::Isa;
use ck_testing::compare::assert_bits_eq;
use ck_testing::generate::Values;
use half::f16;

// Case B23.
#[test]
fn the_running_maximum_has_no_finite_start() {
    for key in [-0.025, -12.5] {
        let sample = Sample {
            attention: attention(1, 1, 64),
            keys: vec![key; 128],
            values: [[4.0; 64], [8.0; 64]].concat(),
            q: vec![1000.0; 64],
        };
        assert_eq!(sample.attention.scale(), 0.125);
        assert_eq!(sample.decode(&sample.stored::<f32>()), Ok(vec![6.0; 64]));
    }
    let mut sample = Sample {
        attention: attention(1, 1, 64),
        keys: vec![12.5; 128],
        values: [[0.0; 64], [1.0; 64]].concat(),
        q: vec![1000.0; 64],
    };
    sample.keys[64] = 12.492_187_5;
    for out in sample.decode(&sample.stored::<f32>()).unwrap() {
        assert!((out - 0.273_574_4).abs() < 1e-7, "{out}");
    }
}

/// The same cache after its unused rows were filled with NaN.
fn poisoned<E: CacheElement>(sample: &Sample, capacity: usize) -> (KvCache<E>, NewPosition<E>) {
    let shape = sample.attention.shape();
    let mut cache = KvCache::<E>::with_capacity(shape, capacity).unwrap();
    cache.fill_unused(f16::NAN);
    let mut new = NewPosition::new(shape).unwrap();
    for (index, (key, value)) in sample.rows().enumerate() {
        new.set(Isa::detect(), key, value).unwrap();
        if index + 1 < sample.positions() {
            cache.append(&new).unwrap();
        }
    }
    (cache, new)
}

// Case B25.
#[test]
fn what_lies_beyond_the_length_has_no_influence() {
    fn check<E: CacheElement>() {
        for positions in [1, 2, 3, 15, 16, 17, 31, 33, 127, 255, 256, 257, 300] {
            for head_dim in [6, 64] {
                let sample = Sample::new(attention(3, 1, head_dim), positions, Values::Normal, 1);
                let clean = sample.decode(&sample.stored::<E>()).unwrap();
                let got = sample.decode(&poisoned::<E>(&sample, 600)).unwrap();
                assert!(clean.iter().all(|x| x.is_finite()));
                assert_bits_eq(&format!("{} at {positions}", E::NAME), &got, &clean);
            }
        }
    }
    check::<f32>();
    check::<f16>();
}

// Case B25.
#[test]
fn after_a_reset_the_old_rows_have_no_influence() {
    let old = Sample::new(attention(2, 2, 64), 41, Values::HugeActivations, 2);
    let fresh = Sample::new(attention(2, 2, 64), 3, Values::Normal, 3);
    let (mut cache, mut new) = old.stored::<f32>();
    cache.clear();
    for (key, value) in fresh.rows() {
        if cache.len() + 1 < fresh.positions() {
            new.set(Isa::detect(), key, value).unwrap();
            cache.append(&new).unwrap();
        } else {
            new.set(Isa::detect(), key, value).unwrap();
        }
    }
    let got = fresh.decode(&(cache, new)).unwrap();
    assert_bits_eq("reset", &got, &fresh.decode(&fresh.stored::<f32>()).unwrap());
}

// Case B27.
#[test]
fn the_new_position_comes_after_those_stored_and_attends_to_itself() {
    let sample = Sample::new(attention(4, 2, 64), 10, Values::Normal, 4);
    let (mut cache, new) = poisoned::<f32>(&sample, 40);
    assert_eq!(cache.len(), 9);
    let with_new = sample.decode(&(cache, new)).unwrap();

    // The same context once everything is stored.
    let stored = poisoned::<f32>(&sample, 40);
    (cache, _) = stored;
    cache.append(&stored.1).unwrap();
    assert_eq!(cache.len(), 10);
    let out = on_every_level(|isa| {
        let mut scratch = AttendScratch::new(&sample.attention).unwrap();
        let mut out = vec![f32::NAN; sample.q.len()];
        flash_decode(isa, &sample.attention, &cache, None, &sample.q, &mut scratch, &mut out)?;
        Ok(out)
    });
    let out = out.unwrap();
    assert_bits_eq("stored", &out, &with_new);

    // The first token ever is its own value.
    let first = Sample::new(attention(4, 2, 64), 1, Values::Normal, 5);
    let out = first.decode(&poisoned::<f32>(&first, 40)).unwrap();
    for (head, out) in out.chunks(64).enumerate() {
        assert_bits_eq("first token", out, &first.values[head / 2 * 64..][..64]);
    }
}

// Case B28; fault 1 of the original: the KV head computed from a part of the heads.
#[test]
fn query_heads_read_the_kv_head_of_their_group() {
    for (n_heads, n_kv_heads) in [(14, 2), (28, 4), (32, 8), (12, 12), (8, 1)] {
        let attention = attention(n_heads, n_kv_heads, 64);
        let values = (0..n_kv_heads).flat_map(|g| vec![(g + 1) as f32; 64]).collect();
        let keys = vec![0.5; n_kv_heads * 64];
        let sample = Sample { attention, keys, values, q: vec![1.0; n_heads * 64] };
        let out = sample.decode(&sample.stored::<f16>()).unwrap();
        for (head, out) in out.chunks(64).enumerate() {
            assert_eq!(out, [(head / (n_heads / n_kv_heads) + 1) as f32; 64]);
        }
    }
}

#[test]
fn very_large_and_very_small_logits() {
    // One key stands out by far: the answer is its value, to the bit.
    let mut sample = Sample::new(attention(1, 1, 64), 700, Values::Normal, 6);
    sample.q = vec![1e15; 64];
    sample.keys.fill(-1e15);
    sample.keys[300 * 64..][..64].fill(1e15);
    let out = sample.decode(&sample.stored::<f32>()).unwrap();
    assert_bits_eq("largest", &out, &sample.values[300 * 64..][..64]);

    // All the same, whatever the size: the mean.
    for q in [0.0, 1e-40, 1e15] {
        sample.q.fill(q);
        sample.keys.fill(1.0);
        sample.values.fill(3.0);
        assert_eq!(sample.decode(&sample.stored::<f32>()), Ok(vec![3.0; 64]));
    }
}
