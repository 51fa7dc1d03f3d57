//! The kernels of other projects, each behind a feature that is off by default.

#[cfg(feature = "peer-candle")]
pub mod candle;
#[cfg(feature = "peer-ggml")]
pub mod ggml;
