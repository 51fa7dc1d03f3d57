//! The phases of one call. Each says what it reads and what it writes; a strategy puts them in a row.
//!
//! | phase | reads | writes |
//! | --- | --- | --- |
//! | [`norm`](norm()) | input | normed, activations |
//! | [`project`](project()) | activations | rows of Q, K and V |
//! | [`rotate`](rotate()) | heads of Q or K | the same heads |
//! | [`attend`](attend()) | Q, the new position, the cache | the heads' results |
//! | [`output`](output()) | quantized results, residual | rows of the output |

mod attend;
mod norm;
mod output;
mod project;

pub(crate) use attend::attend;
pub(crate) use norm::norm;
pub(crate) use output::output;
pub(crate) use project::{project, rotate};
