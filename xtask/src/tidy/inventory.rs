//! The inventory of unsafe code in `docs/safety.md` names every file of the libraries that has some, with the
//! number of its blocks and implementations.

use super::{Texts, is_unsafe};
use std::collections::BTreeMap;

/// Where the inventory is. A row begins with a path in backticks and a number; a file may have several rows.
const INVENTORY: &str = "docs/safety.md";

/// Where a file's number of unsafe blocks and the one in the inventory differ.
pub(super) fn faults(texts: &Texts) -> Vec<String> {
    let Some(inventory) = texts.get(INVENTORY) else {
        return vec![format!("{INVENTORY}: there is no inventory of unsafe code")];
    };
    let mut listed: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, blocks) in inventory.lines().filter_map(row) {
        *listed.entry(path).or_default() += blocks;
    }
    let mut faults = Vec::new();
    for (path, text) in texts.iter().filter(|(path, _)| is_of_a_library(path)) {
        let found = text.lines().filter(|line| is_unsafe(line)).count();
        let listed = listed.remove(path.as_str()).unwrap_or(0);
        if found != listed {
            faults.push(format!("{path}: {found} unsafe blocks, but {listed} in {INVENTORY}"));
        }
    }
    let unknown = listed.keys().map(|path| format!("{INVENTORY}: {path} is no file of a library"));
    faults.extend(unknown);
    faults
}

fn is_of_a_library(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs")
}

/// The path and the number of a row of the inventory.
fn row(line: &str) -> Option<(&str, usize)> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let path = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
    let blocks = cells.next()?.parse().ok()?;
    Some((path, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library with two unsafe blocks, and an inventory.
    fn texts(inventory: &str) -> Texts {
        let code = concat!("// SAFETY: a proof.\nunsafe", " { f() }\n");
        let code = format!("{code}{code}");
        [(INVENTORY, inventory), ("crates/ck-a/src/b.rs", &code), ("crates/ck-a/tests/c.rs", &code)]
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .into()
    }

    #[test]
    fn every_block_is_counted() {
        let right = "| file | blocks |\n| --- | --- |\n| `crates/ck-a/src/b.rs` | 2 | proof |";
        assert_eq!(faults(&texts(right)), [""; 0]);
        let rows = "| `crates/ck-a/src/b.rs` | 1 | a |\n| `crates/ck-a/src/b.rs` | 1 | b |";
        assert_eq!(faults(&texts(rows)), [""; 0]);
    }

    #[test]
    fn missing_files_other_numbers_and_files_that_are_gone_are_found() {
        assert_eq!(faults(&texts("")).len(), 1);
        assert_eq!(faults(&texts("| `crates/ck-a/src/b.rs` | 3 |")).len(), 1);
        let gone = "| `crates/ck-a/src/b.rs` | 2 |\n| `crates/ck-a/src/gone.rs` | 1 |";
        assert_eq!(faults(&texts(gone)).len(), 1);
        assert_eq!(faults(&Texts::new()).len(), 1);
    }
}
