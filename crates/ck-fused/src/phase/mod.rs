//! The phases of one call. Each is a function over the team, the step and the shared memory; a strategy
//! puts them in a row, with a barrier wherever a phase reads what other members wrote before.
//!
//! | phase | reads | writes |
//! | --- | --- | --- |
//! | [`norm`](norm()) | input | the member's own activations |
//! | [`project`](project()) | the member's own activations | its rows of Q, K and V |
//! | [`attend`](attend()) | Q, K and V of all, the cache | its partial results, its own new position |
//! | [`merge`](merge()) | all partial results | its heads' results |
//! | [`output`](output()) | all heads' results, residual | its rows of the output |

mod attend;
mod merge;
mod norm;
mod output;
mod project;

pub(crate) use attend::attend;
#[cfg(feature = "rayon")]
pub(crate) use attend::attend_units;
#[cfg(feature = "rayon")]
pub(crate) use merge::merge_heads;
pub(crate) use merge::{merge, merge_all};
pub(crate) use norm::norm;
pub(crate) use output::{add_residual, output};
pub(crate) use project::{add_bias, product, project};
