//! The one tree by which strided partial results become one.

/// Combines `parts` by halves: the upper half onto the lower, until one is left.
///
/// For eight parts this is `((0 4) (2 6)) ((1 5) (3 7))`. A vector of any width holds whole halves, so
/// every level can follow it.
///
/// # Panics
///
/// If the number of parts is no power of two.
#[inline(always)]
pub(crate) fn by_halves<T: Copy>(parts: &mut [T], combine: impl Fn(T, T) -> T) -> T {
    assert!(parts.len().is_power_of_two(), "{} parts have no halves", parts.len());
    let mut half = parts.len() / 2;
    while half > 0 {
        for i in 0..half {
            parts[i] = combine(parts[i], parts[i + half]);
        }
        half /= 2;
    }
    parts[0]
}

#[cfg(test)]
mod tests {
    use super::by_halves;

    #[test]
    fn the_tree_is_the_documented_one() {
        // Another number for every tree of sums.
        let combine = |a: u64, b: u64| 31 * a + 17 * b + 7;
        let mut parts = [0, 1, 2, 3, 4, 5, 6, 7];
        let left = combine(combine(0, 4), combine(2, 6));
        let right = combine(combine(1, 5), combine(3, 7));
        assert_eq!(by_halves(&mut parts, combine), combine(left, right));
        assert_eq!(by_halves(&mut [7], combine), 7);
    }
}
