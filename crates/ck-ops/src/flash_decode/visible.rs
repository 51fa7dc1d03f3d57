//! Which positions of a chunk are attended to.

use crate::CHUNK;
use std::ops::Range;

/// The positions of one chunk that are attended to, counted from the chunk's start: some from the sinks, then
/// some from the window. Either may be empty, but not both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visible {
    ranges: [Range<usize>; 2],
}

impl Visible {
    /// Of the chunk that starts at position `first`: what lies in `0..sinks` and in `window`, where
    /// `sinks <= window.start`.
    pub(super) fn new(first: usize, sinks: usize, window: Range<usize>) -> Self {
        let within = |position: usize| position.saturating_sub(first).min(CHUNK);
        let sinks = 0..within(sinks);
        Self { ranges: [sinks, within(window.start)..within(window.end)] }
    }

    /// The visible positions in order.
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> + use<> {
        let [sinks, window] = self.ranges.clone();
        sinks.chain(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_sinks_and_window_within_the_chunk() {
        for first in [0, CHUNK, 2 * CHUNK] {
            for sinks in [0, 1, 4, CHUNK - 1, CHUNK, CHUNK + 3, 2 * CHUNK] {
                for start in [0, 5, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7] {
                    for end in [start + 1, start + 17, start + CHUNK, start + 3 * CHUNK] {
                        let sinks = sinks.min(start);
                        let expected: Vec<usize> = (0..CHUNK)
                            .filter(|i| first + i < sinks || (start..end).contains(&(first + i)))
                            .collect();
                        let got = Visible::new(first, sinks, start..end).positions();
                        assert_eq!(
                            got.collect::<Vec<_>>(),
                            expected,
                            "{first} {sinks} {start} {end}"
                        );
                    }
                }
            }
        }
    }
}
