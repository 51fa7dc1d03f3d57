//! The one tree by which strided partial results become one.

/// Combines `parts` by halves: the upper half onto the lower, until one is left.
///
/// For eight parts this is `((0 4) (2 6)) ((1 5) (3 7))`. A vector of any width holds whole halves, so
/// every level can follow it.
///
/// `N` is a power of two.
#[inline(always)]
pub(crate) fn by_halves<T: Copy, const N: usize>(
    mut parts: [T; N],
    combine: impl Fn(T, T) -> T,
) -> T {
    const { assert!(N.is_power_of_two()) };
    let mut half = N / 2;
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
        let parts = ["0", "1", "2", "3", "4", "5", "6", "7"];
        let combine = |a: &'static str, b: &'static str| &*format!("({a} {b})").leak();
        assert_eq!(by_halves(parts, combine), "(((0 4) (2 6)) ((1 5) (3 7)))");
    }
}
