//! The value that carries a level together with the proof that it may run.

use crate::level::{Features, Level};
use std::fmt;

/// A level that this CPU, or this build, cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("level {level} is not available on this machine: the best one here is {best}")]
pub struct UnavailableLevel {
    /// The level that was asked for.
    pub level: Level,
    /// The best level that would have been available.
    pub best: Level,
}

/// Defines the token of one level: a value that only detection can make.
macro_rules! token {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(());

        impl $name {
            /// The token, if this machine has every feature of the level.
            #[must_use]
            pub fn detect() -> Option<Self> {
                Features::detect().supports(Level::$name).then_some(Self(()))
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
token! {
    /// Proof that AVX2, FMA and F16C may be used.
    Avx2
}

#[cfg(target_arch = "x86_64")]
token! {
    /// Proof that AVX-512 F, BW, VL and VNNI may be used, and everything that [`Avx2`] proves.
    Avx512Vnni
}

#[cfg(target_arch = "aarch64")]
token! {
    /// Proof that NEON and its dot product instructions may be used.
    NeonDot
}

/// A level together with the proof that it may run here.
///
/// There is no way to make one but by detection, so a kernel that takes an `Isa` never meets an
/// instruction that the CPU lacks. Kernels match on it once per range of rows. The variants are those of
/// the target: an x86-64 build has no [`Level::NeonDot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// Plain Rust.
    Scalar,
    /// AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512 with VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(Avx512Vnni),
    /// NEON with the dot product.
    #[cfg(target_arch = "aarch64")]
    NeonDot(NeonDot),
}

impl Isa {
    /// The widest level of this machine.
    ///
    /// Detection reads the CPU once per process; it is still best called once, and its result passed on.
    #[must_use]
    pub fn detect() -> Self {
        Self::with_level(Features::detect().best()).unwrap_or(Self::Scalar)
    }

    /// Exactly `level`.
    ///
    /// # Errors
    ///
    /// [`UnavailableLevel`] where the CPU, the operating system or this build lacks it.
    pub fn with_level(level: Level) -> Result<Self, UnavailableLevel> {
        let isa = match level {
            Level::Scalar => Some(Self::Scalar),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Avx2::detect().map(Self::Avx2),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512Vnni => Avx512Vnni::detect().map(Self::Avx512Vnni),
            #[cfg(target_arch = "aarch64")]
            Level::NeonDot => NeonDot::detect().map(Self::NeonDot),
            _ => None,
        };
        isa.ok_or_else(|| UnavailableLevel { level, best: Features::detect().best() })
    }

    /// Every level that may run here, from the plainest to the widest.
    pub fn available() -> impl Iterator<Item = Self> {
        Level::ALL.into_iter().filter_map(|level| Self::with_level(level).ok())
    }

    /// The level that this value proves.
    #[must_use]
    pub const fn level(self) -> Level {
        match self {
            Self::Scalar => Level::Scalar,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Level::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni(_) => Level::Avx512Vnni,
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot(_) => Level::NeonDot,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.level().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Case B15: what is detected is what the operating system lets a program use.
    #[test]
    fn a_forced_level_that_the_machine_lacks_is_refused() {
        let features = Features::detect();
        for level in Level::ALL {
            match Isa::with_level(level) {
                Ok(isa) => {
                    assert_eq!(isa.level(), level);
                    assert!(features.supports(level));
                }
                Err(error) => {
                    assert_eq!(error.level, level);
                    assert!(!features.supports(level));
                }
            }
        }
    }

    // An emulated CPU that is not what its run believes would test nothing.
    #[test]
    fn the_levels_are_those_that_the_run_expects() {
        let levels: Vec<Isa> = Isa::available().collect();
        println!("{levels:?}");
        ck_testing::run::assert_expected_levels(&levels);
    }

    #[test]
    fn detection_gives_the_best_of_the_available_levels() {
        assert_eq!(Isa::available().last(), Some(Isa::detect()));
    }
}
