//! Matrix times vector. `rows` takes the form of a file, `panels` the packed one; in each, `mod.rs` matches
//! the level once per range of rows, and there is one file per level.

pub(crate) mod panels;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

use std::ops::Range;

/// Some rows and some block columns of a matrix.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) rows: Range<usize>,
    pub(crate) blocks: Range<usize>,
}
