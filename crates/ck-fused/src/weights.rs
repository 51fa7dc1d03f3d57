//! The weights of an attention block, as a caller hands them in.

use crate::LayerShape;
use crate::error::{LayerError, check_vector};
use ck_quant::{Matrix, PackedMatrix, Weights};
use std::borrow::Cow;
use std::sync::Arc;

/// The matrix of a projection, in one of its two forms.
#[derive(Clone, Debug)]
pub enum ProjectionMatrix<'a> {
    /// Row after row, borrowed, as in a file.
    Rows(Matrix<'a>),
    /// Packed in panels for the kernels; copies of the layer share it.
    Panels(Arc<PackedMatrix>),
}

impl<'a> From<Matrix<'a>> for ProjectionMatrix<'a> {
    fn from(matrix: Matrix<'a>) -> Self {
        Self::Rows(matrix)
    }
}

impl From<PackedMatrix> for ProjectionMatrix<'_> {
    fn from(matrix: PackedMatrix) -> Self {
        Self::Panels(Arc::new(matrix))
    }
}

/// One projection: a quantized matrix and perhaps a bias.
#[derive(Clone, Debug)]
pub struct Projection<'a> {
    /// The matrix: a row for every output.
    pub matrix: ProjectionMatrix<'a>,
    /// What is added to the products, one number for every row.
    pub bias: Option<Cow<'a, [f32]>>,
}

impl<'a> Projection<'a> {
    /// A projection without a bias.
    #[must_use]
    pub fn new(matrix: impl Into<ProjectionMatrix<'a>>) -> Self {
        Self { matrix: matrix.into(), bias: None }
    }

    /// The same projection with a bias.
    #[must_use]
    pub fn with_bias(mut self, bias: impl Into<Cow<'a, [f32]>>) -> Self {
        self.bias = Some(bias.into());
        self
    }

    /// The matrix, borrowed in whichever form it has.
    #[must_use]
    pub fn weights(&self) -> Weights<'_> {
        match &self.matrix {
            ProjectionMatrix::Rows(matrix) => Weights::Rows(*matrix),
            ProjectionMatrix::Panels(matrix) => Weights::Panels(matrix),
        }
    }

    fn pack(&self) -> Result<Projection<'static>, LayerError> {
        let matrix = match &self.matrix {
            ProjectionMatrix::Rows(matrix) => PackedMatrix::pack(*matrix)?.into(),
            ProjectionMatrix::Panels(matrix) => ProjectionMatrix::Panels(Arc::clone(matrix)),
        };
        let bias = self.bias.as_deref().map(copied).transpose()?;
        Ok(Projection { matrix, bias })
    }

    fn check(
        &self,
        name: &'static str,
        bias_name: &'static str,
        expected_rows: usize,
        expected_columns: usize,
    ) -> Result<(), LayerError> {
        let (rows, columns) = (self.weights().rows(), self.weights().columns());
        if (rows, columns) != (expected_rows, expected_columns) {
            return Err(LayerError::WeightShape {
                name,
                expected_rows,
                expected_columns,
                rows,
                columns,
            });
        }
        match &self.bias {
            Some(bias) => check_vector(bias_name, bias, rows),
            None => Ok(()),
        }
    }
}

/// The same numbers in memory of their own.
fn copied(values: &[f32]) -> Result<Cow<'static, [f32]>, LayerError> {
    let mut copy = Vec::new();
    let refused = |_| LayerError::OutOfMemory { what: "the weights" };
    copy.try_reserve_exact(values.len()).map_err(refused)?;
    copy.extend_from_slice(values);
    Ok(Cow::Owned(copy))
}

/// RMSNorm's own numbers.
#[derive(Clone, Debug)]
pub struct Norm<'a> {
    /// What every normalized channel is multiplied by.
    pub gamma: Cow<'a, [f32]>,
    /// What is added to the mean square before its root.
    pub eps: f32,
}

impl<'a> Norm<'a> {
    /// A norm with these numbers.
    #[must_use]
    pub fn new(gamma: impl Into<Cow<'a, [f32]>>, eps: f32) -> Self {
        Self { gamma: gamma.into(), eps }
    }

