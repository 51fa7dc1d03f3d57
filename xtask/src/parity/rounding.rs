//! What the rounding of keys and values to the cache's type may change about attention.

use super::Kv;
use super::recording::{Recording, Rows};
use ck_testing::bounds::{self, AttentionErrors};
use ck_testing::oracle::{Attention, CacheRounding, widen};

/// The recorded keys and values of the tokens so far, in f64, where the cache's type rounds them.
pub(super) struct History {
    rounding: CacheRounding,
    keys: Vec<f64>,
    values: Vec<f64>,
}

impl History {
    pub(super) fn new(kv: Kv) -> Self {
        let rounding = match kv {
            Kv::F32 => CacheRounding::None,
            Kv::F16 => CacheRounding::F16,
        };
        Self { rounding, keys: Vec::new(), values: Vec::new() }
    }

    /// What the rounding may add to the error of `token`'s attention, relative to the largest recorded number:
    /// the derived bound with it less the derived bound without it. 0 where nothing is rounded, or not all is
    /// recorded. Tokens are to be given in order.
    pub(super) fn rounding(&mut self, recording: &Recording<'_>, token: usize) -> f64 {
        let (Some(q), Some(k), Some(v), Some(attn)) =
            (&recording.q, &recording.k, &recording.v, &recording.attn)
        else {
            return 0.0;
        };
        if self.rounding == CacheRounding::None {
            return 0.0;
        }
        let row = |rows: &Rows| widen(rows.row(token));
        self.keys.extend(row(k));
        self.values.extend(row(v));
        let shape = recording.shape();
        let Ok(attention) = Attention::new(shape.n_heads(), shape.n_kv_heads(), shape.head_dim())
        else {
            return 0.0;
        };
        let bounds = |cache| {
            let errors = AttentionErrors { exp: 0.0, tanh: 0.0, additions: 0, rescales: 0, cache };
            bounds::attention(&attention, &errors, &row(q), &self.keys, &self.values)
        };
        let (with, without) = (bounds(self.rounding), bounds(CacheRounding::None));
        let added = with.iter().zip(&without).map(|(with, without)| with - without);
        let largest = row(attn).iter().fold(0f64, |largest, x| largest.max(x.abs()));
        added.fold(0.0, f64::max) / largest.max(f64::MIN_POSITIVE)
    }
}
