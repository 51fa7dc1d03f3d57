//! The tensors of an attention block.

use crate::error::{Error, Place};
use crate::file::GgufFile;
use crate::settings::Architecture;
use crate::tensor::Tensor;
use crate::tensor_type::TensorType;
use ck_fused::{LayerShape, LayerWeights, Norm, Projection, Projections};
use ck_quant::{Format, Matrix, QuantError};

/// What stands in the names of the norms of query heads and of key heads.
const HEAD_NORMS: [&str; 2] = ["q_norm", "k_norm"];

/// The name of the weights of projection `short`: `q`, `k`, `v` or `output`; or of a norm.
pub(crate) fn matrix_name(layer: usize, short: &str) -> String {
    format!("blk.{layer}.attn_{short}.weight")
}

/// Reads the tensors of layer `layer` and checks them against its shape.
pub(crate) fn read<'a>(
    file: &GgufFile<'a>,
    layer: usize,
    (shape, architecture): (&LayerShape, Architecture),
    norm_eps: f32,
) -> Result<LayerWeights<'a>, Error> {
    refuse_others(file, layer, architecture)?;
    refuse_partial_bias(file, layer)?;
    let gamma = file.tensor(&matrix_name(layer, "norm"))?;
    let gamma = vector(&gamma, shape.embed_dim(), "the embedding length")?;

    let (embed_dim, q_dim, kv_dim) = (shape.embed_dim(), shape.q_dim(), shape.kv_dim());
    let inward = "the embedding length by heads times head dimension";
    let outward = "heads times head dimension by the embedding length";
    let weights = LayerWeights::new(
        Norm::new(gamma, norm_eps),
        Projections {
            q: projection(file, layer, "q", ([embed_dim, q_dim], inward))?,
            k: projection(file, layer, "k", ([embed_dim, kv_dim], inward))?,
            v: projection(file, layer, "v", ([embed_dim, kv_dim], inward))?,
            o: projection(file, layer, "output", ([q_dim, embed_dim], outward))?,
        },
    );
    if !architecture.has_head_norms() {
        return Ok(weights);
    }
    let head_norm = |short| {
        let gamma = file.tensor(&matrix_name(layer, short))?;
        let gamma = vector(&gamma, shape.head_dim(), "the head dimension")?;
        Ok::<_, Error>(Norm::new(gamma, norm_eps))
    };
    let [q_norm, k_norm] = HEAD_NORMS;
    Ok(weights.with_qk_norm(head_norm(q_norm)?, head_norm(k_norm)?))
}

/// Reads the norm of what the block computes, of an architecture that has one.
pub(crate) fn post_norm(
    file: &GgufFile<'_>,
    architecture: Architecture,
    layer: usize,
    (embed_dim, eps): (usize, f32),
) -> Result<Option<Norm<'static>>, Error> {
    let name = format!("blk.{layer}.{POST_NORM}");
    if architecture.has_post_norm() {
        let gamma = vector(&file.tensor(&name)?, embed_dim, "the embedding length")?;
        return Ok(Some(Norm::new(gamma, eps)));
    }
    match file.find(&name) {
        Some(_) => {
            let feature = "a norm of what the block computes, in an architecture without one";
            Err(Error::UnsupportedFeature { place: Place::Tensor(name), feature })
        }
        None => Ok(None),
    }
}

/// What follows the number of the layer in the name of the norm of what the block computes.
const POST_NORM: &str = "post_attention_norm.weight";

/// The name of the bias of projection `short`.
fn bias_name(layer: usize, short: &str) -> String {
    format!("blk.{layer}.attn_{short}.bias")
}

/// A matrix with these dimensions, and the bias that goes with it if there is one.
fn projection<'a>(
    file: &GgufFile<'a>,
    layer: usize,
    short: &str,
    (dims, why): ([usize; 2], &str),
) -> Result<Projection<'a>, Error> {
    let weight = file.tensor(&matrix_name(layer, short))?;
    weight.expect_dims(&dims, why)?;
    let bias = file.find(&bias_name(layer, short));
    let bias = bias.map(|bias| vector(&bias, dims[1], "one element per row of the weights"));
    let bias = bias.transpose()?.map(Into::into);
    Ok(Projection { matrix: matrix(&weight)?.into(), bias })
}

/// A two-dimensional tensor as a weight matrix.
fn matrix<'a>(tensor: &Tensor<'a>) -> Result<Matrix<'a>, Error> {
    let format = match tensor.tensor_type() {
        TensorType::Q5_0 => Format::Q5_0,
        TensorType::Q8_0 => Format::Q8_0,
        _ => return Err(tensor.unsupported("Q5_0 (6) or Q8_0 (8)")),
    };
    let matrix = Matrix::new(format, tensor.rows(), tensor.columns(), tensor.bytes());
    matrix.map_err(|error| match error {
        QuantError::BlockScale { row, block, scale } => {
            Error::NonFiniteScale { tensor: tensor.name().to_owned(), row, block, scale }
        }
        source => Error::Weights { tensor: tensor.name().to_owned(), source },
    })
}

/// A vector of `len` finite F32 elements.
///
/// F16 is refused here: ggml keeps norm weights and biases in F32.
pub(crate) fn vector(tensor: &Tensor<'_>, len: usize, why: &str) -> Result<Vec<f32>, Error> {
    tensor.expect_dims(&[len], why)?;
    let elements = tensor.f32_elements()?;
    match elements.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        Some((index, &value)) => {
            Err(Error::NonFiniteElement { tensor: tensor.name().to_owned(), index, value })
        }
        None => Ok(elements),
    }
}

/// Fails if Q, K and V do not all have a bias although one of them has.
fn refuse_partial_bias(file: &GgufFile<'_>, layer: usize) -> Result<(), Error> {
    let names = ["q", "k", "v"].map(|short| bias_name(layer, short));
    let (present, missing): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| file.find(name).is_some());
    match (present.into_iter().next(), missing.into_iter().next()) {
        (Some(present), Some(missing)) => Err(Error::PartialBias { missing, present }),
        _ => Ok(()),
    }
}

/// Fails if the layer's attention has a tensor that would not be read.
fn refuse_others(
    file: &GgufFile<'_>,
    layer: usize,
    architecture: Architecture,
) -> Result<(), Error> {
    let projections = ["q", "k", "v", "output"];
    let weights = projections.map(|short| matrix_name(layer, short));
    let biases = projections.map(|short| bias_name(layer, short));
    let norm = matrix_name(layer, "norm");
    let head_norms = HEAD_NORMS.map(|short| matrix_name(layer, short));
    let head_norms = if architecture.has_head_norms() { &head_norms[..] } else { &[] };
    let known = |name: &str| {
        let all = weights.iter().chain(&biases).chain([&norm]).chain(head_norms);
        all.into_iter().any(|known| known.as_str() == name)
    };

    let prefix = format!("blk.{layer}.attn");
    let other =
        file.tensors().find(|tensor| tensor.name().starts_with(&prefix) && !known(tensor.name()));
    match other {
        Some(tensor) => Err(Error::UnsupportedFeature {
            place: Place::Tensor(tensor.name().to_owned()),
            feature: "a step beyond norm, projections and rotation",
        }),
        None => Ok(()),
    }
}
