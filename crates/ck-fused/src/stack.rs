//! A stack of layers in one dispatch: the hidden state goes from block to block with barriers only.

use crate::call::DecodeContext;
use crate::error::check_vector;
use crate::scratch::{PANEL_ROWS, Scratch, collect_exact, zeros};
use crate::strategy::{Ends, Source, block};
use crate::{DecodeLayer, LayerError, LayerShape, Runner};
use ck_ops::{CacheElement, KvCache, NewPosition, RopeTable};
use ck_threadpool::{SharedSlice, Team};

/// The memory that [`decode_stack`] works in.
#[derive(Debug)]
pub struct StackScratch<E: CacheElement> {
    scratch: Scratch<E>,
    /// The hidden state before and after a block, in turn.
    hidden: [Vec<f32>; 2],
    /// The new row of every layer's cache.
    new: Vec<NewPosition<E>>,
}

impl<E: CacheElement> StackScratch<E> {
    /// Scratch for `layers` layers of this shape, contexts of up to `positions` positions, and a team of up
    /// to `team` members.
    ///
    /// # Errors
    ///
    /// As [`Scratch::for_team`].
    pub fn new(
        shape: LayerShape,
        layers: usize,
        positions: usize,
        team: usize,
    ) -> Result<Self, LayerError> {
        Ok(Self {
            scratch: Scratch::for_team(shape, positions, team)?,
            hidden: [zeros(shape.embed_dim())?, zeros(shape.embed_dim())?],
            new: collect_exact(layers, || Ok(NewPosition::new(shape.cache()?)?))?,
        })
    }
}

/// What a stack works with besides its layers and the token.
#[derive(Debug)]
pub struct StackContext<'c, E: CacheElement> {
    /// The angles of the positions; none for a model that does not rotate.
    pub rope: Option<&'c RopeTable>,
    /// A cache for every layer, in the order of the layers.
    pub caches: &'c mut [KvCache<E>],
    /// The memory to work in.
    pub scratch: &'c mut StackScratch<E>,
}

/// Decodes one token through `layers` in one dispatch: for each, `hidden = hidden + attention_block(hidden)`,
/// then `between(team, layer, hidden)`.
///
/// `between` is run by every member of the team after each block, between two barriers, and may change
/// the hidden state, say by a feed-forward part. It may use barriers of its own, in all members alike. What
/// it returns as an error ends the call.
///
/// The blocks run as [`Strategy::Barrier`](crate::Strategy::Barrier), or serially where the runner has no
/// pool; the bits are those of [`DecodeLayer::decode_in_place`], layer after layer. All layers have one shape.
///
/// # Errors
///
/// A number of caches or of layers in the scratch other than that of the layers; a number that `between` left not finite; otherwise as
/// [`DecodeLayer::decode`]. Then `hidden` and all caches are as they were.
pub fn decode_stack<E, F>(
    runner: &Runner<'_>,
    layers: &[DecodeLayer<'_>],
    context: StackContext<'_, E>,
    hidden: &mut [f32],
    between: F,
) -> Result<(), LayerError>
where
    E: CacheElement,
    F: Fn(&mut Team<'_>, usize, &SharedSlice<'_, f32>) -> Result<(), LayerError> + Sync,
{
    let StackContext { rope, caches, scratch } = context;
    check(runner, layers, rope, caches, scratch)?;
    check_vector("hidden", hidden, scratch.scratch.shape().embed_dim())?;

    let StackScratch { scratch, hidden: states, new } = scratch;
    let new = &mut new[..layers.len()];
    states[0].copy_from_slice(hidden);
    let turns = states.each_mut().map(|state| SharedSlice::in_blocks(state, PANEL_ROWS));
    let (shared, kept) = (scratch.share(), SharedSlice::new(new));
    runner.dispatch(|team| {
        for (number, (layer, cache)) in layers.iter().zip(&*caches).enumerate() {
            let step = runner.step(layer, rope, cache);
            let [before, after] = [&turns[number % 2], &turns[(number + 1) % 2]];
            let before = Source::Shared(before);
            let ends = Ends { input: before, residual: Some(before), output: after };
            block(team, step, &shared, ends)?;
            team.try_barrier()?;
            if team.index() == 0 {
                let me = shared.members.own(team);
                std::mem::swap(&mut me.new, &mut kept.whole(team)[number]);
            }
            between(team, number, after)?;
            team.try_barrier()?;
        }
        Ok(())
    })?;
    let last = &states[layers.len() % 2];
    // What comes after the last block is in nobody's checks.
    check_vector("hidden after the last layer", last, last.len())?;
    for (cache, new) in caches.iter_mut().zip(&*new) {
        cache.append(new)?;
    }
    hidden.copy_from_slice(last);
    Ok(())
}

/// Checks everything that can be checked before the dispatch, so that afterwards all caches take their
/// new row, or none.
fn check<E: CacheElement>(
    runner: &Runner<'_>,
    layers: &[DecodeLayer<'_>],
    rope: Option<&RopeTable>,
    caches: &mut [KvCache<E>],
    scratch: &mut StackScratch<E>,
) -> Result<(), LayerError> {
    let (expected, prepared) = (layers.len(), scratch.new.len());
    if caches.len() != expected {
        return Err(LayerError::Length { what: "caches", expected, found: caches.len() });
    }
    if prepared < expected {
        return Err(LayerError::Length {
            what: "layers of the scratch",
            expected,
            found: prepared,
        });
    }
    for (layer, cache) in layers.iter().zip(caches) {
        DecodeContext { rope, cache, scratch: &mut scratch.scratch }.check(layer, runner)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_no_memory_holds_is_an_error() {
        let shape = LayerShape::new(64, 2, 1, 32).unwrap();
        for (layers, positions, team) in
            [(usize::MAX, 1, 1), (1 << 50, 1, 1), (1, usize::MAX, 1), (1, 1, usize::MAX)]
        {
            let error = StackScratch::<f32>::new(shape, layers, positions, team).unwrap_err();
            assert!(
                matches!(error, LayerError::TooLarge { .. } | LayerError::OutOfMemory { .. }),
                "{error}"
            );
        }
    }
}
