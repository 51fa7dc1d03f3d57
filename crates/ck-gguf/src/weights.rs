//! The tensors of an attention block.

use crate::error::{Error, Place};
use crate::file::GgufFile;
use crate::layer::LayerShape;
use crate::tensor::Tensor;
use crate::tensor_type::TensorType;

/// A projection: a weight matrix and perhaps a bias, one element per row.
#[derive(Clone, Debug)]
pub struct Projection<'a> {
    /// The matrix.
    pub weight: MatrixTensor<'a>,
    /// What is added to each row's result.
    pub bias: Option<Vec<f32>>,
}

/// A quantized weight matrix, borrowed from the file.
#[derive(Clone, Copy, Debug)]
pub struct MatrixTensor<'a> {
    /// The tensor's name.
    pub name: &'a str,
    /// The format of its blocks.
    pub format: WeightFormat,
    /// The number of rows, one for each output.
    pub rows: usize,
    /// Elements in a row, one for each input: whole blocks of 32.
    pub cols: usize,
    /// The blocks, row after row, at any alignment. The scales are finite.
    pub bytes: &'a [u8],
}

/// The block formats of weights that a layer can be read with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WeightFormat {
    /// 32 five-bit quants in 22 bytes.
    Q5_0,
    /// 32 eight-bit quants in 34 bytes.
    Q8_0,
}

/// All of them.
pub(crate) struct Weights<'a> {
    pub(crate) gamma: Vec<f32>,
    pub(crate) q: Projection<'a>,
    pub(crate) k: Projection<'a>,
    pub(crate) v: Projection<'a>,
    pub(crate) o: Projection<'a>,
}

/// The name of the weights of projection `short`: `q`, `k`, `v` or `output`.
pub(crate) fn matrix_name(layer: usize, short: &str) -> String {
    format!("blk.{layer}.attn_{short}.weight")
}

/// Reads the tensors of layer `layer` and checks them against its shape.
pub(crate) fn read<'a>(
    file: &GgufFile<'a>,
    layer: usize,
    shape: &LayerShape,
) -> Result<Weights<'a>, Error> {
    refuse_others(file, layer)?;
    refuse_partial_bias(file, layer)?;
    let gamma = file.tensor(&matrix_name(layer, "norm"))?;
    let gamma = vector(&gamma, shape.embed_dim, "the embedding length")?;

    let (embed_dim, q_dim, kv_dim) = (shape.embed_dim, shape.q_dim(), shape.kv_dim());
    let inward = "the embedding length by heads times head dimension";
    let outward = "heads times head dimension by the embedding length";
    Ok(Weights {
        gamma,
        q: projection(file, layer, "q", ([embed_dim, q_dim], inward))?,
        k: projection(file, layer, "k", ([embed_dim, kv_dim], inward))?,
        v: projection(file, layer, "v", ([embed_dim, kv_dim], inward))?,
        o: projection(file, layer, "output", ([q_dim, embed_dim], outward))?,
    })
}

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
    Ok(Projection { weight: matrix(&weight)?, bias: bias.transpose()? })
}

/// A two-dimensional tensor as a weight matrix.
fn matrix<'a>(tensor: &Tensor<'a>) -> Result<MatrixTensor<'a>, Error> {
    let format = match tensor.tensor_type() {
        TensorType::Q5_0 => WeightFormat::Q5_0,
        TensorType::Q8_0 => WeightFormat::Q8_0,
        _ => return Err(tensor.unsupported("Q5_0 (6) or Q8_0 (8)")),
    };
    let (name, rows, cols, bytes) =
        (tensor.name(), tensor.rows(), tensor.columns(), tensor.bytes());
    for (block, bytes) in bytes.chunks_exact(tensor.tensor_type().block_bytes()).enumerate() {
        // Both formats begin with the scale, an f16. Its five exponent bits are all set if and only
        // if it is infinite or not a number.
        let bits = u16::from_le_bytes([bytes[0], bytes[1]]);
        if bits & 0x7C00 == 0x7C00 {
            return Err(Error::NonFiniteScale { tensor: name.to_owned(), block, bits });
        }
    }
    Ok(MatrixTensor { name, format, rows, cols, bytes })
}

/// A vector of `len` finite F32 elements.
///
/// F16 is refused here: ggml keeps norm weights and biases in F32.
fn vector(tensor: &Tensor<'_>, len: usize, why: &str) -> Result<Vec<f32>, Error> {
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

/// Fails if the layer's attention has a tensor that would not be read, such as the norms of Qwen3's heads.
fn refuse_others(file: &GgufFile<'_>, layer: usize) -> Result<(), Error> {
    let projections = ["q", "k", "v", "output"];
    let weights = projections.map(|short| matrix_name(layer, short));
    let biases = projections.map(|short| bias_name(layer, short));
    let norm = matrix_name(layer, "norm");
    let known = |name: &str| {
        weights.iter().chain(&biases).chain([&norm]).any(|known| known.as_str() == name)
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
