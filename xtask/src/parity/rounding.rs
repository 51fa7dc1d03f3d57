//! What the rounding of keys and values to the cache's type changes about attention.

use super::Kv;
use super::recording::{Recording, Rows};
use anyhow::{Result, bail};
use ck_fused::ProjectionMatrix;
use ck_testing::oracle::{Attention, Block, CacheRounding, Format, Rejected, decode_row, widen};

/// The recorded keys and values of the tokens so far, in f64, as recorded and as the cache's type rounds them.
pub(super) struct History {
    rounding: CacheRounding,
    recorded: [Vec<f64>; 2],
    rounded: [Vec<f64>; 2],
}

impl History {
    pub(super) fn new(kv: Kv) -> Self {
        let rounding = match kv {
            Kv::F32 => CacheRounding::None,
            Kv::F16 => CacheRounding::F16,
            Kv::Q8_0 => CacheRounding::Q8_0,
        };
        Self { rounding, recorded: [vec![], vec![]], rounded: [vec![], vec![]] }
    }

    /// `token`'s recorded attention, corrected by what the rounding changes. So a recording that was made with an f32
    /// cache says, to the same bound, what a cache of any type must give. Nothing where not all is recorded. Tokens are
    /// to be given in order.
    ///
    /// # Errors
    ///
    /// Rows that the cache's type cannot hold.
    pub(super) fn expected(
        &mut self,
        recording: &Recording<'_>,
        token: usize,
    ) -> Result<Option<Vec<f32>>, Rejected> {
        let Some(attn) = &recording.attn else { return Ok(None) };
        let Some(changes) = self.changes(recording, token)? else { return Ok(None) };
        let corrected = widen(attn.row(token)).into_iter().zip(changes);
        Ok(Some(corrected.map(|(attn, change)| (attn + change) as f32).collect()))
    }

    /// What the rounding changes about `token`'s attention: attention over the rounded rows less attention over the
    /// recorded ones, both in f64.
    fn changes(
        &mut self,
        recording: &Recording<'_>,
        token: usize,
    ) -> Result<Option<Vec<f64>>, Rejected> {
        let (Some(q), Some(k), Some(v)) = (&recording.q, &recording.k, &recording.v) else {
            return Ok(None);
        };
        if self.rounding == CacheRounding::None {
            return Ok(Some(vec![0.0; q.row(token).len()]));
        }
        let row = |rows: &Rows| widen(rows.row(token));
        let rows = [row(k), row(v)];
        for ((recorded, rounded), row) in self.recorded.iter_mut().zip(&mut self.rounded).zip(rows)
        {
            rounded.extend(self.rounding.round(&row)?);
            recorded.extend(row);
        }
        let shape = recording.shape();
        let attention = Attention::new(shape.n_heads(), shape.n_kv_heads(), shape.head_dim())?;
        let attend = |[keys, values]: &[Vec<f64>; 2]| attention.attend(&row(q), keys, values);
        let changes = attend(&self.rounded).into_iter().zip(attend(&self.recorded));
        Ok(Some(changes.map(|(new, old)| new - old).collect()))
    }
}

/// Every token's recorded output, corrected by what the rounding of keys and values changes: the O projection, in f64,
/// of what it changes about attention. Where not all is recorded that is taken for nothing.
///
/// # Errors
///
/// Rows that the cache's type cannot hold; weights that the oracle does not know.
pub(super) fn expected_outputs(recording: &Recording<'_>, kv: Kv) -> Result<Option<Vec<Vec<f32>>>> {
    let Some(output) = &recording.output else { return Ok(None) };
    let projection = decoded_o(recording)?;
    let mut history = History::new(kv);
    let rows = (0..recording.n_tokens).map(|token| {
        let recorded = output.row(token);
        let Some(changes) = history.changes(recording, token)? else {
            return Ok(recorded.to_vec());
        };
        let row = recorded.iter().zip(projection.chunks_exact(changes.len()));
        let corrected = row.map(|(output, weights)| {
            let change: f64 = weights.iter().zip(&changes).map(|(w, x)| w * x).sum();
            (f64::from(*output) + change) as f32
        });
        Ok(corrected.collect())
    });
    rows.collect::<Result<_, _>>().map(Some)
}

/// The weights of the O projection in f64, row by row.
fn decoded_o(recording: &Recording<'_>) -> Result<Vec<f64>> {
    let ProjectionMatrix::Rows(matrix) = &recording.layer.weights().o.matrix else {
        unreachable!("a layer out of a file has its matrices row by row")
    };
    let format = match matrix.format() {
        ck_quant::Format::Q5_0 => Format::Q5_0,
        ck_quant::Format::Q8_0 => Format::Q8_0,
        other => bail!("the O projection is in {other}, which the oracle does not know"),
    };
    let blocks = decode_row(format, matrix.bytes()).into_iter();
    let weights =
        |block: Block| block.quants.map(|quant| f64::from(quant) * f64::from(block.scale.to_f32()));
    Ok(blocks.flat_map(weights).collect())
}
