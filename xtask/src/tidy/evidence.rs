//! Every test that `docs/testing.md` names exists, and every case from the field is named by its test.

use super::Texts;
use std::collections::BTreeSet;

/// Where tests are named. In a row of a table, names in backticks follow the path of their file, which begins
/// below `crates/` or at the root; without one they are functions of any file.
const EVIDENCE: &str = "docs/testing.md";

/// How many cases from the field there are.
const CASES: usize = 40;

/// Names that no file has, and cases that no test names.
pub(super) fn faults(texts: &Texts) -> Vec<String> {
    let Some(evidence) = texts.get(EVIDENCE) else {
        return vec![format!("{EVIDENCE}: there is no table of tests")];
    };
    let mut faults = Vec::new();
    let mut cases = BTreeSet::new();
    for (index, row) in evidence.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
        let case = row.trim_start_matches(['|', ' ']).split(' ').next().filter(|c| is_case(c));
        let (found, files) = row_faults(texts, row);
        let mut found: Vec<String> = found;
        if let Some(case) = case {
            cases.insert(case);
            if !files.iter().any(|text| text.contains(case)) {
                found.push(format!("no test of this row says {case}"));
            }
        }
        faults.extend(found.iter().map(|fault| format!("{EVIDENCE}:{}: {fault}", index + 1)));
    }
    if cases.len() != CASES {
        faults.push(format!("{EVIDENCE}: {} cases from the field, expected {CASES}", cases.len()));
    }
    faults
}

/// `B01` and the like.
fn is_case(word: &str) -> bool {
    word.strip_prefix('B').is_some_and(|n| n.len() == 2 && n.bytes().all(|b| b.is_ascii_digit()))
}

/// What is wrong in the cells of a row, and the texts of the files that they name.
fn row_faults<'t>(texts: &'t Texts, row: &str) -> (Vec<String>, Vec<&'t str>) {
    let (mut faults, mut files) = (Vec::new(), Vec::new());
    for cell in row.split('|') {
        let mut file: Option<(&str, &str)> = None;
        for name in cell.split('`').skip(1).step_by(2) {
            if name.ends_with(".rs") && name.contains('/') {
                let below_crates = format!("crates/{name}");
                let text = texts.get(&below_crates).or_else(|| texts.get(name));
                file = text.map(|text| (name, text.as_str()));
                match file {
                    Some((_, text)) => files.push(text),
                    None => faults.push(format!("there is no file {name}")),
                }
            } else if is_function(name) {
                let exists = match file {
                    Some((_, text)) => defines(text, name),
                    None => texts.values().any(|text| defines(text, name)),
                };
                if !exists {
                    let place = file.map_or("any file", |(path, _)| path);
                    faults.push(format!("there is no function {name} in {place}"));
                }
            }
        }
    }
    (faults, files)
}

/// Whether a name in backticks is that of a function: small letters, digits and some underscore between them.
fn is_function(name: &str) -> bool {
    let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    name.contains('_') && !name.starts_with('_') && name.bytes().all(letters)
}

fn defines(text: &str, function: &str) -> bool {
    let definition = format!("fn {function}");
    let follows = |at: usize| text[at + definition.len()..].starts_with(['(', '<']);
    text.match_indices(&definition).any(|(at, _)| follows(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files with one test each, and a table of 40 cases that they serve, followed by `row`.
    fn texts(row: &str) -> Texts {
        let cases = (1..=CASES).map(|n| format!("| B{n:02} | kind | `a/b.rs` `good_test` |\n"));
        let numbers: String = (1..=CASES).map(|n| format!("// Case B{n:02}.\n")).collect();
        let test = format!("{numbers}fn good_test() {{}}");
        [
            (EVIDENCE, format!("{}{row}", cases.collect::<String>())),
            ("crates/a/b.rs", test),
            ("xtask/c.rs", "fn other_test() {}".to_owned()),
        ]
        .map(|(path, text)| (path.to_owned(), text))
        .into()
    }

    #[test]
    fn tests_that_exist_are_found_where_they_are() {
        for row in [
            "",
            "| 1 | `a/b.rs` `good_test`; `xtask/c.rs` (in the root) `other_test` |",
            "| a fault | `good_test`, `other_test` |",
            "Text outside of tables may say `no_such_name`.",
            "| a word | `scalar` and `a/b` |",
        ] {
            assert_eq!(faults(&texts(row)), [""; 0], "{row}");
        }
    }

    #[test]
    fn tests_files_and_cases_that_are_not_there_are_found() {
        for row in [
            "| 1 | `a/b.rs` `other_test` |",
            "| 1 | `a/b.rs` `good_tes` |",
            "| 1 | `a/gone.rs` |",
            "| a fault | `renamed_test` |",
            "| B41 | kind | `a/b.rs` `good_test` |",
        ] {
            assert!(!faults(&texts(row)).is_empty(), "{row}");
        }
        let mut unnamed = texts("");
        let test = unnamed.get_mut("crates/a/b.rs").unwrap();
        *test = test.replace("B07", "B7");
        assert_eq!(faults(&unnamed).len(), 1);
    }
}
