//! The file as a whole: header, metadata, tensors.

use crate::directory::Directory;
use crate::error::{Error, Place};
use crate::metadata::Metadata;
use crate::reader::Reader;
use crate::tensor::{Tensor, TensorInfo};

/// The first four bytes of every file.
pub(crate) const MAGIC: [u8; 4] = *b"GGUF";

/// The key of the alignment of tensor data, and what it is where a file lacks the key.
pub(crate) const ALIGNMENT_KEY: &str = "general.alignment";
pub(crate) const DEFAULT_ALIGNMENT: usize = 32;

/// A GGUF file, parsed and checked, over bytes that somebody else holds.
///
/// Versions 2 and 3, little-endian. Everything is borrowed from the bytes; the memory that a parse
/// takes grows with the entries that were really read, never with a number that the file claims.
///
/// After [`parse`](Self::parse) every tensor is known to lie inside the file. A file is refused
/// as a whole if one of its tensors has a type of unknown size, or no elements, since its range could
/// not be checked. Tensors may share bytes.
#[derive(Clone, Debug)]
pub struct GgufFile<'a> {
    version: u32,
    alignment: usize,
    metadata: Metadata<'a>,
    tensors: Directory<'a, Tensor<'a>>,
}

impl<'a> GgufFile<'a> {
    /// Parses the bytes of a whole file.
    ///
    /// # Errors
    ///
    /// An [`Error`] that says what is wrong with the file, and where.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let header = Header::read(&mut reader)?;
        let metadata = Metadata::read(&mut reader, header.metadata_count)?;
        let alignment = alignment(&metadata)?;
        let infos = read_infos(&mut reader, header.tensor_count)?;

        let start = reader.offset().checked_next_multiple_of(alignment);
        let data = start.and_then(|start| bytes.get(start..)).unwrap_or_default();
        let mut tensors = Vec::with_capacity(infos.len());
        for info in infos {
            tensors.push((info.name, info.locate(data, alignment)?));
        }
        let duplicate = |name: &str| Error::Duplicate { place: Place::Tensor(name.to_owned()) };
        let tensors = Directory::new(tensors).map_err(duplicate)?;
        Ok(Self { version: header.version, alignment, metadata, tensors })
    }

    /// The version of the format: 2 or 3.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The alignment of tensor data in bytes, a power of two.
    #[must_use]
    pub const fn alignment(&self) -> usize {
        self.alignment
    }

    /// The metadata.
    #[must_use]
    pub const fn metadata(&self) -> &Metadata<'a> {
        &self.metadata
    }

    /// All tensors in the order of the file.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'a>> {
        self.tensors.iter().map(|&(_, tensor)| tensor)
    }

    /// The tensor called `name`, if there is one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Tensor<'a>> {
        self.tensors.get(name).copied()
    }

    /// The tensor called `name`.
    ///
    /// # Errors
    ///
    /// [`Error::MissingTensor`].
    pub fn tensor(&self, name: &str) -> Result<Tensor<'a>, Error> {
        self.find(name).ok_or_else(|| Error::MissingTensor { tensor: name.to_owned() })
    }
}

/// What stands before the metadata.
struct Header {
    version: u32,
    tensor_count: u64,
    metadata_count: u64,
}

impl Header {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let magic = reader.array().map_err(|fault| fault.at(Place::Header))?;
        if magic != MAGIC {
            return Err(Error::NotGguf { found: magic });
        }
        let version = reader.u32().map_err(|fault| fault.at(Place::Header))?;
        match version {
            2 | 3 => {}
            // A small number whose bytes were swapped has nothing in its lower half.
            found if found != 0 && found.trailing_zeros() >= 16 => {
                return Err(Error::ByteSwapped { found });
            }
            found => return Err(Error::UnsupportedVersion { found }),
        }
        let tensor_count = reader.u64().map_err(|fault| fault.at(Place::Header))?;
        let metadata_count = reader.u64().map_err(|fault| fault.at(Place::Header))?;
        Ok(Self { version, tensor_count, metadata_count })
    }
}

/// The alignment that the metadata asks for.
fn alignment(metadata: &Metadata<'_>) -> Result<usize, Error> {
    let Some(alignment) = metadata.get::<u32>(ALIGNMENT_KEY)? else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    match usize::try_from(alignment) {
        Ok(alignment) if alignment.is_power_of_two() => Ok(alignment),
        _ => Err(Error::BadValue {
            key: ALIGNMENT_KEY.to_owned(),
            expected: "a power of two".to_owned(),
            found: alignment.to_string(),
        }),
    }
}

fn read_infos<'a>(reader: &mut Reader<'a>, count: u64) -> Result<Vec<TensorInfo<'a>>, Error> {
    let announced = reader.expect(count.saturating_mul(TensorInfo::MIN_ENTRY));
    announced.map_err(|fault| fault.at(Place::TensorInfos { count }))?;
    (0..count).map(|index| TensorInfo::read(reader, index)).collect()
}
