//! One thing that was compared.

use super::Kv;
use ck_fused::Strategy;
use ck_isa::Isa;
use serde::Serialize;

/// How a layer is run.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    pub(super) isa: Isa,
    pub(super) strategy: Strategy,
    pub(super) threads: usize,
}

/// What a case compares.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// A stage on its recorded input, with its recording.
    Fed,
    /// The whole layer, token after token, with its recording.
    EndToEnd,
    /// The whole layer with serial scalar, by bits.
    Bits,
}

impl Mode {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fed => "fed",
            Self::EndToEnd => "end to end",
            Self::Bits => "bits",
        }
    }
}

/// A result of the layer that recordings have.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    Norm,
    Q,
    K,
    V,
    Attn,
    Output,
}

impl Stage {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Norm => "norm",
            Self::Q => "q",
            Self::K => "k",
            Self::V => "v",
            Self::Attn => "attn",
            Self::Output => "output",
        }
    }
}

/// One comparison over all tokens of a recording.
#[derive(Serialize)]
pub(super) struct Case {
    pub(super) golden: String,
    pub(super) mode: Mode,
    pub(super) strategy: &'static str,
    pub(super) isa: &'static str,
    pub(super) threads: usize,
    pub(super) kv: &'static str,
    pub(super) stage: Stage,
    /// The error of the token that is worst beside its bound; none if a number is not finite.
    pub(super) max_rel_err: Option<f64>,
    /// That token's bound.
    pub(super) bound: f64,
    pub(super) ok: bool,
    /// That token and the element of its row.
    #[serde(skip)]
    pub(super) place: (usize, usize),
}

impl Case {
    pub(super) fn new(
        golden: &str,
        mode: Mode,
        setup: Setup,
        kv: Kv,
        stage: Stage,
        worst: Worst,
    ) -> Self {
        Self {
            golden: golden.to_owned(),
            mode,
            strategy: setup.strategy.name(),
            isa: setup.isa.level().name(),
            threads: setup.threads,
            kv: kv.name(),
            stage,
            max_rel_err: worst.error.is_finite().then_some(worst.error),
            bound: worst.bound,
            ok: worst.ok,
            place: worst.place,
        }
    }
}

/// The worst token so far: the one whose error is largest beside its bound.
#[derive(Clone, Copy)]
pub(super) struct Worst {
    error: f64,
    bound: f64,
    ok: bool,
    place: (usize, usize),
    tokens: usize,
}

impl Worst {
    /// Nothing compared yet. A case that stays so has failed.
    pub(super) const NONE: Self =
        Self { error: f64::INFINITY, bound: 0.0, ok: false, place: (0, 0), tokens: 0 };

    /// Adds the error of one token.
    pub(super) fn add(&mut self, token: usize, element: usize, error: f64, bound: f64) {
        let beside = |error: f64, bound: f64| if error == 0.0 { 0.0 } else { error / bound };
        if self.tokens == 0 || beside(error, bound) > beside(self.error, self.bound) {
            (self.error, self.bound, self.place) = (error, bound, (token, element));
        }
        let holds = error.is_finite() && error <= bound;
        self.ok = (self.tokens == 0 || self.ok) && holds;
        self.tokens += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Worst;

    fn worst(errors: &[(f64, f64)]) -> Worst {
        let mut worst = Worst::NONE;
        for (token, (error, bound)) in errors.iter().enumerate() {
            worst.add(token, 7, *error, *bound);
        }
        worst
    }

    #[test]
    fn the_worst_token_is_the_one_nearest_to_its_bound() {
        let found = worst(&[(1e-6, 2e-6), (3e-6, 9e-6), (0.0, 0.0)]);
        assert!(found.ok);
        assert_eq!((found.error, found.place), (1e-6, (0, 7)));
    }

    #[test]
    fn one_token_beyond_its_bound_fails_the_case_wherever_it_stands() {
        for place in 0..3 {
            for bad in [(1.0, 0.0), (3e-6, 2e-6), (f64::INFINITY, 1.0), (f64::NAN, 1.0)] {
                let mut errors = [(0.0, 1.0); 3];
                errors[place] = bad;
                assert!(!worst(&errors).ok, "{bad:?} at {place}");
            }
        }
    }

    #[test]
    fn nothing_compared_is_a_failure() {
        assert!(!worst(&[]).ok);
    }
}
