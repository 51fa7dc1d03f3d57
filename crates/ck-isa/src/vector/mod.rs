//! Small vectors of `f32`, so that an operation is written once for every level.
//!
//! The trait is implemented for the tokens: whoever has one has the proof that the instructions exist,
//! and passes it to every operation. Code over the trait is `#[inline(always)]` and ends in a function with
//! `#[target_feature]` that names what the level has; only there do the operations become instructions.
//!
//! All operations give, lane by lane, the bits of the scalar operation that their text names (the payload of
//! a NaN aside), which the tests compare.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
#[cfg(target_arch = "aarch64")]
mod neondot;
#[cfg(test)]
mod tests;

/// The most lanes of any level.
pub const MAX_LANES: usize = 16;

/// The vectors of one level.
///
/// ```
/// use ck_isa::Vectors;
///
/// /// `x + y`, for slices of equal length.
/// #[inline(always)]
/// fn add<V: Vectors>(v: V, x: &[f32], y: &[f32], out: &mut [f32]) {
///     for ((x, y), out) in x.chunks(V::LANES).zip(y.chunks(V::LANES)).zip(out.chunks_mut(V::LANES)) {
///         v.store_partial(v.add(v.load_partial(x), v.load_partial(y)), out);
///     }
/// }
///
/// #[cfg(target_arch = "x86_64")]
/// #[target_feature(enable = "avx2,fma,f16c")]
/// fn add_avx2(token: ck_isa::Avx2, x: &[f32], y: &[f32], out: &mut [f32]) {
///     add(token, x, y, out);
/// }
///
/// # #[cfg(target_arch = "x86_64")]
/// if let Some(token) = ck_isa::Avx2::detect() {
///     let mut out = [0.0; 3];
///     // SAFETY: the token proves that this CPU has AVX2, FMA and F16C.
///     unsafe { add_avx2(token, &[1.0, 2.0, 3.0], &[0.5; 3], &mut out) };
///     assert_eq!(out, [1.5, 2.5, 3.5]);
/// }
/// ```
pub trait Vectors: Copy {
    /// [`LANES`](Self::LANES) values of `f32`.
    type F32: Copy;

    /// Eight sums of squares in `f64`.
    type Squares: Copy;

    /// Lanes of a vector: 4, 8 or 16.
    const LANES: usize;

    /// Vector registers of the level.
    const REGISTERS: usize;

    /// `x` in every lane.
    fn splat(self, x: f32) -> Self::F32;

    /// The first [`LANES`](Self::LANES) values of `from`.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    fn load(self, from: &[f32]) -> Self::F32;

    /// All of `from` and zeros after it.
    ///
    /// # Panics
    ///
    /// If there are more values than lanes.
    fn load_partial(self, from: &[f32]) -> Self::F32;

    /// The first [`LANES`](Self::LANES) values of `from`, bit patterns of IEEE `binary16`, widened exactly.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    fn load_f16(self, from: &[u16]) -> Self::F32;

    /// The first [`LANES`](Self::LANES) values of `from`, converted exactly.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    fn load_i8(self, from: &[i8]) -> Self::F32;

    /// Writes the lanes to the first [`LANES`](Self::LANES) places of `to`.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    fn store(self, a: Self::F32, to: &mut [f32]);

    /// Writes the first lanes to all of `to`.
    ///
    /// # Panics
    ///
    /// If there are more places than lanes.
    fn store_partial(self, a: Self::F32, to: &mut [f32]);

    /// Rounds the lanes to IEEE `binary16`, ties to even, and writes their bit patterns to the first
    /// [`LANES`](Self::LANES) places of `to`.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    fn store_f16(self, a: Self::F32, to: &mut [u16]);

    /// `a + b`.
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;

    /// `a - b`.
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;

    /// `a * b`.
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;

    /// `a / b`.
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;

    /// `a * b + c` with one rounding: [`fma`](crate::fma).
    fn fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;

    /// `-a * b + c` with one rounding.
    fn neg_fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;

    /// `if a > b { a } else { b }`: the second where one is NaN.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;

    /// `if a < b { a } else { b }`: the second where one is NaN.
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;

    /// `a.abs()`.
    fn abs(self, a: Self::F32) -> Self::F32;

    /// `a.copysign(sign)`.
    fn copysign(self, a: Self::F32, sign: Self::F32) -> Self::F32;

    /// `a * 2^n` with one rounding, for `a` zero, not finite or of a magnitude in [0.5, 2), and integers `n` in
    /// [-252, 254]. NaN in either gives NaN if `a` is NaN, and otherwise anything.
    fn mul_power_of_two(self, a: Self::F32, n: Self::F32) -> Self::F32;

    /// `a[0], b[0], a[1], b[1], ...`: the first half of all, and the second.
    fn zip(self, a: Self::F32, b: Self::F32) -> (Self::F32, Self::F32);

    /// The even and the odd elements of `a` followed by `b`.
    fn unzip(self, a: Self::F32, b: Self::F32) -> (Self::F32, Self::F32);

    /// The sum of the lanes by halves: lane `i` takes lane `i + LANES / 2`, and so on until one is left.
    fn sum_lanes(self, a: Self::F32) -> f32;

    /// As [`sum_lanes`](Self::sum_lanes) with [`max`](Self::max).
    fn max_lanes(self, a: Self::F32) -> f32;

    /// Asks for the cache line of `at`, which may point anywhere: nothing is read.
    fn prefetch<T>(self, at: *const T);

    /// Eight sums of zero.
    fn squares(self) -> Self::Squares;

    /// Adds the square of `from[i]` to sum `i`, in `f64`: the square is exact.
    fn add_squares(self, sums: Self::Squares, from: &[f32; 8]) -> Self::Squares;

    /// The eight sums.
    fn squares_to_array(self, sums: Self::Squares) -> [f64; 8];
}
