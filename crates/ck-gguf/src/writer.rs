//! Writing small GGUF files: for tests, fuzzing seeds and tools.

use crate::error::Error;
use crate::file::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, GgufFile, MAGIC};
use crate::tensor::checked_size;
use crate::tensor_type::TensorType;
use crate::value::{Array, Value, ValueType};

/// Builds a GGUF file (version 3, little-endian) in memory.
///
/// ```
/// use ck_gguf::{GgufFile, GgufWriter, TensorType, Value};
///
/// let mut writer = GgufWriter::new();
/// writer.value("general.architecture", Value::String("llama"));
/// writer.values("numbers", &[Value::U32(1), Value::U32(2)])?;
/// writer.tensor("w", &[32, 2], TensorType::Q8_0, &[0; 68])?;
/// let bytes = writer.finish()?;
///
/// let file = GgufFile::parse(&bytes)?;
/// assert_eq!(file.tensor("w")?.dims(), [32, 2]);
/// # Ok::<(), ck_gguf::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct GgufWriter {
    metadata_count: u64,
    metadata: Vec<u8>,
    tensor_count: u64,
    infos: Vec<u8>,
    data: Vec<u8>,
}

impl GgufWriter {
    /// A writer of an empty file with the usual alignment of 32 bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a metadata entry.
    pub fn value(&mut self, key: &str, value: Value<'_>) -> &mut Self {
        self.metadata_count += 1;
        Value::String(key).write(&mut self.metadata);
        self.metadata.extend(value.value_type().number().to_le_bytes());
        value.write(&mut self.metadata);
        self
    }

    /// Adds a metadata entry that is an array. An empty one is an array of u32.
    ///
    /// # Errors
    ///
    /// [`Error::BadValue`] if the elements are not all of one type. Nothing is added then.
    pub fn values(&mut self, key: &str, elements: &[Value<'_>]) -> Result<&mut Self, Error> {
        let element_type = elements.first().map_or(ValueType::U32, Value::value_type);
        let mut bytes = Vec::new();
        for element in elements {
            if element.value_type() != element_type {
                return Err(Error::BadValue {
                    key: key.to_owned(),
                    expected: format!("an array of {element_type} only, like its first element"),
                    found: format!("given the element {element}"),
                });
            }
            element.write(&mut bytes);
        }
        Ok(self.value(key, Value::Array(Array::over(element_type, elements.len(), &bytes))))
    }

    /// Adds a tensor. The first of `dims` is the length of a row.
    ///
    /// # Errors
    ///
    /// What [`GgufFile::parse`] says of such dimensions, or [`Error::DataLength`] if `bytes` are not
    /// as many as dimensions and type ask for. Nothing is added then.
    pub fn tensor(
        &mut self,
        name: &str,
        dims: &[usize],
        tensor_type: TensorType,
        bytes: &[u8],
    ) -> Result<&mut Self, Error> {
        let expected = checked_size(name, dims, tensor_type)?;
        if expected != bytes.len() as u64 {
            let (tensor, found) = (name.to_owned(), bytes.len());
            return Err(Error::DataLength { tensor, expected, found });
        }
        self.tensor_count += 1;
        Value::String(name).write(&mut self.infos);
        self.infos.extend((dims.len() as u32).to_le_bytes());
        for &dim in dims {
            self.infos.extend((dim as u64).to_le_bytes());
        }
        self.infos.extend(tensor_type.number().to_le_bytes());
        self.infos.extend((self.data.len() as u64).to_le_bytes());
        self.data.extend(bytes);
        pad(&mut self.data);
        Ok(self)
    }

    /// Adds an F32 tensor.
    ///
    /// # Errors
    ///
    /// As for [`tensor`](Self::tensor).
    pub fn f32_tensor(
        &mut self,
        name: &str,
        dims: &[usize],
        elements: &[f32],
    ) -> Result<&mut Self, Error> {
        let bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
        self.tensor(name, dims, TensorType::F32, &bytes)
    }

    /// The bytes of the file. They have been parsed once, so they will parse.
    ///
    /// # Errors
    ///
    /// What [`GgufFile::parse`] says of them: a key or name that is empty or appears twice, or
    /// another alignment than this writer's among the metadata.
    pub fn finish(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(self.tensor_count.to_le_bytes());
        bytes.extend(self.metadata_count.to_le_bytes());
        bytes.extend(&self.metadata);
        bytes.extend(&self.infos);
        pad(&mut bytes);
        bytes.extend(&self.data);

        let alignment = GgufFile::parse(&bytes)?.alignment();
        if alignment != DEFAULT_ALIGNMENT {
            return Err(Error::BadValue {
                key: ALIGNMENT_KEY.to_owned(),
                expected: format!("{DEFAULT_ALIGNMENT}, which this writer aligns to"),
                found: alignment.to_string(),
            });
        }
        Ok(bytes)
    }
}

/// Pads with zeros to the alignment.
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(DEFAULT_ALIGNMENT), 0);
}
