//! Levels, and what a CPU must have for each.

use std::fmt;
use std::str::FromStr;

/// A set of instructions that kernels are written for.
///
/// All levels give the same bits; a level only decides how quickly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// Plain Rust, on every CPU. The definition that the other levels must agree with.
    Scalar,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// x86-64 with AVX-512 F, BW, VL and VNNI, on top of everything [`Level::Avx2`] needs.
    Avx512Vnni,
    /// AArch64 with NEON and the dot product instructions.
    NeonDot,
}

impl Level {
    /// Every level, from the plainest to the widest.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Avx2, Self::Avx512Vnni, Self::NeonDot];

    /// The short name: `scalar`, `avx2`, `avx512vnni` or `neondot`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512Vnni => "avx512vnni",
            Self::NeonDot => "neondot",
        }
    }

    /// The CPU features that a kernel of this level may use, by the names that the compiler knows.
    ///
    /// The one list: detection asks for each of them, and the kernels' `target_feature` attributes name
    /// exactly these.
    #[must_use]
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            Self::Scalar => &[],
            Self::Avx2 => &["avx2", "fma", "f16c"],
            Self::Avx512Vnni => {
                &["avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512vnni"]
            }
            Self::NeonDot => &["neon", "dotprod"],
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no level's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown level {name:?}: expected one of {}", Level::ALL.map(Level::name).join(", "))]
pub struct UnknownLevel {
    /// The name that was given.
    pub name: String,
}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|level| level.name() == name)
            .ok_or_else(|| UnknownLevel { name: name.to_owned() })
    }
}

/// The CPU features that the levels are chosen by.
///
/// A plain record, so that the choice can be tested for CPUs that are not at hand. The standard
/// library's detection fills it; it also asks whether the operating system saves the wide registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each field is the name of the feature")]
pub struct Features {
    pub avx2: bool,
    pub fma: bool,
    pub f16c: bool,
    pub avx512f: bool,
    pub avx512bw: bool,
    pub avx512vl: bool,
    pub avx512vnni: bool,
    pub neon: bool,
    pub dotprod: bool,
}

impl Features {
    /// What this CPU and operating system offer.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        return Self {
            avx2: is_x86_feature_detected!("avx2"),
            fma: is_x86_feature_detected!("fma"),
            f16c: is_x86_feature_detected!("f16c"),
            avx512f: is_x86_feature_detected!("avx512f"),
            avx512bw: is_x86_feature_detected!("avx512bw"),
            avx512vl: is_x86_feature_detected!("avx512vl"),
            avx512vnni: is_x86_feature_detected!("avx512vnni"),
            ..Self::default()
        };
        #[cfg(target_arch = "aarch64")]
        return Self {
            neon: std::arch::is_aarch64_feature_detected!("neon"),
            dotprod: std::arch::is_aarch64_feature_detected!("dotprod"),
            ..Self::default()
        };
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        Self::default()
    }

    /// Whether the feature of this name is there; a name that is no field's is not.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        match name {
            "avx2" => self.avx2,
            "fma" => self.fma,
            "f16c" => self.f16c,
            "avx512f" => self.avx512f,
            "avx512bw" => self.avx512bw,
            "avx512vl" => self.avx512vl,
            "avx512vnni" => self.avx512vnni,
            "neon" => self.neon,
            "dotprod" => self.dotprod,
            _ => false,
        }
    }

    /// Whether a CPU with these features can run `level`, which is to have each of its
    /// [features](Level::features).
    #[must_use]
    pub fn supports(&self, level: Level) -> bool {
        level.features().iter().all(|name| self.has(name))
    }

    /// The widest level that a CPU with these features can run.
    #[must_use]
    pub fn best(&self) -> Level {
        let supported = |level: &Level| self.supports(*level);
        Level::ALL.into_iter().rev().find(supported).unwrap_or(Level::Scalar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
        let error = "avx9".parse::<Level>().unwrap_err();
        assert!(error.to_string().contains("avx9"), "{error}");
    }

    // Case B14: a level is guarded by every feature that its kernels use.
    #[test]
    fn a_level_needs_every_one_of_its_features() {
        let avx2 = Features { avx2: true, fma: true, f16c: true, ..Features::default() };
        let skylake_x = Features { avx512f: true, avx512bw: true, avx512vl: true, ..avx2 };
        let foundation_only = Features { avx512f: true, ..avx2 };
        let vnni = Features { avx512vnni: true, ..skylake_x };
        let plain_neon = Features { neon: true, ..Features::default() };
        let neon_dot = Features { dotprod: true, ..plain_neon };
        for (features, best) in [
            (Features::default(), Level::Scalar),
            (Features { avx2: true, ..Features::default() }, Level::Scalar),
            (Features { f16c: false, ..avx2 }, Level::Scalar),
            (avx2, Level::Avx2),
            (skylake_x, Level::Avx2),
            (foundation_only, Level::Avx2),
            (vnni, Level::Avx512Vnni),
            (Features { fma: false, ..vnni }, Level::Scalar),
            (Features { avx512vl: false, ..vnni }, Level::Avx2),
            (plain_neon, Level::Scalar),
            (neon_dot, Level::NeonDot),
        ] {
            assert_eq!(features.best(), best, "{features:?}");
        }
    }
}
