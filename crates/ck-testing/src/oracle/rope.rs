//! Rotary position embedding.
//!
//! Pair i of a head is rotated by the angle `position * base^(-2i / width)`, or what a scaling makes of it. What lies
//! beyond the rotary width stays as it is.
//!
//! The scalings are written from their other descriptions than those of the shipped crates: that of Llama 3 by
//! wave lengths, as Meta published it, and YaRN as the arguments of ggml's rope operator, beside what llama.cpp
//! passes for them.

use std::f64::consts::PI;

/// Which two elements make pair i of a head with rotary width `width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// Elements i and i + width / 2, as Qwen2 and most others.
    SplitHalf,
    /// Elements 2i and 2i + 1, as Llama files in GGUF.
    Interleaved,
}

impl Pairing {
    /// Both pairings.
    pub const ALL: [Self; 2] = [Self::SplitHalf, Self::Interleaved];
}

/// What is done to the angles for a context longer than that of the training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scaling {
    /// The rule of Llama 3.1.
    Llama3 {
        /// What long waves are stretched by.
        factor: f64,
        /// The original context holds so many of the shortest waves that are stretched in full.
        low: f64,
        /// The original context holds so many of the longest waves that are not stretched.
        high: f64,
        /// The original context.
        context: f64,
    },
    /// The arguments of ggml's rope operator.
    Ggml {
        /// What angles are multiplied by where they are interpolated.
        freq_scale: f64,
        /// How much of the ramp is applied.
        ext_factor: f64,
        /// What cosines and sines are multiplied by.
        attn_factor: f64,
        /// The turns where the ramp begins.
        beta_fast: f64,
        /// The turns where the ramp ends.
        beta_slow: f64,
        /// The original context.
        n_ctx_orig: f64,
    },
}

impl Scaling {
    /// No change.
    pub const NONE: Self = Self::linear(1.0);

    /// Every angle divided by `factor`.
    #[must_use]
    pub const fn linear(factor: f64) -> Self {
        Self::Ggml {
            freq_scale: 1.0 / factor,
            ext_factor: 0.0,
            attn_factor: 1.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            n_ctx_orig: 1.0,
        }
    }

    /// What llama.cpp passes to ggml for YaRN. `model_factor` is `rope.scaling.attn_factor`, `log_multiplier`
    /// is `rope.scaling.yarn_log_multiplier`.
    ///
    /// ggml lengthens by `1 + 0.1 ln(1 / freq_scale)` whenever the ramp is applied. llama.cpp divides by the same number
    /// and multiplies by the lengthening that it wants.
    #[must_use]
    pub fn llama_cpp_yarn(
        factor: f64,
        n_ctx_orig: f64,
        (beta_fast, beta_slow): (f64, f64),
        ext_factor: f64,
        (model_factor, log_multiplier): (f64, f64),
    ) -> Self {
        let mscale = |by: f64| if factor <= 1.0 { 1.0 } else { 0.1 * by * factor.ln() + 1.0 };
        let mut attn_factor = model_factor;
        if ext_factor != 0.0 {
            attn_factor *= mscale(1.0) / mscale(log_multiplier) / (1.0 + 0.1 * factor.ln());
        }
        let freq_scale = 1.0 / factor;
        Self::Ggml { freq_scale, ext_factor, attn_factor, beta_fast, beta_slow, n_ctx_orig }
    }

    /// The angle of a pair whose angle without a scaling is `angle`.
    fn angle(&self, position: usize, pair: usize, angle: f64, rope: &Rope) -> f64 {
        match *self {
            _ if position == 0 => 0.0,
            Self::Llama3 { factor, low, high, context } => {
                let wave = 2.0 * PI * position as f64 / angle;
                if wave < context / high {
                    angle
                } else if wave > context / low {
                    angle / factor
                } else {
                    let smooth = (context / wave - low) / (high - low);
                    (1.0 - smooth) * angle / factor + smooth * angle
                }
            }
            Self::Ggml { freq_scale, ext_factor, beta_fast, beta_slow, n_ctx_orig, .. } => {
                let interpolated = freq_scale * angle;
                if ext_factor == 0.0 {
                    return interpolated;
                }
                let width = rope.width as f64;
                let dim = |turns: f64| {
                    width * (n_ctx_orig / (turns * 2.0 * PI)).ln() / (2.0 * rope.base.ln())
                };
                let start = dim(beta_fast).floor().max(0.0);
                let end = dim(beta_slow).ceil().min(width - 1.0);
                let y = (pair as f64 - start) / (end - start).max(0.001);
                let mix = ext_factor * (1.0 - y.clamp(0.0, 1.0));
                interpolated * (1.0 - mix) + angle * mix
            }
        }
    }

