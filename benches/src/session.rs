//! A run: cases one after the other, each checked, timed, checked again, and kept.

use crate::case::{Case, Heat};
use crate::contender::Entry;
use crate::measured::{Measured, Sampled};
use crate::memory::{Copies, PageKind};
use crate::peaks::Peaks;
use crate::state::{CpuTimes, Observer, State};
use crate::timing::{Sampling, interleaved};
use anyhow::{Context, Result};
use ck_isa::Isa;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Set by Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// How much of all CPUs others may take before a case counts as disturbed.
const FOREIGN_LOAD: f64 = 0.1;

/// A run.
pub struct Session {
    observer: Observer,
    repeats: usize,
    bar: ProgressBar,
    /// The state at the start.
    pub state: State,
    /// What the best level's arithmetic can do.
    pub peaks: Peaks,
    /// What was measured so far.
    pub measured: Vec<Measured>,
}

impl Session {
    /// A run of `cases` cases with `repeats` samples of each contender, with so many bytes of data that stream from
    /// memory. From now on Ctrl-C ends it after the sample at hand.
    ///
    /// # Errors
    ///
    /// Threads that are not to be had.
    pub fn new(cases: usize, repeats: usize, streamed: usize) -> Result<Self> {
        // A second handler would only say that there is one already.
        drop(ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed)));
        let isa = Isa::detect();
        let mut observer = Observer::new(isa, streamed)?;
        let (state, peaks) = (observer.observe(), Peaks::of(isa));
        let bar = match std::io::stderr().is_terminal() {
            true => ProgressBar::new(cases as u64).with_style(style()?),
            false => ProgressBar::hidden(),
        };
        bar.enable_steady_tick(Duration::from_millis(500));
        Ok(Self { observer, repeats, bar, state, peaks, measured: Vec::new() })
    }

    /// Whether Ctrl-C ended the run.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }

    /// Memory to read from, in pages of either kind: so many bytes of each that they stream.
    #[must_use]
    pub fn streamed(&self) -> usize {
        self.observer.buffer(PageKind::Large).len()
    }

    /// `bytes` bytes to read, in pages of both kinds: one copy, or as many as stream.
    #[must_use]
    pub fn to_read(&self, heat: Heat, bytes: usize) -> [Copies; 2] {
        [PageKind::Base, PageKind::Large].map(|kind| match heat {
            Heat::Hot => Copies::new(&vec![0; bytes], 1, kind),
            Heat::Streaming => Copies::windows(self.observer.buffer(kind), kind, bytes),
        })
    }

    /// Says what goes on, on the bar.
    pub fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Checks all contenders, times them in turns, and checks them again. A case during which the machine's state
    /// moved is timed once more, and marked if it moved again.
    ///
    /// # Errors
    ///
    /// A wrong answer: then nothing of the case is kept.
    pub fn measure(
        &mut self,
        case: Case,
        mut entries: Vec<Entry<'_>>,
        copies: usize,
    ) -> Result<()> {
        let name = case.name();
        self.say(&name);
        check_all(&name, &mut entries, 0, "so nothing is timed")?;
        // A sample of what streams takes longer, so that the copies between two turns are many.
        let at_least = Duration::from_millis(if copies > 1 { 12 } else { 4 });
        let sampling = Sampling { repeats: self.repeats, at_least, copies };
        let Some((mut samples, mut moved)) = self.attempt(&case, &mut entries, sampling) else {
            return Ok(());
        };
        if !moved.is_empty() {
            match self.attempt(&case, &mut entries, sampling) {
                Some(second) => (samples, moved) = second,
                None => return Ok(()),
            }
        }
        check_all(&name, &mut entries, copies - 1, "after it was timed, so nothing is kept")?;
        let contenders = entries.iter().zip(samples).map(|(entry, ns)| {
            let (name, side) = (entry.contender.name(), entry.contender.side());
            Sampled { name, side, ns }
        });
        let measured = Measured { case, contenders: contenders.collect(), moved };
        self.line(&measured);
        self.measured.push(measured);
        self.bar.inc(1);
        Ok(())
    }

    /// Times the contenders once, and says what moved meanwhile.
    fn attempt(
        &mut self,
        case: &Case,
        entries: &mut [Entry<'_>],
        sampling: Sampling,
    ) -> Option<(Vec<Vec<f64>>, Vec<String>)> {
        let (before, times) = (self.observer.observe(), CpuTimes::now());
        let samples = interleaved(entries, sampling, &INTERRUPTED)?;
        let load = times.zip(CpuTimes::now()).map_or(0.0, |(from, to)| from.foreign_load(&to));
        let mut moved = before.moved(&self.observer.observe(), case);
        if load > FOREIGN_LOAD {
            moved.push(format!("foreign load {:.0} %", 100.0 * load));
        }
        Some((samples, moved))
    }

    /// Prints a line on a case.
    fn line(&self, measured: &Measured) {
        let line = crate::report::line(measured);
        match self.bar.is_hidden() {
            true => println!("{line}"),
            false => self.bar.println(line),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style() -> Result<ProgressStyle> {
    let template = "{bar:30} {pos}/{len}, {eta} left: {msg}";
    Ok(ProgressStyle::with_template(template)?)
}

fn check_all(case: &str, entries: &mut [Entry<'_>], copy: usize, then: &str) -> Result<()> {
    for entry in entries {
        let checked = entry.check(copy);
        checked.with_context(|| format!("{case}: a contender's answer is wrong, {then}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Kind;
    use crate::contender::{Agreement, Contender, Expected};
    use crate::record::Work;
    use std::cell::Cell;
    use std::rc::Rc;

    /// Answers right until it was run so many times.
    struct Tiring(Rc<Cell<usize>>, usize);

    impl Contender for Tiring {
        fn name(&self) -> String {
            "tiring".to_owned()
        }

        fn run(&mut self, _copy: usize) {
            self.0.set(self.0.get() + 1);
        }

        fn answer(&self) -> Vec<f32> {
            vec![if self.0.get() <= self.1 { 1.0 } else { 2.0 }]
        }

        fn agreement(&self) -> Agreement {
            Agreement::Within(0.1)
        }
    }

    /// Runs a case of one contender, and returns what became of it, how often it ran and what was kept.
    fn run(right: usize) -> (Result<()>, usize, usize) {
        let mut session = Session::new(1, 9, 32 << 20).unwrap();
        let (heat, work) = (Heat::Hot, Work::default());
        let case = Case {
            kind: Kind::Layer,
            subject: "a".to_owned(),
            context: None,
            heat,
            threads: 1,
            work,
        };
        let runs = Rc::new(Cell::new(0));
        let expected = Rc::new(Expected::from(vec![1.0]));
        let entries = vec![Entry::new(Tiring(Rc::clone(&runs), right), &expected)];
        let result = session.measure(case, entries, 1);
        (result, runs.get(), session.measured.len())
    }

    #[test]
    fn a_wrong_contender_is_not_timed() {
        let (result, runs, kept) = run(0);
        let error = format!("{:#}", result.unwrap_err());
        assert!(
            error.contains("so nothing is timed") && error.contains("tiring: off by"),
            "{error}"
        );
        assert_eq!((runs, kept), (1, 0));
    }

    #[test]
    fn a_contender_that_becomes_wrong_is_not_kept() {
        let (result, _, kept) = run(100);
        assert!(format!("{:#}", result.unwrap_err()).contains("after it was timed"));
        assert_eq!(kept, 0);
    }

    #[test]
    fn a_right_contender_is_kept() {
        let (result, _, kept) = run(usize::MAX);
        result.unwrap();
        assert_eq!(kept, 1);
    }
}
