//! What the rounding of keys and values to the cache's type changes about attention.

use super::Kv;
use super::recording::{Recording, Rows};
use ck_testing::oracle::{Attention, CacheRounding, Rejected, widen};

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

    /// `token`'s recorded attention, corrected by what the rounding changes: attention over the rounded rows less
    /// attention over the recorded ones, both in f64. So a recording that was made with an f32 cache says, to
    /// the same bound, what a cache of any type must give. Nothing where not all is recorded. Tokens are to be given in order.
    ///
    /// # Errors
    ///
    /// Rows that the cache's type cannot hold.
    pub(super) fn expected(
        &mut self,
        recording: &Recording<'_>,
        token: usize,
    ) -> Result<Option<Vec<f32>>, Rejected> {
        let (Some(q), Some(k), Some(v), Some(attn)) =
            (&recording.q, &recording.k, &recording.v, &recording.attn)
        else {
            return Ok(None);
        };
        if self.rounding == CacheRounding::None {
            return Ok(Some(attn.row(token).to_vec()));
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
        let corrected = row(attn).into_iter().zip(changes);
        Ok(Some(corrected.map(|(attn, (new, old))| (attn + (new - old)) as f32).collect()))
    }
}