    /// What cosines and sines are multiplied by.
    fn magnitude(&self) -> f64 {
        match *self {
            Self::Ggml { freq_scale, ext_factor, attn_factor, .. } if ext_factor != 0.0 => {
                attn_factor * (1.0 + 0.1 * (1.0 / freq_scale).ln())
            }
            Self::Ggml { attn_factor, .. } => attn_factor,
            Self::Llama3 { .. } => 1.0,
        }
    }

    /// By how much errors of the angle may be larger than those of a power, relatively.
    fn conditioning(&self) -> f64 {
        match *self {
            Self::Llama3 { factor, low, high, .. } => factor.max(1.0) * (1.0 + high / (high - low)),
            Self::Ggml { freq_scale, .. } => (1.0 / freq_scale).max(1.0),
        }
    }
}

/// A rotation by position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Which elements make a pair.
    pub pairing: Pairing,
    /// How many elements of a head take part, from its first on; even.
    pub width: usize,
    /// The base of the angles, 10000 in the first models.
    pub base: f64,
    /// A number for every pair that its angle is divided by, before any scaling; none is all ones.
    pub factors: &'static [f32],
    /// What else becomes of the angles.
    pub scaling: Scaling,
}

impl Rope {
    /// A rotation without a scaling.
    #[must_use]
    pub const fn new(pairing: Pairing, width: usize, base: f64) -> Self {
        Self { pairing, width, base, factors: &[], scaling: Scaling::NONE }
    }

    /// The same rotation with another scaling.
    #[must_use]
    pub const fn with_scaling(self, scaling: Scaling) -> Self {
        Self { scaling, ..self }
    }

    /// The two elements of pair `pair`, first and second coordinate.
    #[must_use]
    pub fn elements(&self, pair: usize) -> (usize, usize) {
        match self.pairing {
            Pairing::SplitHalf => (pair, pair + self.width / 2),
            Pairing::Interleaved => (2 * pair, 2 * pair + 1),
        }
    }

    /// The angle of pair `pair` at `position`, in radians.
    ///
    /// ```
    /// use ck_testing::oracle::{Pairing, Rope};
    /// let rope = Rope::new(Pairing::SplitHalf, 64, 1e6);
    /// assert!((rope.angle(1, 1) - 0.649_381_6).abs() < 1e-7);
    /// ```
    #[must_use]
    pub fn angle(&self, position: usize, pair: usize) -> f64 {
        self.scaling.angle(position, pair, self.unscaled_angle(position, pair), self)
    }

    fn unscaled_angle(&self, position: usize, pair: usize) -> f64 {
        let factor = self.factors.get(pair).map_or(1.0, |&factor| f64::from(factor));
        position as f64 * self.base.powf(-2.0 * pair as f64 / self.width as f64) / factor
    }

    /// What cosines and sines are multiplied by.
    #[must_use]
    pub fn magnitude(&self) -> f64 {
        self.scaling.magnitude()
    }

    /// How far two computations of an angle in `f64` may be apart.
    ///
    /// The rounded exponent, times the logarithm of the base, and a few operations each: relatively
    /// `(8 + ln(base)) * 2^-51`. A weighted mean of the angle and its quotient by a factor can
    /// lose the factor besides, and weights that are a difference of two numbers lose what cancels.
    #[must_use]
    pub fn angle_error(&self, position: usize, pair: usize) -> f64 {
        let relative = (8.0 + self.base.ln().abs()) * 2.0 * f64::EPSILON;
        self.angle(position, pair) * relative * self.scaling.conditioning()
    }

    /// Rotates one head in place.
    ///
    /// # Panics
    ///
    /// If the rotary width is odd or larger than the head.
    pub fn rotate_head(&self, position: usize, head: &mut [f64]) {
        assert_eq!(self.width % 2, 0, "a rotary width is even");
        assert!(self.width <= head.len(), "width {} of a head of {}", self.width, head.len());
        for pair in 0..self.width / 2 {
            let (first, second) = self.elements(pair);
            let (sin, cos) = self.angle(position, pair).sin_cos();
            let (sin, cos) = (sin * self.magnitude(), cos * self.magnitude());
            let (a, b) = (head[first], head[second]);
            head[first] = a * cos - b * sin;
            head[second] = a * sin + b * cos;
        }
    }

    /// Rotates every head of a row in place.
    ///
    /// # Panics
    ///
    /// As [`Rope::rotate_head`]; also if the row is no whole number of heads.
    pub fn rotate_row(&self, position: usize, head_dim: usize, row: &mut [f64]) {
        assert_eq!(row.len() % head_dim, 0, "{} elements of heads of {head_dim}", row.len());
        for head in row.chunks_exact_mut(head_dim) {
            self.rotate_head(position, head);
        }
    }
}
