//! The stages of a layer one by one, for those who compare them with something.

use crate::error::check_vector;
use crate::scratch::Scratch;
use crate::step::Step;
use crate::{DecodeLayer, LayerError, phase};
use ck_isa::Isa;
use ck_ops::{CacheElement, KvCache, RopeTable};
use ck_threadpool::solo;

/// Runs single stages of a layer on inputs of the caller's choice, with the very code that
/// [`DecodeLayer::decode`] runs.
///
/// Every method leaves its result in the scratch and hands it out. A cache is only read.
#[derive(Debug)]
pub struct Stages<'s, 'a, E: CacheElement> {
    layer: &'s DecodeLayer<'a>,
    isa: Isa,
    scratch: &'s mut Scratch<E>,
    /// Stands where a stage needs no cache.
    empty: KvCache<E>,
}

/// The projections of one token: `n_heads * head_dim` and twice `n_kv_heads * head_dim` elements.
#[derive(Clone, Copy, Debug)]
pub struct Qkv<'s> {
    /// The queries, normalized if the layer has a norm for them, and rotated.
    pub q: &'s [f32],
    /// The keys, normalized if the layer has a norm for them, and rotated.
    pub k: &'s [f32],
    /// The values.
    pub v: &'s [f32],
}

impl<'s, 'a, E: CacheElement> Stages<'s, 'a, E> {
    /// Stages of `layer` that work in `scratch`.
    ///
    /// # Errors
    ///
    /// A scratch that was made for another shape.
    pub fn new(
        layer: &'s DecodeLayer<'a>,
        isa: Isa,
        scratch: &'s mut Scratch<E>,
    ) -> Result<Self, LayerError> {
        layer.check_scratch(scratch)?;
        let empty = KvCache::with_capacity(layer.shape().cache()?, 0)?;
        Ok(Self { layer, isa, scratch, empty })
    }

    /// RMSNorm of `input`: `embed_dim` elements in and out.
    ///
    /// # Errors
    ///
    /// A wrong length; a number that is not finite, or too large to be quantized.
    pub fn norm(&mut self, input: &[f32]) -> Result<&[f32], LayerError> {
        check_vector("input", input, self.layer.shape().embed_dim())?;
        let me = &mut self.scratch.members[0];
        let step = Self::step(self.layer, self.isa, &self.empty);
        phase::norm(step, input, me)?;
        Ok(&me.normed)
    }

    /// The projections of a normalized input, Q and K normalized by head where the layer does so, and rotated to
    /// `position`.
    ///
    /// # Errors
    ///
    /// A wrong length; a position beyond the table; a number that is not finite.
    pub fn project(
        &mut self,
        normed: &[f32],
        rope: Option<&RopeTable>,
        position: usize,
    ) -> Result<Qkv<'_>, LayerError> {
        let shape = self.layer.shape();
        check_vector("normed", normed, shape.embed_dim())?;
        self.layer.check_rope(rope)?;
        let step = Step { rope, position, ..Self::step(self.layer, self.isa, &self.empty) };
        self.scratch.members[0].activations.quantize(self.isa, normed)?;
        let shared = self.scratch.share();
        solo(|team| {
            phase::project(team, step, &shared, shared.members.own(team))?;
            team.try_barrier()?;
            let me = shared.members.own(team);
            me.rotate_queries(step, shared.q.read(team), 0..shape.n_heads())?;
            me.rotate_keys(step, shared.k.read(team))
        })?;
        let Scratch { members, qkv, .. } = &*self.scratch;
        let v = &qkv[shape.q_dim() + shape.kv_dim()..];
        Ok(Qkv { q: &members[0].q, k: &members[0].kv[..shape.kv_dim()], v })
    }

    /// What all heads find for a rotated query, over the stored positions and the new `k` and `v`.
    ///
    /// # Errors
    ///
    /// A wrong length; a cache of another shape; a number that is not finite.
    pub fn attend(
        &mut self,
        cache: &KvCache<E>,
        q: &[f32],
        k: &[f32],
        v: &[f32],
    ) -> Result<&[f32], LayerError> {
        let shape = self.layer.shape();
        check_vector("q", q, shape.q_dim())?;
        check_vector("k", k, shape.kv_dim())?;
        check_vector("v", v, shape.kv_dim())?;
        self.layer.check_cache(cache)?;
        self.layer.check_position(cache.len(), self.scratch, None)?;
        // Normalized and rotated already, so the phase is run without norms and without a table.
        let step = Step { head_norms: [None; 2], ..Self::step(self.layer, self.isa, cache) };
        let (to_q, kv) = self.scratch.qkv.split_at_mut(shape.q_dim());
        let (to_k, to_v) = kv.split_at_mut(shape.kv_dim());
        to_q.copy_from_slice(q);
        to_k.copy_from_slice(k);
        to_v.copy_from_slice(v);
        let shared = self.scratch.share();
        solo(|team| {
            phase::attend(team, step, &shared, shared.members.own(team))?;
            team.try_barrier()?;
            phase::merge(team, step, &shared, shared.members.own(team))
        })?;
        Ok(&self.scratch.attn)
    }

    /// The O projection of the heads' results, its bias, and the residual.
    ///
    /// # Errors
    ///
    /// A wrong length; a number that is not finite.
    pub fn output(&mut self, attn: &[f32], residual: Option<&[f32]>) -> Result<&[f32], LayerError> {
        let shape = self.layer.shape();
        check_vector("attn", attn, shape.q_dim())?;
        if let Some(residual) = residual {
            check_vector("residual", residual, shape.embed_dim())?;
        }
        let step = Self::step(self.layer, self.isa, &self.empty);
        self.scratch.members[0].attn_activations.quantize(self.isa, attn)?;
        let shared = self.scratch.share();
        solo(|team| {
            let me = shared.members.own(team);
            phase::output(team, step, me, residual, &shared.output)
        })?;
        Ok(&self.scratch.output)
    }

    fn step<'c>(layer: &'c DecodeLayer<'a>, isa: Isa, cache: &'c KvCache<E>) -> Step<'c, E> {
        let (head_norms, position) = (layer.head_norms(), cache.len());
        Step { layer, isa, head_norms, rope: None, position, cache, observer: None }
    }
}