    /// The same norm in its own memory.
    fn copied(&self) -> Result<Norm<'static>, LayerError> {
        Ok(Norm { gamma: copied(&self.gamma)?, eps: self.eps })
    }

    fn check(&self, what: &'static str, expected: usize) -> Result<(), LayerError> {
        if !(self.eps.is_finite() && self.eps >= 0.0) {
            return Err(LayerError::Epsilon { eps: self.eps });
        }
        check_vector(what, &self.gamma, expected)
    }
}

/// The four projections of an attention block, by their names: K and V have the same shape.
#[derive(Clone, Debug)]
pub struct Projections<'a> {
    /// Q: `n_heads * head_dim` rows of `embed_dim` columns.
    pub q: Projection<'a>,
    /// K: `n_kv_heads * head_dim` rows of `embed_dim` columns.
    pub k: Projection<'a>,
    /// V: `n_kv_heads * head_dim` rows of `embed_dim` columns.
    pub v: Projection<'a>,
    /// O: `embed_dim` rows of `n_heads * head_dim` columns.
    pub o: Projection<'a>,
}

/// The weights of one attention block. Each projection may be of either format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LayerWeights<'a> {
    /// The norm of the input, over `embed_dim` channels.
    pub norm: Norm<'a>,
    /// Q: `n_heads * head_dim` rows of `embed_dim` columns.
    pub q: Projection<'a>,
    /// K: `n_kv_heads * head_dim` rows of `embed_dim` columns.
    pub k: Projection<'a>,
    /// V: `n_kv_heads * head_dim` rows of `embed_dim` columns.
    pub v: Projection<'a>,
    /// O: `embed_dim` rows of `n_heads * head_dim` columns.
    pub o: Projection<'a>,
    /// The norm of every query head before its rotation, over `head_dim` channels; few models have one.
    pub q_norm: Option<Norm<'a>>,
    /// The norm of every key head before its rotation, over `head_dim` channels.
    pub k_norm: Option<Norm<'a>>,
}

impl<'a> LayerWeights<'a> {
    /// A norm and the four projections, without norms of heads.
    #[must_use]
    pub fn new(norm: Norm<'a>, projections: Projections<'a>) -> Self {
        let Projections { q, k, v, o } = projections;
        Self { norm, q, k, v, o, q_norm: None, k_norm: None }
    }

    /// The same weights with norms of the query heads and of the key heads, as in Qwen3.
    #[must_use]
    pub fn with_qk_norm(mut self, q_norm: Norm<'a>, k_norm: Norm<'a>) -> Self {
        (self.q_norm, self.k_norm) = (Some(q_norm), Some(k_norm));
        self
    }

    /// The same weights with packed matrices, in their own memory.
    pub(crate) fn pack(&self) -> Result<LayerWeights<'static>, LayerError> {
        Ok(LayerWeights {
            norm: self.norm.copied()?,
            q_norm: self.q_norm.as_ref().map(Norm::copied).transpose()?,
            k_norm: self.k_norm.as_ref().map(Norm::copied).transpose()?,
            q: self.q.pack()?,
            k: self.k.pack()?,
            v: self.v.pack()?,
            o: self.o.pack()?,
        })
    }

    /// Checks every part against the shape.
    pub(crate) fn check(&self, shape: &LayerShape) -> Result<(), LayerError> {
        self.norm.check("norm weight", shape.embed_dim())?;
        for (what, norm) in [("Q norm weight", &self.q_norm), ("K norm weight", &self.k_norm)] {
            norm.as_ref().map_or(Ok(()), |norm| norm.check(what, shape.head_dim()))?;
        }
        self.q.check("Q projection", "Q bias", shape.q_dim(), shape.embed_dim())?;
        self.k.check("K projection", "K bias", shape.kv_dim(), shape.embed_dim())?;
        self.v.check("V projection", "V bias", shape.kv_dim(), shape.embed_dim())?;
        self.o.check("O projection", "O bias", shape.embed_dim(), shape.q_dim())
    }
}
