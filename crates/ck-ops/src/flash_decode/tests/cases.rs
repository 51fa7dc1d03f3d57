//! Faults that users of other projects met.

use super::{Sample, attention};
use crate::testing::on_every_level;
use crate::{AttendScratch, CacheElement, KvCache, NewPosition, Q8_0, flash_decode};
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
    fn check<E: CacheElement>(head_dims: [usize; 2]) {
        for positions in [1, 2, 3, 15, 16, 17, 31, 33, 127, 255, 256, 257, 300] {
            for head_dim in head_dims {
                let sample = Sample::new(attention(3, 1, head_dim), positions, Values::Normal, 1);
                let clean = sample.decode(&sample.stored::<E>()).unwrap();
                let got = sample.decode(&poisoned::<E>(&sample, 600)).unwrap();
                assert!(clean.iter().all(|x| x.is_finite()));
                assert_bits_eq(&format!("{} at {positions}", E::NAME), &got, &clean);
            }
        }
    }
    check::<f32>([6, 64]);
    check::<f16>([6, 64]);
    check::<Q8_0>([32, 96]);
}

// Case B25.
#[test]
fn after_a_reset_the_old_rows_have_no_influence() {
    fn check<E: CacheElement>(old: &Sample) {
        let fresh = Sample::new(attention(2, 2, 64), 3, Values::Normal, 3);
        let (mut cache, mut new) = old.stored::<E>();
        cache.clear();
        for (key, value) in fresh.rows() {
            new.set(Isa::detect(), key, value).unwrap();
            if cache.len() + 1 < fresh.positions() {
                cache.append(&new).unwrap();
            }
        }
        let got = fresh.decode(&(cache, new)).unwrap();
        assert_bits_eq("reset", &got, &fresh.decode(&fresh.stored::<E>()).unwrap());
    }
    let old = Sample::new(attention(2, 2, 64), 41, Values::HugeActivations, 2);
    check::<f32>(&old);
    check::<f16>(&Sample::new(attention(2, 2, 64), 41, Values::Normal, 2));
    check::<Q8_0>(&old);
}

// Case B27.
#[test]
fn the_new_position_comes_after_those_stored_and_attends_to_itself() {
    new_comes_last::<f32>();
    new_comes_last::<f16>();
    new_comes_last::<Q8_0>();
}

fn new_comes_last<E: CacheElement>() {
    let sample = Sample::new(attention(4, 2, 64), 10, Values::Normal, 4);
    let (mut cache, new) = poisoned::<E>(&sample, 40);
    assert_eq!(cache.len(), 9);
    let with_new = sample.decode(&(cache, new)).unwrap();

    // The same context once everything is stored.
    let stored = poisoned::<E>(&sample, 40);
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

    // The first token ever is its own value, as stored.
    let first = Sample::new(attention(4, 2, 64), 1, Values::Normal, 5);
    let (cache, new) = poisoned::<E>(&first, 40);
    let mut value = [0.0; 64];
    let out = first.decode(&(cache, new)).unwrap();
    let (_, new) = first.stored::<E>();
    for (head, out) in out.chunks(64).enumerate() {
        new.value(head / 2, &mut value).unwrap();
        assert_bits_eq("first token", out, &value);
    }
}

// Case B28; fault 1 of the original: the KV head computed from a part of the heads.
#[test]
fn query_heads_read_the_kv_head_of_their_group() {
    fn check<E: CacheElement>() {
        for (n_heads, n_kv_heads) in [(14, 2), (28, 4), (32, 8), (12, 12), (8, 1)] {
            let attention = attention(n_heads, n_kv_heads, 64);
            // Multiples of 127, which blocks of Q8_0 hold exactly.
            let value = |kv_head: usize| 127.0 * (kv_head + 1) as f32;
            let values = (0..n_kv_heads).flat_map(|kv_head| vec![value(kv_head); 64]).collect();
            let keys = vec![0.5; n_kv_heads * 64];
            let sample = Sample { attention, keys, values, q: vec![1.0; n_heads * 64] };
            let out = sample.decode(&sample.stored::<E>()).unwrap();
            for (head, out) in out.chunks(64).enumerate() {
                assert_eq!(out, [value(head / (n_heads / n_kv_heads)); 64]);
            }
        }
    }
    check::<f32>();
    check::<f16>();
    check::<Q8_0>();
}

#[test]
fn very_large_and_very_small_logits() {
    check_logits::<f32>(1e15);
    check_logits::<f16>(6e4);
    check_logits::<Q8_0>(8e6);
}

fn check_logits<E: CacheElement>(key: f32) {
    // One key stands out by far: the answer is its value, to the bit.
    let mut sample = Sample::new(attention(1, 1, 64), 700, Values::Normal, 6);
    sample.q = vec![1e30 / key; 64];
    sample.keys.fill(-key);
    sample.keys[300 * 64..][..64].fill(key);
    let stored = sample.stored::<E>();
    let mut value = [0.0; 64];
    stored.0.value(0, 300, &mut value).unwrap();
    assert_bits_eq(E::NAME, &sample.decode(&stored).unwrap(), &value);

    // All the same, whatever the size: the mean.
    for (q, key) in [(0.0, 1.0), (1e-40, 1.0), (1e15, 1.0), (1e15, 1e-40), (1e20, key)] {
        sample.q.fill(q);
        sample.keys.fill(key);
        sample.values.fill(3.0 * 127.0);
        assert_eq!(sample.decode(&sample.stored::<E>()), Ok(vec![3.0 * 127.0; 64]), "{q} {key}");
    }
}
