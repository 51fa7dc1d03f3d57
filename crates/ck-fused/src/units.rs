//! How attention is cut into units, and how a run of units becomes pieces that are served together.

use ck_ops::{Attention, WorkItem};
use std::ops::Range;

/// The units of some chunks: one query head over one chunk each.
///
/// They are numbered KV head by KV head, within one by chunk, within a chunk by query head. Neighbours so
/// share keys and values as far as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Units {
    n_heads: usize,
    /// Query heads of one KV head.
    group: usize,
    first_chunk: usize,
    n_chunks: usize,
}

impl Units {
    /// The units of all chunks of a context but the last, and those of the last one.
    pub(crate) fn of(attention: &Attention, positions: usize) -> [Self; 2] {
        let chunks = attention.n_chunks(positions);
        let units = |chunks| Self::new(attention.n_heads(), attention.group(), chunks);
        [units(0..chunks - 1), units(chunks - 1..chunks)]
    }

    /// The units of `chunks` for all query heads, `group` of which share a KV head.
    pub(crate) fn new(n_heads: usize, group: usize, chunks: Range<usize>) -> Self {
        Self { n_heads, group, first_chunk: chunks.start, n_chunks: chunks.len() }
    }

    /// Over how many chunks they are.
    pub(crate) fn n_chunks(self) -> usize {
        self.n_chunks
    }

    /// How many there are.
    pub(crate) fn count(self) -> usize {
        self.n_heads * self.n_chunks
    }

    /// The unit of a query head and one of the chunks, counted from the first of these chunks.
    pub(crate) fn number(self, head: usize, chunk: usize) -> usize {
        let (kv_head, within) = (head / self.group, head % self.group);
        (kv_head * self.n_chunks + chunk) * self.group + within
    }

    /// The query heads that a run of units needs; perhaps some more, so that they are one range.
    pub(crate) fn heads(self, units: Range<usize>) -> Range<usize> {
        if units.is_empty() {
            return 0..0;
        }
        let (first, last) = (self.piece(units.start), self.piece(units.end - 1));
        let group = |piece: WorkItem| piece.first_head / self.group;
        let in_one_chunk = group(first) == group(last) && first.chunk == last.chunk;
        if in_one_chunk || self.n_chunks == 1 {
            first.first_head..last.first_head + 1
        } else {
            group(first) * self.group..(group(last) + 1) * self.group
        }
    }

    /// A run of units as pieces: the units of one KV head and chunk together.
    pub(crate) fn pieces(self, units: Range<usize>) -> impl Iterator<Item = WorkItem> {
        let mut next = units.start;
        std::iter::from_fn(move || {
            if next >= units.end {
                return None;
            }
            let mut piece = self.piece(next);
            let end = (next - next % self.group + self.group).min(units.end);
            piece.n_heads = end - next;
            next = end;
            Some(piece)
        })
    }

