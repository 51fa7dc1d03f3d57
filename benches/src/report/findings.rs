//! The paragraph at the end of a run: what was found.

use crate::case::{Heat, Kind};
use crate::contender::Side;
use crate::measured::{Measured, Sampled};
use crate::record::Record;
use crate::stats::Summary;
use std::collections::BTreeMap;

/// What was found, in one paragraph. Ratios are ranges of medians over the cases.
#[must_use]
pub fn findings(record: &Record) -> String {
    let (machine, all) = (&record.machine, &record.cases);
    let mut sentences = vec![format!(
        "{} cases on {} ({} CPUs, levels {}), revision {}.",
        all.len(),
        machine.cpu,
        machine.cpus,
        machine.levels.join(", "),
        machine.revision,
    )];
    let layers: Vec<&Measured> = all.iter().filter(|one| one.case.kind == Kind::Layer).collect();
    sentences.extend(against_unfused(&layers));
    sentences.extend(best_strategies(&layers));
    sentences.extend(teams(&layers));
    sentences.extend(against_levels(&layers));
    for kind in [Kind::Gemv, Kind::Layer] {
        let streaming: Vec<&Measured> = all
            .iter()
            .filter(|one| one.case.kind == kind && one.case.heat == Heat::Streaming)
            .collect();
        sentences.extend(of_read_loop(kind, &streaming));
    }
    for kind in Kind::ALL {
        let of_kind: Vec<&Measured> = all.iter().filter(|one| one.case.kind == kind).collect();
        for peer in ["ggml", "candle"] {
            sentences.extend(against_peer(kind, peer, &of_kind));
        }
    }
    let moved = all.iter().filter(|one| !one.moved.is_empty()).count();
    if moved > 0 {
        sentences.push(format!(
            "The machine's state moved during {moved} of the cases, also when they were repeated; \
             they are marked."
        ));
    }
    sentences.join(" ")
}

/// How `other` compares with the primary contender in those cases that have it.
fn range<'a>(
    cases: &[&'a Measured],
    other: impl Fn(&'a Measured) -> Option<&'a Sampled>,
) -> Option<Summary> {
    let ratios = cases.iter().filter_map(|one| Some(one.primary().ratio_of(other(one)?)?.median));
    Summary::of(ratios.collect())
}

/// A range in words: `1.20 to 3.40 times (median 2.00)`, or of a single case `2.00 times`.
fn words(range: Summary) -> String {
    if range.min == range.max {
        return format!("{:.2} times", range.median);
    }
    format!("{:.2} to {:.2} times (median {:.2})", range.min, range.max, range.median)
}

fn against_unfused(layers: &[&Measured]) -> Option<String> {
    let unfused = |one: &&Measured| one.best(Side::Ours, &["unfused"]).is_some();
    let cases: Vec<&Measured> = layers.iter().copied().filter(unfused).collect();
    let range = range(&cases, |one| one.best(Side::Ours, &["unfused"]))?;
    Some(format!("The unfused baseline took {} as long as the fused layer.", words(range)))
}

/// Which strategies were fastest in how many cases with a team.
fn best_strategies(layers: &[&Measured]) -> Option<String> {
    let mut counts = BTreeMap::new();
    for one in layers.iter().filter(|one| one.case.threads > 1) {
        let best = one.best(Side::Ours, &[])?;
        let strategy = best.name.split([' ', ',']).nth(1).unwrap_or_default();
        *counts.entry(strategy).or_insert(0) += 1;
    }
    let mut counts: Vec<(&str, u32)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let counts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name} in {count}")).collect();
    (!counts.is_empty())
        .then(|| format!("Of the cases with a team, the fastest was {}.", counts.join(", ")))
}

/// How much faster the largest team is than one thread. These are different cases, so medians are compared.
fn teams(layers: &[&Measured]) -> Option<String> {
    let most = layers.iter().map(|one| one.case.threads).max().filter(|most| *most > 1)?;
    let gains = layers.iter().filter(|one| one.case.threads == most).filter_map(|team| {
        let same = |one: &&&Measured| {
            let (a, b) = (&one.case, &team.case);
            a.threads == 1 && (&a.subject, a.context, a.heat) == (&b.subject, b.context, b.heat)
        };
        let alone = layers.iter().find(same)?;
        Some(alone.primary().median() / team.primary().median())
    });
    let gains = Summary::of(gains.collect())?;
    Some(format!("{most} threads were {} as fast as one.", words(gains)))
}

fn against_levels(layers: &[&Measured]) -> Option<String> {
    let levels = ["scalar", "avx2"].into_iter().filter_map(|level| {
        let with = format!(", {level},");
        let range = range(layers, |one| {
            one.best(Side::Ours, &[&with]).filter(|other| other.name != one.primary().name)
        })?;
        Some(format!("level {level} took {} as long", words(range)))
    });
    let levels: Vec<String> = levels.collect();
    (!levels.is_empty()).then(|| format!("On one thread {}.", levels.join(", ")))
}

fn of_read_loop(kind: Kind, cases: &[&Measured]) -> Option<String> {
    let shares = cases.iter().filter_map(|one| one.share_of_read_loop(one.primary()));
    let shares = Summary::of(shares.map(|share| 100.0 * share).collect())?;
    Some(format!(
        "Streaming from memory, {kind} reached {:.0} to {:.0} % of a plain read loop's speed.",
        shares.min, shares.max
    ))
}

fn against_peer(kind: Kind, peer: &str, cases: &[&Measured]) -> Option<String> {
    let range = range(cases, |one| one.best(Side::Peer, &[peer]))?;
    Some(format!("In {kind} cases {peer}'s best took {} as long as ours.", words(range)))
}
