//! Named items in the order of the file, found by name.

/// A list of named items, each name once.
#[derive(Clone, Debug)]
pub(crate) struct Directory<'a, T> {
    items: Vec<(&'a str, T)>,
    /// Indices into `items`, sorted by name.
    by_name: Vec<usize>,
}

impl<'a, T> Directory<'a, T> {
    /// `items` in the given order, or the name that two of them share.
    pub(crate) fn new(items: Vec<(&'a str, T)>) -> Result<Self, &'a str> {
        let mut by_name: Vec<usize> = (0..items.len()).collect();
        by_name.sort_unstable_by_key(|&index| items[index].0);
        match by_name.windows(2).find(|pair| items[pair[0]].0 == items[pair[1]].0) {
            Some(twice) => Err(items[twice[0]].0),
            None => Ok(Self { items, by_name }),
        }
    }

    /// The item called `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        let found = self.by_name.binary_search_by_key(&name, |&index| self.items[index].0).ok()?;
        Some(&self.items[self.by_name[found]].1)
    }

    /// All items in the order of the file.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &(&'a str, T)> {
        self.items.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_finds_names_and_refuses_a_second_one() {
        let directory = Directory::new(vec![("b", 1), ("a", 2), ("ab", 3)]).unwrap();
        let order: Vec<_> = directory.iter().map(|item| item.0).collect();
        assert_eq!(order, ["b", "a", "ab"]);
        assert_eq!(directory.get("a"), Some(&2));
        assert_eq!(directory.get("ab"), Some(&3));
        assert_eq!(directory.get("c"), None);
        assert_eq!(Directory::new(vec![("b", 1), ("a", 2), ("b", 3)]).unwrap_err(), "b");
    }
}
