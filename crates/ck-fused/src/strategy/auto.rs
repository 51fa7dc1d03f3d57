//! The choice between one thread and the team.
//!
//! On two threads the barrier strategy was never slower than another parallel one by more than the
//! spread, on four shapes and contexts of 6 to 4096 positions; it lost only to one thread, where a
//! call reads so little that the hand-over costs more than half of it. docs/strategies.md has the
//! measurements.

use crate::runner::Runner;
use crate::step::Step;
use crate::{Projection, Strategy};
use ck_ops::CacheElement;

/// Bytes of weights and context from which a team is worth its dispatch. Two threads were measured to be
/// slower at 150 KB (6.5 against 6.1 us), equal at 290 KB, and faster at 650 KB (15.1 against 18.2 us).
const WORTH_A_TEAM: usize = 256 << 10;

/// The runner with the strategy that suits this step.
pub(super) fn choose<'r, E: CacheElement>(runner: &Runner<'r>, step: Step<'_, E>) -> Runner<'r> {
    let strategy =
        if bytes_read(step) < WORTH_A_TEAM { Strategy::Serial } else { Strategy::Barrier };
    runner.with_strategy(strategy)
}

/// Bytes of weights, keys and values that the step reads.
fn bytes_read<E: CacheElement>(step: Step<'_, E>) -> usize {
    let weights = step.layer.weights();
    let matrix = |projection: &Projection<'_>| {
        let weights = projection.weights();
        // The sizes of a matrix that exists do not overflow.
        weights.format().matrix_bytes(weights.rows(), weights.columns()).unwrap_or(usize::MAX)
    };
    let weights = [&weights.q, &weights.k, &weights.v, &weights.o].map(matrix).into_iter();
    let row = 2 * step.layer.shape().kv_dim() * size_of::<f32>();
    weights.fold(row.saturating_mul(step.position), usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DecodeLayer, LayerShape, LayerWeights, Norm, Projections};
    use ck_isa::Isa;
    use ck_ops::{KvCache, NewPosition};
    use ck_quant::{Format, Matrix};
    use ck_threadpool::ThreadPool;

    /// The strategy that is chosen for a layer of this width with so many positions stored.
    fn chosen(embed_dim: usize, stored: usize) -> Strategy {
        let shape = LayerShape::new(embed_dim, embed_dim / 32, 1, 32).unwrap();
        let bytes = vec![0; Format::Q5_0.matrix_bytes(embed_dim, embed_dim).unwrap()];
        let projection = |rows: usize| {
            let bytes = &bytes[..Format::Q5_0.matrix_bytes(rows, embed_dim).unwrap()];
            Projection::new(Matrix::new(Format::Q5_0, rows, embed_dim, bytes).unwrap())
        };
        let weights = LayerWeights::new(
            Norm::new(vec![1.0; embed_dim], 1e-6),
            Projections {
                q: projection(embed_dim),
                k: projection(32),
                v: projection(32),
                o: projection(embed_dim),
            },
        );
        let layer = DecodeLayer::new(shape, weights).unwrap();
        let mut cache = KvCache::<f32>::with_capacity(shape.cache().unwrap(), stored).unwrap();
        let new = NewPosition::new(cache.shape()).unwrap();
        (0..stored).for_each(|_| cache.append(&new).unwrap());
        let pool = ThreadPool::new(2).unwrap();
        let runner = Runner::new(Isa::Scalar, &pool);
        choose(&runner, runner.step(&layer, None, &cache)).strategy()
    }

    #[test]
    fn little_work_is_done_by_one_thread_and_more_by_the_team() {
        assert_eq!(chosen(128, 0), Strategy::Serial);
        assert_eq!(chosen(640, 0), Strategy::Barrier);
        assert_eq!(chosen(128, 2000), Strategy::Barrier);
    }
}
