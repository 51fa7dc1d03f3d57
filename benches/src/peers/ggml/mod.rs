//! ggml, the library under llama.cpp: its kernels one by one, and its graphs.

mod attention;
mod caches;
mod graph;
mod kernels;
mod layer;

use crate::contender::Agreement;
use crate::context::Kv;
pub use attention::Attention;
pub use caches::Caches;
use ck_quant::Level;
pub use graph::Threads;
pub use kernels::{Gemv, Quantize};
pub use layer::Layer;
use llama_cpp_sys_2 as sys;

/// The widest of this project's levels whose instructions the built ggml uses.
#[must_use]
pub fn level() -> Level {
    // SAFETY: it has no precondition and returns what the library was built with.
    let vnni = unsafe { sys::ggml_cpu_has_avx512_vnni() };
    // SAFETY: as above.
    let avx2 = unsafe { sys::ggml_cpu_has_avx2() };
    // SAFETY: as above.
    let dot = unsafe { sys::ggml_cpu_has_dotprod() };
    match (vnni, avx2, dot) {
        (1.., _, _) => Level::Avx512Vnni,
        (_, 1.., _) => Level::Avx2,
        (_, _, 1..) => Level::NeonDot,
        _ => Level::Scalar,
    }
}

/// How a graph computes attention, and on what cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// One flash attention node, instead of two products and a softmax.
    pub flash: bool,
    /// The type of the cache.
    pub elements: Elements,
}

/// The types of cache elements that both sides have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// `f32`.
    F32,
    /// `f16`.
    F16,
}

impl Elements {
    /// This project's type of the same numbers.
    #[must_use]
    pub const fn kv(self) -> Kv {
        match self {
            Self::F32 => Kv::F32,
            Self::F16 => Kv::F16,
        }
    }

    /// Bytes of one element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.kv().bytes(1)
    }
}

impl Mode {
    /// All that llama.cpp can be told to use on these types.
    pub const ALL: [Self; 4] = [
        Self { flash: true, elements: Elements::F16 },
        Self { flash: false, elements: Elements::F16 },
        Self { flash: true, elements: Elements::F32 },
        Self { flash: false, elements: Elements::F32 },
    ];

    /// How far an answer over so many positions may be off, as a part of the largest: docs/benchmarking.md has
    /// the reckoning. Flash attention on an f16 cache adds its values up in f16, and that error grows with the
    /// square root of the positions.
    fn agreement(self, positions: usize) -> Agreement {
        let sums_in_f16 = self.flash && self.elements == Elements::F16;
        let growth = (positions as f32 / 1024.0).sqrt().max(1.0);
        Agreement::Within(if sums_in_f16 { 2e-2 * growth } else { 1e-2 })
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = if self.flash { "flash" } else { "plain" };
        write!(f, "{how} {}", self.elements.kv().name())
    }
}
