//! The table on the terminal, the JSON file, and the exit status.

use super::case::{Case, Mode};
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

/// The file that `--json` writes.
#[derive(Serialize)]
struct File<'c> {
    ok: bool,
    cases: &'c [Case],
}

/// What the lines say.
pub(super) const LEGEND: &str = "\
Each line compares one result of all tokens:
  fed         one stage on its recorded input, with what llama.cpp recorded
  end to end  the whole block, token after token, with what llama.cpp recorded: a last bit in the norm can turn a
              quant by one step, which all later stages carry on, so the bound is that of such steps
  bits        the whole block with serial scalar code
Errors are relative to the largest number of a token's row, and stand beside their bound (docs/numerics.md).
";

/// Prints one line for every case.
pub(super) fn print(cases: &[Case]) {
    for case in cases {
        println!("{}", line(case));
    }
}

fn line(case: &Case) -> String {
    let verdict = if case.ok { "ok" } else { "FAILED" };
    let error = match (case.mode, case.max_rel_err) {
        (Mode::Bits, Some(0.0)) => "equal bits".to_owned(),
        (Mode::Bits, _) => "bits differ".to_owned(),
        (_, Some(error)) => format!("{error:.2e} of {:.2e}", case.bound),
        (_, None) => format!("not finite, bound {:.2e}", case.bound),
    };
    let (token, element) = case.place;
    let place = if case.max_rel_err == Some(0.0) {
        String::new()
    } else {
        format!("token {token}, element {element}")
    };
    format!(
        "  {verdict:<6}  {:<10}  {:<14}  {:<10}  {} thread{}  {:<4}  {:<6}  {error:<22}  {place}",
        case.mode.name(),
        case.strategy,
        case.isa,
        case.threads,
        if case.threads == 1 { " " } else { "s" },
        case.kv,
        case.stage.name(),
    )
    .trim_end()
    .to_owned()
}

/// Writes all cases as JSON.
pub(super) fn write_json(path: &Path, cases: &[Case]) -> Result<()> {
    let file = File { ok: holds(cases), cases };
    let text = serde_json::to_string_pretty(&file).context("cannot write the cases as JSON")?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

/// Says how it went: status 0 where all hold, 1 at a mismatch, 2 where nothing was compared.
pub(super) fn conclude(cases: &[Case]) -> Result<ExitCode> {
    anyhow::ensure!(!cases.is_empty(), "there was nothing to compare");
    let failed: Vec<&Case> = cases.iter().filter(|case| !case.ok).collect();
    if failed.is_empty() {
        println!("parity: all {} cases hold", cases.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("parity: {} of {} cases FAILED", failed.len(), cases.len());
    for case in failed {
        println!("{}{}", case.golden, line(case));
    }
    Ok(ExitCode::FAILURE)
}

fn holds(cases: &[Case]) -> bool {
    !cases.is_empty() && cases.iter().all(|case| case.ok)
}
