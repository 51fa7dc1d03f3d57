//! What was measured of a case, and what is kept of it.

use crate::case::Case;
use crate::contender::Side;
use crate::context::Kv;
use crate::peaks::Peaks;
use crate::record::{Outcome, Ratio, Record};
use crate::stats::{Summary, median};
use serde::{Deserialize, Serialize};

/// One contender's samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The contender.
    pub name: String,
    /// Whose work it is.
    pub side: Side,
    /// Nanoseconds per call, one for every turn.
    pub ns: Vec<f64>,
}

impl Sampled {
    /// The sample in the middle.
    #[must_use]
    pub fn median(&self) -> f64 {
        median(self.ns.clone())
    }

    /// How many times as long as this contender `other` took, turn by turn.
    #[must_use]
    pub fn ratio_of(&self, other: &Self) -> Option<Summary> {
        Summary::of_ratios(&other.ns, &self.ns)
    }
}

/// All contenders' samples of a case. The first contender is the one that this project stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The case.
    pub case: Case,
    /// Who took part.
    pub contenders: Vec<Sampled>,
    /// What moved while the case was measured, also the second time.
    pub moved: Vec<String>,
}

impl Measured {
    /// The contender that this project stands for.
    #[must_use]
    pub fn primary(&self) -> &Sampled {
        &self.contenders[0]
    }

    /// Lets this project stand for its contenders with this type of cache, if it has any.
    pub fn stand_for(&mut self, kv: Kv) {
        let word = format!(", {kv},", kv = kv.name());
        let with = |c: &Sampled| c.side == Side::Ours && c.name.contains(&word);
        self.contenders.sort_by_key(|contender| !with(contender));
    }

    /// The contender with the least median among those of `side` whose name contains every one of `words`.
    #[must_use]
    pub fn best(&self, side: Side, words: &[&str]) -> Option<&Sampled> {
        let fits = |c: &&Sampled| c.side == side && words.iter().all(|word| c.name.contains(word));
        let contenders = self.contenders.iter().filter(fits);
        contenders.min_by(|a, b| a.median().total_cmp(&b.median()))
    }

    /// The share of the speed of a read loop, in pages of the same kind, that a contender reached.
    #[must_use]
    pub fn share_of_read_loop(&self, contender: &Sampled) -> Option<f64> {
        let kind = contender.name.rsplit(", ").next()?;
        let read = self.best(Side::Limit, &[kind])?;
        Some(contender.ratio_of(read)?.median)
    }

    /// The share of the arithmetic peak that a contender reached: the time that its multiply-adds alone would
    /// take on all threads, over its time.
    #[must_use]
    pub fn share_of_arithmetic(&self, contender: &Sampled, peaks: &Peaks) -> f64 {
        let work = self.case.work;
        let alone = work.int_macs / peaks.int_macs_per_ns + work.f32_macs / peaks.f32_macs_per_ns;
        alone / self.case.threads as f64 / contender.median()
    }

    /// The same with samples in hundredths of a nanosecond, which is more than a clock can tell.
    fn rounded(&self) -> Self {
        let mut rounded = self.clone();
        for ns in rounded.contenders.iter_mut().flat_map(|contender| &mut contender.ns) {
            *ns = (*ns * 100.0).round() / 100.0;
        }
        rounded
    }

    /// Adds the case to a record.
    pub fn keep(&self, record: &mut Record) {
        let name = self.case.name();
        for contender in &self.contenders {
            let summary = Summary::of(contender.ns.clone());
            let outcome =
                summary.map(|ns| Outcome::new(&name, &contender.name, &ns, self.case.work));
            record.results.extend(outcome);
        }
        record.cases.push(self.rounded());
        let ours = self.contenders.iter().filter(|contender| contender.side == Side::Ours);
        for ours in ours {
            for other in &self.contenders {
                // Among our own, each is compared with the first only.
                let own = other.side == Side::Ours;
                if own && (ours.name != self.primary().name || other.name == ours.name) {
                    continue;
                }
                let [a, b] = [ours, other].map(|side| (&side.name[..], &side.ns[..]));
                record.ratios.extend(Ratio::new(&name, a, b));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Heat, Kind};
    use crate::record::Work;

    fn measured(names: &[(&str, Side)]) -> Measured {
        let sampled =
            |&(name, side): &(&str, Side)| Sampled { name: name.to_owned(), side, ns: vec![1.0] };
        let case = Case {
            kind: Kind::Layer,
            subject: "a".to_owned(),
            context: None,
            heat: Heat::Hot,
            threads: 1,
            work: Work::default(),
        };
        Measured { case, contenders: names.iter().map(sampled).collect(), moved: Vec::new() }
    }

    #[test]
    fn it_stands_for_the_cache_that_is_asked_for() {
        let mut case = measured(&[
            ("ck serial, f32, avx2", Side::Ours),
            ("ck serial, f16, avx2", Side::Ours),
            ("ck unfused, f16, avx2", Side::Ours),
            ("ggml flash, f16, avx2", Side::Peer),
        ]);
        case.stand_for(Kv::F16);
        let names: Vec<_> = case.contenders.iter().map(|contender| &contender.name[..]).collect();
        assert_eq!(
            names,
            [
                "ck serial, f16, avx2",
                "ck unfused, f16, avx2",
                "ck serial, f32, avx2",
                "ggml flash, f16, avx2"
            ]
        );
        case.stand_for(Kv::Q8_0);
        assert_eq!(case.primary().name, "ck serial, f16, avx2");
    }
}
