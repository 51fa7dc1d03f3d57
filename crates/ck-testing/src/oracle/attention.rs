//! Softmax attention of one query position over a history, in two passes.

use super::Rejected;

/// `exp(x_i - max) / sum_j exp(x_j - max)`.
///
/// ```
/// let weights = ck_testing::oracle::softmax(&[-1e5, -1e5]);
/// assert_eq!(weights, [0.5, 0.5]);
/// ```
#[must_use]
pub fn softmax(scores: &[f64]) -> Vec<f64> {
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// Grouped-query attention with its options.
///
/// A query row holds `n_heads * head_dim` elements. A history of keys or values holds one row of
/// `n_kv_heads * head_dim` elements per position, in order; the last row is that of the query's own position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// Query heads.
    pub n_heads: usize,
    /// KV heads.
    pub n_kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// What a dot product is multiplied by.
    pub scale: f64,
    /// `cap` in `score = cap * tanh(score / cap)`, if scores are capped.
    pub soft_cap: Option<f64>,
    /// How many of the last positions are attended to, the query's own included. `None`: all.
    pub window: Option<usize>,
    /// How many of the first positions stay attended to when the window has left them.
    pub sinks: usize,
}

impl Attention {
    /// Attention to all positions, with scale `1 / sqrt(head_dim)` and no soft cap.
    ///
    /// # Errors
    ///
    /// [`Rejected::HeadCounts`] unless `n_heads` is a positive multiple of `n_kv_heads`.
    pub fn new(n_heads: usize, n_kv_heads: usize, head_dim: usize) -> Result<Self, Rejected> {
        if n_kv_heads == 0 || n_heads == 0 || !n_heads.is_multiple_of(n_kv_heads) {
            return Err(Rejected::HeadCounts { n_heads, n_kv_heads });
        }
        let scale = 1.0 / (head_dim as f64).sqrt();
        Ok(Self { n_heads, n_kv_heads, head_dim, scale, soft_cap: None, window: None, sinks: 0 })
    }

    /// The KV head of a query head, both counted over the whole layer.
    ///
    /// ```
    /// let attention = ck_testing::oracle::Attention::new(14, 2, 64)?;
    /// assert_eq!((attention.kv_head(6), attention.kv_head(7)), (0, 1));
    /// # Ok::<(), ck_testing::oracle::Rejected>(())
    /// ```
    #[must_use]
    pub fn kv_head(&self, head: usize) -> usize {
        head / (self.n_heads / self.n_kv_heads)
    }

    /// Elements of a query row.
    #[must_use]
    pub fn q_width(&self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Elements of a row of keys or values.
    #[must_use]
    pub fn kv_width(&self) -> usize {
        self.n_kv_heads * self.head_dim
    }

    /// The attended positions of a history of `len`, ascending.
    #[must_use]
    pub fn attended(&self, len: usize) -> Vec<usize> {
        let window = self.window.unwrap_or(len);
        (0..len).filter(|&position| position < self.sinks || len - position <= window).collect()
    }

    /// The part of a row of keys or values that a query head sees at `position`.
    ///
    /// # Panics
    ///
    /// If `rows` does not reach that far.
    #[must_use]
    pub fn kv_row<'a>(&self, rows: &'a [f64], head: usize, position: usize) -> &'a [f64] {
        let start = position * self.kv_width() + self.kv_head(head) * self.head_dim;
        &rows[start..start + self.head_dim]
    }

    /// The part of a query row that belongs to `head`.
    ///
    /// # Panics
    ///
    /// If there is no such head.
    #[must_use]
    pub fn q_head<'a>(&self, q: &'a [f64], head: usize) -> &'a [f64] {
        &q[head * self.head_dim..][..self.head_dim]
    }

    /// The scores of one query head at the attended positions, scaled and capped.
    ///
    /// # Panics
    ///
    /// If the lengths do not fit.
    #[must_use]
    pub fn scores(&self, head: usize, q: &[f64], keys: &[f64]) -> Vec<f64> {
        let query = self.q_head(q, head);
        self.attended(self.positions(keys))
            .into_iter()
            .map(|position| {
                let key = self.kv_row(keys, head, position);
                let dot: f64 = query.iter().zip(key).map(|(q, k)| q * k).sum();
                let score = dot * self.scale;
                self.soft_cap.map_or(score, |cap| cap * (score / cap).tanh())
            })
            .collect()
    }

    /// The attention output of all heads, `n_heads * head_dim` elements.
    ///
    /// # Panics
    ///
    /// If the lengths do not fit, or no position is attended to.
    #[must_use]
    pub fn attend(&self, q: &[f64], keys: &[f64], values: &[f64]) -> Vec<f64> {
        assert_eq!(q.len(), self.q_width(), "elements of the query row");
        assert_eq!(keys.len(), values.len(), "keys and values");
        let attended = self.attended(self.positions(keys));
        assert!(!attended.is_empty(), "a query attends to one position at least");
        let mut output = vec![0.0; self.q_width()];
        for (head, out) in output.chunks_exact_mut(self.head_dim).enumerate() {
            let weights = softmax(&self.scores(head, q, keys));
            for (weight, &position) in weights.iter().zip(&attended) {
                for (out, value) in out.iter_mut().zip(self.kv_row(values, head, position)) {
                    *out += weight * value;
                }
            }
        }
        output
    }

    /// Positions in a history.
    fn positions(&self, rows: &[f64]) -> usize {
        assert_eq!(rows.len() % self.kv_width(), 0, "a history is a whole number of rows");
        rows.len() / self.kv_width()
    }
}
