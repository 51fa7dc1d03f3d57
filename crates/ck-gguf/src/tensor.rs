//! Tensors: what the file says of each, checked against what the file holds.

use crate::error::{Error, Place};
use crate::reader::{Fault, Reader};
use crate::tensor_type::TensorType;
use half::f16;
use std::fmt;

/// The most dimensions a tensor has.
const MAX_DIMS: usize = 4;

/// A tensor of a file: its name, dimensions, type and bytes, borrowed from the file.
///
/// The bytes are exactly those that dimensions and type ask for, and lie inside the file. They begin at
/// a multiple of the file's alignment, counted from the start of the tensor data; in memory they may
/// begin anywhere.
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    info: TensorInfo<'a>,
    bytes: &'a [u8],
}

impl<'a> Tensor<'a> {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.info.name
    }

    /// One to four dimensions, none of them zero. The first is the length of a row, in elements.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        self.info.dims.as_slice()
    }

    /// Elements in a row: the first dimension.
    #[must_use]
    pub const fn columns(&self) -> usize {
        self.info.dims.values[0]
    }

    /// The number of rows: the product of all dimensions but the first.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.dims()[1..].iter().product()
    }

    /// How its elements are stored.
    #[must_use]
    pub const fn tensor_type(&self) -> TensorType {
        self.info.tensor_type
    }

    /// Its data.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// All elements of an F32 or F16 tensor, in the order of the file. The conversion is exact.
    ///
    /// # Errors
    ///
    /// [`Error::UnsupportedType`] for every other type.
    pub fn to_f32(&self) -> Result<Vec<f32>, Error> {
        let halves = |bytes: &'a [u8]| bytes.as_chunks().0.iter().copied().map(f16::from_le_bytes);
        match self.tensor_type() {
            TensorType::F32 => self.f32_elements(),
            TensorType::F16 => Ok(halves(self.bytes).map(f16::to_f32).collect()),
            _ => Err(self.unsupported("F32 (0) or F16 (1)")),
        }
    }

    /// All elements of an F32 tensor, in the order of the file.
    pub(crate) fn f32_elements(&self) -> Result<Vec<f32>, Error> {
        match self.tensor_type() {
            TensorType::F32 => {
                Ok(self.bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect())
            }
            _ => Err(self.unsupported("F32 (0)")),
        }
    }

    /// Fails unless the dimensions are just `dims`. `why` says where they come from.
    pub(crate) fn expect_dims(&self, dims: &[usize], why: &str) -> Result<(), Error> {
        if self.dims() == dims {
            return Ok(());
        }
        Err(self.bad_shape(format!("{dims:?}, {why}")))
    }

    /// The error that names what the dimensions should be.
    pub(crate) fn bad_shape(&self, expected: String) -> Error {
        Error::BadShape { tensor: self.name().to_owned(), expected, found: self.dims().to_vec() }
    }

    /// The error that this tensor's type is none of `expected`.
    pub(crate) fn unsupported(&self, expected: &'static str) -> Error {
        let number = self.tensor_type().number();
        Error::UnsupportedType { tensor: self.name().to_owned(), number, expected }
    }
}

impl fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("name", &self.name())
            .field("dims", &self.dims())
            .field("type", &self.tensor_type().name())
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// Up to four dimensions.
#[derive(Clone, Copy, Debug)]
struct Dims {
    values: [usize; MAX_DIMS],
    count: usize,
}

impl Dims {
    fn as_slice(&self) -> &[usize] {
        &self.values[..self.count]
    }
}

/// What the file says of a tensor, before its data was looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorInfo<'a> {
    pub(crate) name: &'a str,
    dims: Dims,
    tensor_type: TensorType,
    /// Where its data begins, from the start of all data.
    offset: u64,
    /// Bytes that dimensions and type ask for.
    size: u64,
}

impl<'a> TensorInfo<'a> {
    /// The fewest bytes of an entry: a name of one byte, with its length, one dimension with their
    /// count, type and offset.
    pub(crate) const MIN_ENTRY: u64 = 8 + 1 + 4 + 8 + 4 + 8;