    /// One unit.
    fn piece(self, unit: usize) -> WorkItem {
        let (row, within) = (unit / self.group, unit % self.group);
        let (kv_head, chunk) = (row / self.n_chunks, row % self.n_chunks);
        WorkItem {
            first_head: kv_head * self.group + within,
            n_heads: 1,
            chunk: self.first_chunk + chunk,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LayerShape, Scratch};
    use ck_ops::{CHUNK, partial_len};
    use ck_quant::BLOCK_LEN;
    use ck_threadpool::ThreadPool;
    use std::sync::Mutex;

    /// Every (head, chunk) of a run, one by one, out of its pieces.
    fn covered(units: Units, run: Range<usize>) -> Vec<(usize, usize)> {
        let pieces = units.pieces(run);
        pieces.flat_map(|piece| piece.heads().map(move |head| (head, piece.chunk))).collect()
    }

    #[test]
    fn the_pieces_of_all_shares_are_all_units_in_order() {
        for (n_heads, n_kv_heads) in [(14, 2), (9, 3), (32, 8), (8, 8), (11, 1)] {
            for chunks in [0..1, 0..5, 3..4, 7..7] {
                let units = Units::new(n_heads, n_heads / n_kv_heads, chunks.clone());
                let all = covered(units, 0..units.count());
                for (number, (head, chunk)) in all.iter().enumerate() {
                    assert_eq!(units.number(*head, chunk - chunks.start), number);
                }
                assert_eq!(all.len(), n_heads * chunks.len());
                for cut in 0..=units.count() {
                    let mut parts = covered(units, 0..cut);
                    parts.extend(covered(units, cut..units.count()));
                    assert_eq!(parts, all, "cut at {cut}");
                }
            }
        }
    }

    // More heads would be rotated for nothing.
    #[test]
    fn a_run_needs_no_more_heads_than_its_own_or_those_of_its_kv_heads() {
        let one_chunk = Units::new(14, 7, 3..4);
        assert_eq!(
            [one_chunk.heads(3..9), one_chunk.heads(8..9), one_chunk.heads(5..5)],
            [3..9, 8..9, 0..0]
        );
        // Five chunks of 7 units for each of the two KV heads.
        let chunks = Units::new(14, 7, 0..5);
        assert_eq!(chunks.heads(37..40), 9..12, "within one chunk");
        assert_eq!(chunks.heads(37..44), 7..14, "of one KV head");
        assert_eq!(chunks.heads(30..37), 0..14, "of both");
    }

    #[test]
    fn the_heads_of_a_run_are_among_those_that_are_rotated_for_it() {
        let units = Units::new(14, 7, 0..3);
        for start in 0..units.count() {
            for end in start..=units.count() {
                let heads = units.heads(start..end);
                let needed = covered(units, start..end);
                assert!(needed.iter().all(|(head, _)| heads.contains(head)), "{start}..{end}");
                assert!(heads.end <= 14);
            }
        }
    }

    /// What each member of a team does in the attention phase: positions attended to by a query head, and positions of a KV
    /// head read.
    fn work(attention: &Attention, positions: usize, members: usize) -> Vec<[usize; 2]> {
        let head_dim = attention.head_dim();
        let (embed, heads) = (BLOCK_LEN, attention.n_heads());
        let shape = LayerShape::new(embed, heads, attention.n_kv_heads(), head_dim).unwrap();
        let mut scratch = Scratch::<f32>::for_team(shape, positions, members).unwrap();
        let shared = scratch.share();
        let pool = ThreadPool::new(members).unwrap();
        let work = Mutex::new(vec![[0; 2]; members]);
        pool.run(|team| {
            let len = partial_len(head_dim);
            for (units, partials) in
                Units::of(attention, positions).into_iter().zip([&shared.full, &shared.last])
            {
                let elements = partials.range_of(team, units.count() * len);
                for piece in units.pieces(elements.start / len..elements.end / len) {
                    let visible = CHUNK.min(positions - piece.chunk * CHUNK);
                    let mine = &mut work.lock().unwrap()[team.index()];
                    mine[0] += piece.n_heads * visible;
                    mine[1] += visible;
                }
            }
        });
        work.into_inner().unwrap()
    }

    #[test]
    fn many_members_share_a_long_context_of_few_kv_heads_evenly() {
        for n_heads in [2, 4, 14, 16] {
            let attention = Attention::new(n_heads, 2, 64).unwrap();
            for positions in [16_384, 16_384 + 1, 16_384 + 17, 16_384 + 128] {
                let work = work(&attention, positions, 8);
                let sum = |what: usize| work.iter().map(|work| work[what]).sum::<usize>();
                assert_eq!(sum(0), n_heads * positions);
                let most = |what: usize| work.iter().map(|work| work[what]).max().unwrap();
                let limit = sum(0) as f64 / 8.0 * 1.15;
                assert!(most(0) as f64 <= limit, "{n_heads} heads at {positions}: {work:?}");
                // A chunk whose heads are cut among members is read by each: one at either end of a run, and one of
                // the last.
                let limit = (2 * positions).div_ceil(8) + 3 * CHUNK;
                assert!(most(1) <= limit, "{n_heads} heads at {positions}: {work:?}");
            }
        }
    }

    #[test]
    fn a_piece_stays_within_one_kv_head_and_chunk() {
        let units = Units::new(9, 3, 2..5);
        for piece in units.pieces(1..units.count() - 1) {
            assert!(piece.n_heads <= 3 - piece.first_head % 3);
            assert!((2..5).contains(&piece.chunk));
        }
    }
}
