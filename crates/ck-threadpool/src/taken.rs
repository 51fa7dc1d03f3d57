//! Which shared values one member has taken a part of since the last barrier.

use std::cell::{Cell, RefCell};

/// How many values a member can take in a phase without an allocation.
const INLINE: usize = 8;

/// A set of addresses, one member's own.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    len: Cell<usize>,
    first: [Cell<usize>; INLINE],
    rest: RefCell<Vec<usize>>,
}

impl Taken {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds `address`; false if it was there already.
    pub(crate) fn insert(&self, address: usize) -> bool {
        let len = self.len.get();
        if self.first[..len].iter().any(|taken| taken.get() == address) {
            return false;
        }
        if len < INLINE {
            self.first[len].set(address);
            self.len.set(len + 1);
            return true;
        }
        let mut rest = self.rest.borrow_mut();
        let fresh = !rest.contains(&address);
        if fresh {
            rest.push(address);
        }
        fresh
    }

    pub(crate) fn clear(&mut self) {
        self.len.set(0);
        if !self.rest.get_mut().is_empty() {
            self.rest.get_mut().clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_goes_in_once_until_the_set_is_cleared() {
        let mut taken = Taken::new();
        for round in 0..2 {
            for address in 1..=3 * INLINE {
                assert!(taken.insert(address), "address {address} in round {round}");
            }
            for address in 1..=3 * INLINE {
                assert!(!taken.insert(address), "address {address} in round {round}");
            }
            taken.clear();
        }
    }
}
