//! Sizes at which kernels go wrong: nothing, one, around a block, every tail of a vector, primes, and more than a
//! tile.

use std::ops::Range;

/// Element counts around whole blocks of 32; those that are no multiple must be refused.
pub const AROUND_BLOCKS: [usize; 14] = [0, 1, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128, 129];

/// Numbers of blocks in a row: few, odd ones, those of real widths (576, 896, 2048, 4096), one prime.
pub const BLOCKS: [usize; 14] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 18, 28, 31, 64, 128];

/// Every tail of vectors of 16, 32 and 64 elements, and once around.
pub const TAILS: Range<usize> = 0..130;

/// Primes, from below one vector to above one page.
pub const PRIMES: [usize; 8] = [2, 3, 13, 31, 61, 127, 257, 1031];

/// Numbers of rows of a matrix: around panels of 16, and those that leave something over for every team.
pub const ROWS: [usize; 15] = [1, 2, 7, 13, 15, 16, 17, 31, 32, 33, 47, 48, 64, 97, 897];

/// Context lengths: around tiles and likely chunks, a prime, and more than one chunk.
pub const CONTEXTS: [usize; 18] =
    [1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257, 512, 1031];

/// Head dimensions of models.
pub const HEAD_DIMS: [usize; 8] = [64, 72, 80, 96, 112, 128, 192, 256];

/// Even head dimensions that no model has and no vector fits.
pub const ODD_HEAD_DIMS: [usize; 6] = [2, 4, 6, 10, 30, 34];

/// Query and KV heads of models, and the borders: no sharing, one KV head for all.
pub const HEAD_COUNTS: [(usize, usize); 7] =
    [(14, 2), (28, 4), (32, 8), (12, 12), (8, 1), (9, 3), (1, 1)];

/// Query and KV heads that fit no grouping and must be refused.
pub const BAD_HEAD_COUNTS: [(usize, usize); 4] = [(15, 2), (2, 14), (14, 0), (0, 2)];

/// Distances in bytes from a cache line's start, for [`super::Placed`].
pub const BYTE_OFFSETS: Range<usize> = 0..64;

/// Team sizes, more than this machine has CPUs among them.
pub const THREADS: [usize; 8] = [1, 2, 3, 4, 5, 6, 8, 16];
