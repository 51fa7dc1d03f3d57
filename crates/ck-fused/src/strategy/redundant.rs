//! One dispatch without a barrier: what a member needs of others' work it computes for itself.
//!
//! Every member computes the norm, K, V and the new row of the cache, and the queries of the heads that it
//! owns. It attends with those over the whole context, and multiplies its columns of the O projection. A
//! row of that product is one sum over all columns in order, so members hand over the exact integer
//! dot product of every row and block, and the caller alone adds them up after the dispatch.

use crate::phase;
use crate::runner::{Phase, Runner};
use crate::scratch::{Member, Scratch};
use crate::step::Step;
use crate::{LayerError, LayerShape};
use ck_ops::{CacheElement, Context, flash_decode_heads};
use ck_quant::BLOCK_LEN;
use ck_threadpool::{SharedSlice, split_blocks};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) fn run<E: CacheElement>(
    runner: &Runner<'_>,
    step: Step<'_, E>,
    scratch: &mut Scratch<E>,
    input: &[f32],
    residual: Option<&[f32]>,
) -> Result<(), LayerError> {
    let shape = step.layer.shape();
    let whole = shape.heads_in_whole_blocks();
    let dots_of_whole = whole * shape.head_dim() / BLOCK_LEN * shape.embed_dim();
    let members = SharedSlice::new(&mut scratch.members);
    let dots = SharedSlice::in_blocks(&mut scratch.dots, dots_of_whole);
    let size = AtomicUsize::new(0);
    runner.dispatch(|team| {
        size.store(team.size(), Ordering::Relaxed);
        let me = members.own(team);
        let heads = team.split_blocks(shape.n_heads(), whole);
        phase::norm(step, input, me)?;
        project(step, me, heads.clone())?;
        step.end(Phase::Project, team);
        attend(step, me, heads.clone())?;
        step.end(Phase::Attend, team);
        me.attn_activations.quantize(step.isa, &me.attn)?;
        let rows = 0..shape.embed_dim();
        let weights = step.layer.weights().o.weights();
        let blocks = blocks_of(shape, heads);
        weights.block_dots(step.isa, &me.attn_activations, rows, blocks, dots.part(team))?;
        step.end(Phase::Output, team);
        Ok(())
    })?;
    add_up(step, scratch, size.into_inner(), residual)
}

/// Computes K, V and the new row of the cache, and the queries of `heads`.
fn project<E: CacheElement>(
    step: Step<'_, E>,
    me: &mut Member<E>,
    heads: Range<usize>,
) -> Result<(), LayerError> {
    let shape = step.layer.shape();
    let weights = step.layer.weights();
    let all = 0..shape.kv_dim();
    let (k, v) = me.kv.split_at_mut(shape.kv_dim());
    phase::product(step.isa, &weights.k, &me.activations, all.clone(), k)?;
    phase::product(step.isa, &weights.v, &me.activations, all, v)?;
    step.rotate_keys(k, &mut me.head)?;
    me.new.set(step.isa, k, v)?;

    let rows = heads.start * shape.head_dim()..heads.end * shape.head_dim();
    let q = &mut me.q[rows.clone()];
    phase::product(step.isa, &weights.q, &me.activations, rows, q)?;
    step.rotate_queries(q, &mut me.head)
}

/// Attends with `heads` over the whole context. The results of the other heads become zeros: all of them are
/// quantized together, and what an earlier call left there may be beyond the scale.
fn attend<E: CacheElement>(
    step: Step<'_, E>,
    me: &mut Member<E>,
    heads: Range<usize>,
) -> Result<(), LayerError> {
    let head_dim = step.layer.shape().head_dim();
    let context = Context::new(step.cache, Some(&me.new))?;
    let elements = heads.start * head_dim..heads.end * head_dim;
    me.attn.fill(0.0);
    let (q, out) = (&me.q[elements.clone()], &mut me.attn[elements]);
    let attention = step.layer.attention();
    flash_decode_heads(step.isa, attention, context, heads, q, &mut me.attend, out)?;
    Ok(())
}

/// Adds the members' dot products up, in the order of the columns, then the bias and the residual.
fn add_up<E: CacheElement>(
    step: Step<'_, E>,
    scratch: &mut Scratch<E>,
    size: usize,
    residual: Option<&[f32]>,
) -> Result<(), LayerError> {
    let shape = step.layer.shape();
    let projection = &step.layer.weights().o;
    let rows = 0..shape.embed_dim();
    let Scratch { members, dots, output, .. } = scratch;
    output.fill(0.0);
    let mut dots = &dots[..];
    for (index, me) in members[..size].iter().enumerate() {
        let heads = split_blocks(shape.n_heads(), shape.heads_in_whole_blocks(), index, size);
        let blocks = blocks_of(shape, heads);
        let (mine, rest) = dots.split_at(blocks.len() * rows.len());
        let activations = &me.attn_activations;
        let weights = projection.weights();
        weights.add_block_dots(step.isa, activations, rows.clone(), blocks, mine, output)?;
        dots = rest;
    }
    phase::add_bias(projection, rows, output)?;
    match residual {
        Some(residual) => phase::add_residual(residual, output),
        None => Ok(()),
    }
}

/// The quantization blocks that the results of `heads` fill.
fn blocks_of(shape: LayerShape, heads: Range<usize>) -> Range<usize> {
    let block = |head: usize| head * shape.head_dim() / BLOCK_LEN;
    block(heads.start)..block(heads.end)
}