    /// Reads entry number `index`.
    pub(crate) fn read(reader: &mut Reader<'a>, index: u64) -> Result<Self, Error> {
        let name = reader.name().map_err(|fault| fault.at(Place::TensorInfo { index }))?;
        let tensor = || name.to_owned();
        let short = |fault: Fault| fault.at(Place::Tensor(tensor()));

        let found = reader.u32().map_err(short)?;
        let count = usize::try_from(found).unwrap_or(usize::MAX);
        if !(1..=MAX_DIMS).contains(&count) {
            return Err(Error::DimensionCount { tensor: tensor(), found });
        }
        let mut dims = [1; MAX_DIMS];
        for dim in &mut dims[..count] {
            *dim = reader.u64().map_err(short)?;
        }
        let number = reader.u32().map_err(short)?;
        let expected = "a type that ggml defines";
        let tensor_type = TensorType::from_number(number)
            .ok_or_else(|| Error::UnsupportedType { tensor: tensor(), number, expected })?;
        let offset = reader.u64().map_err(short)?;

        let (dims, size) = sizes(dims, count, tensor_type, name)?;
        Ok(Self { name, dims, tensor_type, offset, size })
    }

    /// The tensor itself, with its part of `data`.
    pub(crate) fn locate(self, data: &'a [u8], alignment: usize) -> Result<Tensor<'a>, Error> {
        let Self { offset, size, .. } = self;
        let tensor = || self.name.to_owned();
        if !offset.is_multiple_of(alignment as u64) {
            return Err(Error::Misaligned { tensor: tensor(), offset, alignment });
        }
        let outside =
            || Error::OutsideFile { tensor: tensor(), offset, size, available: data.len() };
        let start = usize::try_from(offset).map_err(|_| outside())?;
        let len = usize::try_from(size).map_err(|_| outside())?;
        let rest = data.get(start..).ok_or_else(outside)?;
        let bytes = rest.get(..len).ok_or_else(outside)?;
        Ok(Tensor { info: self, bytes })
    }
}

/// The checked dimensions, and the bytes that a tensor with them needs.
///
/// The number of elements fits a usize, and so does every dimension.
fn sizes(
    dims: [u64; MAX_DIMS],
    count: usize,
    tensor_type: TensorType,
    name: &str,
) -> Result<(Dims, u64), Error> {
    let tensor = || name.to_owned();
    if let Some(axis) = dims.iter().position(|&dim| dim == 0) {
        return Err(Error::ZeroDimension { tensor: tensor(), axis });
    }
    let too_large = || Error::TooLarge { tensor: tensor(), dims: dims[..count].to_vec() };
    let product =
        |dims: &[u64]| dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim));

    let columns = dims[0];
    let block_len = tensor_type.block_len() as u64;
    if !columns.is_multiple_of(block_len) {
        let type_name = tensor_type.name();
        return Err(Error::PartialBlock { tensor: tensor(), columns, block_len, type_name });
    }
    let elements = product(&dims).ok_or_else(too_large)?;
    usize::try_from(elements).map_err(|_| too_large())?;
    let rows = product(&dims[1..]).ok_or_else(too_large)?;
    let size = tensor_type.byte_size(columns, rows).ok_or_else(too_large)?;
    // No dimension is larger than the number of elements, which fits.
    let values = dims.map(|dim| dim as usize);
    Ok((Dims { values, count }, size))
}

/// The bytes that a tensor with these dimensions and type needs, checked as for a tensor of a file.
pub(crate) fn checked_size(
    name: &str,
    dims: &[usize],
    tensor_type: TensorType,
) -> Result<u64, Error> {
    if !(1..=MAX_DIMS).contains(&dims.len()) {
        let found = u32::try_from(dims.len()).unwrap_or(u32::MAX);
        return Err(Error::DimensionCount { tensor: name.to_owned(), found });
    }
    let mut all = [1; MAX_DIMS];
    for (slot, &dim) in all.iter_mut().zip(dims) {
        *slot = dim as u64;
    }
    sizes(all, dims.len(), tensor_type, name).map(|(_, size)| size)
}
