//! Two records of the same machine side by side.

use crate::record::{Outcome, Record};
use comfy_table::{Table, presets};

/// A table of how the times of `new` compare with those of `old`, largest change first. A change is called clear
/// if the best and worst samples of the two do not overlap.
#[must_use]
pub fn compare(old: &Record, new: &Record) -> String {
    let mut text = String::new();
    if old.machine.folder() != new.machine.folder() {
        text += &format!(
            "These are two machines, {} and {}: only ratios within one record mean anything.\n",
            old.machine.folder(),
            new.machine.folder()
        );
    }
    let find = |wanted: &Outcome| {
        let same =
            |one: &&Outcome| (&one.case, &one.contender) == (&wanted.case, &wanted.contender);
        old.results.iter().find(same)
    };
    let mut pairs: Vec<(&Outcome, &Outcome)> =
        new.results.iter().filter_map(|new| Some((find(new)?, new))).collect();
    let change = |(old, new): &(&Outcome, &Outcome)| new.median_ns / old.median_ns;
    pairs.sort_by(|a, b| change(b).ln().abs().total_cmp(&change(a).ln().abs()));
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["case", "contender", "old ns", "new ns", "new / old", ""]);
    for pair @ (old, new) in &pairs {
        let apart = new.min_ns > old.max_ns || new.max_ns < old.min_ns;
        table.add_row([
            new.case.clone(),
            new.contender.clone(),
            format!("{:.0}", old.median_ns),
            format!("{:.0}", new.median_ns),
            format!("{:.3}", change(pair)),
            if apart { "clear".to_owned() } else { String::new() },
        ]);
    }
    text += &format!("{table}\n");
    let (known, all) = (pairs.len(), new.results.len());
    text + &format!(
        "{known} of {all} results of the new record ({} of the old one's)\n",
        old.results.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(case: &str, times: [f64; 3]) -> Outcome {
        let [min_ns, median_ns, max_ns] = times;
        let [case, contender] = [case, "ours"].map(str::to_owned);
        Outcome { case, contender, median_ns, min_ns, max_ns, repeats: 9, gbps: None, gflops: None }
    }

    #[test]
    fn the_largest_change_comes_first_and_overlapping_ones_are_not_clear() {
        let mut old = Record::new();
        let mut new = old.clone();
        old.results = vec![outcome("a", [9.0, 10.0, 12.0]), outcome("b", [9.0, 10.0, 11.0])];
        new.results = vec![
            outcome("a", [10.0, 11.0, 12.0]),
            outcome("b", [19.0, 20.0, 21.0]),
            outcome("c", [1.0, 1.0, 1.0]),
        ];
        let text = compare(&old, &new);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("ours")).collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert!(rows[0].contains("| b ") && rows[0].contains("2.000") && rows[0].contains("clear"));
        assert!(rows[1].contains("1.100") && !rows[1].contains("clear"));
        assert!(text.contains("2 of 3 results"));
    }
}
