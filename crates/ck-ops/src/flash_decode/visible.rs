//! Which positions of a chunk are attended to.

use crate::CHUNK;
use crate::kv_cache::PANEL;
use std::ops::Range;

/// The positions of one chunk that are attended to, counted from the chunk's start: some from the sinks, then
/// some from the window. Either may be empty, but not both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visible {
    /// From the sinks.
    pub(super) sinks: Range<usize>,
    /// From the window. It starts where the sinks end or later.
    pub(super) window: Range<usize>,
}

impl Visible {
    /// Of the chunk that starts at position `first`: what lies in `0..sinks` and in `window`, where
    /// `sinks <= window.start`.
    pub(super) fn new(first: usize, sinks: usize, window: Range<usize>) -> Self {
        let within = |position: usize| position.saturating_sub(first).min(CHUNK);
        Self { sinks: 0..within(sinks), window: within(window.start)..within(window.end) }
    }

    /// The visible positions in order.
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> + use<> {
        self.sinks.clone().chain(self.window.clone())
    }

    /// The first visible position.
    pub(super) fn first(&self) -> usize {
        if self.sinks.is_empty() { self.window.start } else { self.sinks.start }
    }

    /// The panels that hold visible positions, as two ranges in order that have none in common.
    pub(super) fn panels(&self) -> [Range<usize>; 2] {
        let panels = |range: &Range<usize>| match range.is_empty() {
            true => 0..0,
            false => range.start / PANEL..range.end.div_ceil(PANEL),
        };
        let (sinks, window) = (panels(&self.sinks), panels(&self.window));
        let start = window.start.max(sinks.end.min(window.end));
        [sinks, start..window.end]
    }

    /// The positions of those panels that are not visible.
    pub(super) fn gaps(&self) -> [Range<usize>; 3] {
        let positions = |panels: &Range<usize>| panels.start * PANEL..panels.end * PANEL;
        let [sinks, window] = self.panels();
        let (sinks, window) = (positions(&sinks), positions(&window));
        if self.window.is_empty() {
            return [self.sinks.end..sinks.end, 0..0, 0..0];
        }
        let before = window.start.min(self.window.start)..self.window.start;
        [self.sinks.end..sinks.end.min(self.window.start), before, self.window.end..window.end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with all kinds of chunks, and which of their positions are visible.
    fn on_many(check: impl Fn(Visible, [bool; CHUNK])) {
        for first in [0, CHUNK, 2 * CHUNK] {
            for sinks in [0, 1, 4, 15, 16, 17, CHUNK - 1, CHUNK, CHUNK + 3, 2 * CHUNK] {
                for start in [0, 5, 16, 18, 31, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7] {
                    for end in [start + 1, start + 17, start + CHUNK, start + 3 * CHUNK] {
                        let sinks = sinks.min(start);
                        let is_visible =
                            |i| first + i < sinks || (start..end).contains(&(first + i));
                        let visible: [bool; CHUNK] = std::array::from_fn(is_visible);
                        if visible.contains(&true) {
                            check(Visible::new(first, sinks, start..end), visible);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn positions_are_those_of_sinks_and_window_within_the_chunk() {
        on_many(|visible, expected| {
            let expected: Vec<usize> = (0..CHUNK).filter(|&i| expected[i]).collect();
            assert_eq!(visible.positions().collect::<Vec<_>>(), expected, "{visible:?}");
            assert_eq!(visible.first(), expected[0], "{visible:?}");
        });
    }

    #[test]
    fn panels_hold_every_visible_position_once_and_gaps_the_rest_of_them() {
        on_many(|visible, expected| {
            let is_needed = |panel: &usize| expected[panel * PANEL..][..PANEL].contains(&true);
            let needed: Vec<usize> = (0..CHUNK / PANEL).filter(is_needed).collect();
            let panels: Vec<usize> = visible.panels().into_iter().flatten().collect();
            assert_eq!(panels, needed, "{visible:?}");

            let positions = panels.iter().flat_map(|p| p * PANEL..(p + 1) * PANEL);
            let hidden: Vec<usize> = positions.filter(|&i| !expected[i]).collect();
            let gaps: Vec<usize> = visible.gaps().into_iter().flatten().collect();
            assert_eq!(gaps, hidden, "{visible:?}");
        });
    }
}
