//! Fair splits of a range among the members of a team.

use std::ops::Range;

/// Member `index`'s share of `0..len` among `size`: whole, in order, sizes differing by at most one.
pub(crate) fn split(len: usize, index: usize, size: usize) -> Range<usize> {
    if index >= size {
        return len..len;
    }
    let (base, extra) = (len / size, len % size);
    let start = index * base + index.min(extra);
    start..start + base + usize::from(index < extra)
}

/// The share of `0..len` of member `index` among `size`, in whole blocks of `block` elements: what
/// [`Team::split_blocks`](crate::Team::split_blocks) gives that member.
///
/// For the caller of a dispatch that must know afterwards who did what. The last block may be short and
/// belongs to the last member that gets any. A member that is none of `size` gets nothing.
///
/// # Panics
///
/// Panics if `block` or `size` is 0.
#[must_use]
pub fn split_blocks(len: usize, block: usize, index: usize, size: usize) -> Range<usize> {
    assert!(size > 0, "a split needs a team of at least 1 member, found 0");
    assert!(block > 0, "a split in blocks needs a block of at least 1 element, found 0");
    let blocks = split(len.div_ceil(block), index, size);
    blocks.start.saturating_mul(block).min(len)..blocks.end.saturating_mul(block).min(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Case B11: no remainder is dropped, for any number of members.
    #[test]
    fn shares_cover_every_element_once_and_in_order() {
        for len in [0, 1, 7, 13, 64, 897] {
            for size in [1, 2, 3, 4, 5, 6, 8, 16] {
                let shares: Vec<_> = (0..size).map(|index| split(len, index, size)).collect();
                let all: Vec<_> = shares.iter().cloned().flatten().collect();
                assert_eq!(all, (0..len).collect::<Vec<_>>(), "{len} among {size}");
                let longest = shares.iter().map(Range::len).max();
                let shortest = shares.iter().map(Range::len).min();
                assert!(longest.unwrap() - shortest.unwrap() <= 1, "{shares:?}");
            }
        }
    }

    #[test]
    fn a_member_that_is_none_of_the_team_gets_nothing() {
        for (len, size, index) in [(7, 2, 2), (usize::MAX, 1, usize::MAX), (0, 1, 1)] {
            assert_eq!(split(len, index, size), len..len);
            assert_eq!(split_blocks(len, 1, index, size), len..len);
        }
    }

    #[test]
    fn block_shares_cover_every_element_and_are_balanced_to_a_block() {
        for len in [0, 1, 31, 32, 33, 63, 897, 1024] {
            for block in [1, 2, 16, 32, 1000] {
                for size in [1, 2, 3, 5, 8, 16] {
                    let shares: Vec<_> =
                        (0..size).map(|index| split_blocks(len, block, index, size)).collect();
                    let all: Vec<_> = shares.iter().cloned().flatten().collect();
                    assert_eq!(all, (0..len).collect::<Vec<_>>());
                    let blocks = |share: &Range<usize>| share.len().div_ceil(block);
                    let longest = shares.iter().map(blocks).max().unwrap();
                    let shortest = shares.iter().map(blocks).min().unwrap();
                    assert!(longest - shortest <= 1, "{len} by {block} among {size}: {shares:?}");
                    for share in shares.iter().filter(|share| !share.is_empty()) {
                        assert_eq!(share.start % block, 0);
                        assert!(share.end % block == 0 || share.end == len);
                    }
                }
            }
        }
    }

    #[test]
    fn the_largest_range_does_not_overflow() {
        assert_eq!(split(usize::MAX, 1022, 1023).end, usize::MAX);
        let last = split_blocks(usize::MAX, usize::MAX / 2, 2, 3);
        assert_eq!(last.end, usize::MAX);
        assert_eq!(split_blocks(usize::MAX - 1, usize::MAX, 0, 2), 0..usize::MAX - 1);
    }
}
