//! Data at a chosen distance from a cache line's start, with guards around it.

/// Bytes between the guarded data and the ends of its buffer, at least.
const GUARD: usize = 64;

/// A copy of a slice that begins at a given byte offset from a 64-byte boundary, with guard elements on both
/// sides.
///
/// Guards of NaN show a read beyond the end in the result; [`Placed::assert_guards`] shows a write.
///
/// ```
/// use ck_testing::generate::Placed;
/// let mut row = Placed::new(&[1.0f32, 2.0], 4, f32::NAN);
/// assert_eq!(row.as_slice().as_ptr().addr() % 64, 4);
/// row.as_mut_slice()[1] = 3.0;
/// row.assert_guards();
/// ```
#[derive(Debug)]
pub struct Placed<T> {
    buffer: Vec<T>,
    start: usize,
    len: usize,
    guard: T,
}

impl<T: Copy> Placed<T> {
    /// Places a copy of `values` at `offset` bytes after a 64-byte boundary.
    ///
    /// # Panics
    ///
    /// If the size of `T` is not 1, 2, 4, 8 or 16, or `offset` is no multiple of it.
    #[must_use]
    pub fn new(values: &[T], offset: usize, guard: T) -> Self {
        let size = size_of::<T>();
        assert!(size.is_power_of_two() && size <= 16, "elements of {size} bytes");
        assert_eq!(offset % size, 0, "offset {offset} of elements of {size} bytes");
        let guards = GUARD / size;
        let mut buffer = vec![guard; values.len() + 3 * guards];
        // The first place behind a guard from which the boundary and the offset are right.
        let address = buffer.as_ptr().addr();
        let first = address + GUARD;
        let gap = (offset + GUARD - first % GUARD) % GUARD;
        let start = (first + gap - address) / size;
        buffer[start..start + values.len()].copy_from_slice(values);
        Self { buffer, start, len: values.len(), guard }
    }

    /// The data.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.buffer[self.start..self.start + self.len]
    }

    /// The data, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.buffer[self.start..self.start + self.len]
    }

    /// Checks that no guard was written.
    ///
    /// # Panics
    ///
    /// If a guard does not have the bits that it was given.
    #[track_caller]
    pub fn assert_guards(&self)
    where
        T: std::fmt::Debug,
    {
        let expected = format!("{:?}", self.guard);
        for (index, value) in self.buffer.iter().enumerate() {
            let inside = (self.start..self.start + self.len).contains(&index);
            assert!(
                inside || format!("{value:?}") == expected,
                "the guard {} elements from the data's start holds {value:?}, expected {expected}",
                index as i128 - self.start as i128
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Placed;
    use crate::generate::sizes;

    #[test]
    fn every_offset_is_met() {
        for offset in sizes::BYTE_OFFSETS {
            let placed = Placed::new(&[1u8, 2, 3], offset, 0xFF);
            assert_eq!(placed.as_slice(), [1, 2, 3]);
            assert_eq!(placed.as_slice().as_ptr().addr() % 64, offset);
            placed.assert_guards();
        }
        for offset in sizes::BYTE_OFFSETS.step_by(4) {
            let placed = Placed::new(&[1.0f32; 100], offset, f32::NAN);
            assert_eq!(placed.as_slice().as_ptr().addr() % 64, offset);
        }
    }

    #[test]
    fn a_write_beside_the_data_is_seen() {
        for beside in [-1isize, 3] {
            let mut placed = Placed::new(&[0.0f32; 3], 12, f32::NAN);
            let index = placed.start.wrapping_add_signed(beside);
            placed.buffer[index] = 0.0;
            let seen = std::panic::catch_unwind(|| placed.assert_guards());
            assert!(seen.is_err(), "a write at {beside}");
        }
    }
}
