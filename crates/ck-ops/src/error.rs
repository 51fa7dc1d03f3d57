//! Everything that can be wrong with what a caller passes.

use crate::kv_cache::CacheShape;

/// Why an operation refused its arguments. An operation that returns this has changed nothing, except
/// where its own documentation says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpError {
    /// A slice has the wrong length.
    #[error("{what}: expected {expected} values, found {found}")]
    Length {
        /// The argument.
        what: &'static str,
        /// The length that the other arguments ask for.
        expected: usize,
        /// The length it has.
        found: usize,
    },
    /// A dimension or slice that must hold something is empty.
    #[error("{what} must not be zero")]
    Zero {
        /// The dimension or argument.
        what: &'static str,
    },
    /// An input holds a NaN or an infinity.
    #[error("{what}: expected finite values, found {value} at index {index}")]
    NonFinite {
        /// The argument.
        what: &'static str,
        /// Where in it.
        index: usize,
        /// The value.
        value: f32,
    },
    /// A value does not fit the cache's element type.
    #[error("{what}: {value:e} at index {index} is beyond the range of a cache of {element}")]
    BeyondRange {
        /// The argument.
        what: &'static str,
        /// Where in it.
        index: usize,
        /// The value.
        value: f32,
        /// The cache's element type.
        element: &'static str,
    },
    /// The epsilon of RMSNorm is negative, infinite or NaN.
    #[error("rms norm: epsilon must be finite and not negative, found {eps}")]
    Epsilon {
        /// The epsilon.
        eps: f32,
    },
    /// RMSNorm of zeros with an epsilon of zero.
    #[error("rms norm: the mean square and epsilon are both zero, there is nothing to divide by")]
    ZeroMeanSquare,
    /// The mean square of RMSNorm is beyond the range of f32.
    #[error("rms norm: the mean square {mean_square:e} is beyond the range of f32")]
    MeanSquareOverflow {
        /// The mean square, in f64.
        mean_square: f64,
    },
    /// A width that is split into pairs is odd.
    #[error("{what} must be even, found {found}")]
    Odd {
        /// The dimension.
        what: &'static str,
        /// Its value.
        found: usize,
    },
    /// The head dimension is not a multiple of what the cache's element type needs.
    #[error("head_dim must be a multiple of {block} for a cache of {element}, found {head_dim}")]
    HeadDimBlock {
        /// The head dimension.
        head_dim: usize,
        /// Dimensions that share one scale.
        block: usize,
        /// The cache's element type.
        element: &'static str,
    },
    /// More dimensions are to be rotated than a head has.
    #[error("rot_dim must not exceed head_dim {head_dim}, found {rot_dim}")]
    RotDim {
        /// The rotated width.
        rot_dim: usize,
        /// The head dimension.
        head_dim: usize,
    },
    /// The frequency base of RoPE is not a positive finite number.
    #[error("rope: the frequency base must be finite and positive, found {base}")]
    RopeBase {
        /// The base.
        base: f64,
    },
    /// A number of a RoPE scaling makes no sense.
    #[error("rope scaling: {what} must be {expected}, found {found}")]
    RopeScaling {
        /// The number.
        what: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: f64,
    },
    /// A frequency factor of RoPE is not a positive finite number.
    #[error(
        "rope: the frequency factor of pair {pair} must be finite and positive, found {factor}"
    )]
    RopeFactor {
        /// The pair.
        pair: usize,
        /// Its factor.
        factor: f32,
    },
    /// Base, factors and scaling together make a frequency whose angles are beyond the range of f64.
    #[error("rope: pair {pair} turns by {frequency:e} per position, which is beyond any use")]
    RopeFrequency {
        /// The pair.
        pair: usize,
        /// The frequency in radians per position.
        frequency: f64,
    },
    /// What cosines and sines are multiplied by is beyond the range of f32, or not positive.
    #[error(
        "rope: the magnitude of the rotation must be a positive number within f32, found {magnitude:e}"
    )]
    RopeMagnitude {
        /// The attention factor times the scaling's own magnitude.
        magnitude: f64,
    },
    /// The position is outside the RoPE table.
    #[error("rope: position {position} is outside the table of {positions} positions")]
    PositionOutsideTable {
        /// The position.
        position: usize,
        /// How many positions the table has.
        positions: usize,
    },
    /// A slice of heads is not a whole number of heads.
    #[error("{what}: expected whole heads of {head_dim} values, found {found} values")]
    PartialHead {
        /// The argument.
        what: &'static str,
        /// The head dimension.
        head_dim: usize,
        /// The slice's length.
        found: usize,
    },
    /// The KV cache is full.
    #[error("kv cache: all {capacity} positions are in use")]
    CacheFull {
        /// The capacity in positions.
        capacity: usize,
    },
    /// The KV cache does not hold the position.
    #[error("kv cache: position {position} is not stored, the length is {len}")]
    NotStored {
        /// The position asked for.
        position: usize,
        /// How many positions are stored.
        len: usize,
    },
    /// There is no such KV head.
    #[error("kv head {kv_head} does not exist, there are {n_kv_heads}")]
    NoSuchKvHead {
        /// The KV head asked for.
        kv_head: usize,
        /// How many there are.
        n_kv_heads: usize,
    },
    /// A cache, a new position and an attention do not have the same KV heads.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// The argument.
        what: &'static str,
        /// The shape that the other arguments ask for.
        expected: CacheShape,
        /// The shape it has.
        found: CacheShape,
    },
    /// The query heads cannot be shared out evenly.
    #[error("n_heads must be a multiple of n_kv_heads, found {n_heads} on {n_kv_heads}")]
    HeadGroups {
        /// The query heads.
        n_heads: usize,
        /// The KV heads.
        n_kv_heads: usize,
    },
    /// The score scale is not finite.
    #[error("attention: the score scale must be finite, found {scale}")]
    ScoreScale {
        /// The scale.
        scale: f32,
    },
    /// The soft cap is not a positive finite number.
    #[error("attention: the soft cap must be finite and positive, found {soft_cap}")]
    SoftCap {
        /// The soft cap.
        soft_cap: f32,
    },
    /// There is no position to attend to.
    #[error("attention: the cache is empty and there is no new position")]
    EmptyContext,
    /// A work item's heads do not belong to one KV head, or do not exist.
    #[error(
        "work item: {n_heads} heads from head {first_head} are not heads of one KV head \
         ({group} per KV head, {total} in all)"
    )]
    WorkItemHeads {
        /// The first query head.
        first_head: usize,
        /// How many query heads.
        n_heads: usize,
        /// Query heads per KV head.
        group: usize,
        /// Query heads of the layer.
        total: usize,
    },
    /// A work item's chunk does not exist.
    #[error("work item: chunk {chunk} does not exist, the context has {n_chunks}")]
    NoSuchChunk {
        /// The chunk.
        chunk: usize,
        /// How many there are.
        n_chunks: usize,
    },
    /// The scratch was made for another attention.
    #[error(
        "attention scratch: expected one for {} heads of {} dimensions, found one for {} of {}",
        expected.0, expected.1, found.0, found.1
    )]
    Scratch {
        /// The query heads of the attention, and their dimension.
        expected: (usize, usize),
        /// Those that the scratch was made for.
        found: (usize, usize),
    },
    /// A score is not a finite number: the query holds a NaN or an infinity, or the product overflows.
    #[error("attention: the score of head {head} at position {position} is {score}")]
    NonFiniteScore {
        /// The query head.
        head: usize,
        /// The position attended to.
        position: usize,
        /// The score.
        score: f32,
    },
    /// The weighted sum of the values is beyond the range of f32.
    #[error("attention: the result of head {head} in dimension {dim} is not finite")]
    NonFiniteResult {
        /// The query head; 0 where only one is known.
        head: usize,
        /// The head dimension.
        dim: usize,
    },
    /// A size is too large to be counted.
    #[error("{what}: the size overflows")]
    SizeOverflow {
        /// What was to be sized.
        what: &'static str,
    },
    /// The system refused memory.
    #[error("{what}: {bytes} bytes of memory were refused")]
    OutOfMemory {
        /// What was to be allocated.
        what: &'static str,
        /// How much.
        bytes: usize,
    },
}
