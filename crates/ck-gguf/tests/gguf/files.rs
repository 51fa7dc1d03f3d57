//! Files for the tests: raw ones, byte by byte, and small layers that a test changes.

use crate::ALLOCATOR;
use ck_gguf::{AttentionLayer, Error, GgufFile, GgufWriter, TensorType, Value};
use std::path::PathBuf;

/// A GGUF file written byte by byte, right or wrong.
#[derive(Clone, Default)]
pub(crate) struct RawFile(pub(crate) Vec<u8>);

impl RawFile {
    /// Magic, version 3 and the two counts.
    pub(crate) fn new(tensors: u64, entries: u64) -> Self {
        Self(b"GGUF".to_vec()).u32(3).u64(tensors).u64(entries)
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(crate) fn string(self, text: &str) -> Self {
        self.u64(text.len() as u64).bytes(text.as_bytes())
    }

    /// A tensor entry.
    pub(crate) fn tensor(self, name: &str, dims: &[u64], number: u32, offset: u64) -> Self {
        let file = self.string(name).u32(dims.len() as u32);
        dims.iter().fold(file, |file, &dim| file.u64(dim)).u32(number).u64(offset)
    }

    /// Zeros up to `len` bytes, or only the first `len` bytes.
    pub(crate) fn resize(mut self, len: usize) -> Vec<u8> {
        self.0.resize(len, 0);
        self.0
    }
}

/// The file of case B49: one tensor "w", Q8_0, dims (32, 2); whole at 164 bytes.
pub(crate) fn one_tensor(offset: u64) -> RawFile {
    RawFile::new(1, 0).tensor("w", &[32, 2], 8, offset)
}

/// A tensor of a [`LayerFile`].
#[derive(Clone)]
pub(crate) struct TensorPart {
    pub(crate) name: String,
    pub(crate) dims: Vec<usize>,
    pub(crate) tensor_type: TensorType,
    pub(crate) bytes: Vec<u8>,
}

/// The parts of a file with one or more attention layers.
#[derive(Clone)]
pub(crate) struct LayerFile {
    pub(crate) metadata: Vec<(String, Value<'static>)>,
    pub(crate) tensors: Vec<TensorPart>,
}

/// Sizes of a layer: embedding length, heads, KV heads, head dimension.
pub(crate) type Sizes = (usize, usize, usize, usize);

/// Small sizes in which no two of embedding length, query width and key width are equal.
pub(crate) const SMALL: Sizes = (96, 4, 2, 32);

impl LayerFile {
    /// Layer 0 of a model without biases: Q5_0, V in Q8_0, all scales 1 and all quants 0.
    pub(crate) fn new(architecture: &'static str, sizes: Sizes) -> Self {
        let (embed, heads, kv_heads, _) = sizes;
        let key = |suffix: &str| format!("{architecture}.{suffix}");
        let metadata = vec![
            ("general.architecture".to_owned(), Value::String(architecture)),
            (key("embedding_length"), Value::U32(embed as u32)),
            (key("attention.head_count"), Value::U32(heads as u32)),
            (key("attention.head_count_kv"), Value::U32(kv_heads as u32)),
            (key("attention.layer_norm_rms_epsilon"), Value::F32(1e-6)),
            (key("rope.freq_base"), Value::F32(1e6)),
        ];
        let mut file = Self { metadata, tensors: Vec::new() };
        file.add_layer(0, sizes);
        file.add_others(0, sizes);
        file
    }

    /// Adds the tensors of a layer.
    pub(crate) fn add_layer(&mut self, layer: usize, (embed, heads, kv_heads, head_dim): Sizes) {
        let (q_dim, kv_dim) = (heads * head_dim, kv_heads * head_dim);
        let name = |short: &str| format!("blk.{layer}.attn_{short}.weight");
        self.add_f32(&name("norm"), &vec![1.0; embed]);
        self.add_matrix(&name("q"), [embed, q_dim], TensorType::Q5_0);
        self.add_matrix(&name("k"), [embed, kv_dim], TensorType::Q5_0);
        self.add_matrix(&name("v"), [embed, kv_dim], TensorType::Q8_0);
        self.add_matrix(&name("output"), [q_dim, embed], TensorType::Q5_0);
    }

    /// Adds what the architecture has beyond [`add_layer`](Self::add_layer): gammas of 1.5 for what the block computes,
    /// 1.25 for query heads, 0.75 for key heads.
    pub(crate) fn add_others(&mut self, layer: usize, (embed, .., head_dim): Sizes) {
        let Value::String(architecture) = self.metadata[0].1 else { panic!("an architecture") };
        if architecture.starts_with("gemma") {
            self.set(&format!("{architecture}.block_count"), Value::U32(26));
            self.add_f32(&format!("blk.{layer}.post_attention_norm.weight"), &vec![1.5; embed]);
        }
        if ["qwen3", "gemma3"].contains(&architecture) {
            self.add_f32(&format!("blk.{layer}.attn_q_norm.weight"), &vec![1.25; head_dim]);
            self.add_f32(&format!("blk.{layer}.attn_k_norm.weight"), &vec![0.75; head_dim]);
        }
    }

    /// Adds biases of Q, K and V to a layer of [`SMALL`] sizes.
    pub(crate) fn add_biases(&mut self) {
        self.add_f32("blk.0.attn_q.bias", &[0.25; 128]);
        self.add_f32("blk.0.attn_k.bias", &[0.5; 64]);
        self.add_f32("blk.0.attn_v.bias", &[0.75; 64]);
    }

    /// Adds an F32 vector.
    pub(crate) fn add_f32(&mut self, name: &str, elements: &[f32]) {
        let bytes = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
        let (name, dims) = (name.to_owned(), vec![elements.len()]);
        self.tensors.push(TensorPart { name, dims, tensor_type: TensorType::F32, bytes });
    }

    /// Adds a matrix, its blocks made by [`blocks`].
    pub(crate) fn add_matrix(&mut self, name: &str, dims: [usize; 2], tensor_type: TensorType) {
        let bytes = blocks(dims[0] * dims[1], tensor_type);
        self.tensors.push(TensorPart {
            name: name.to_owned(),
            dims: dims.to_vec(),
            tensor_type,
            bytes,
        });
    }

    /// The tensor called `name`.
    pub(crate) fn tensor(&mut self, name: &str) -> &mut TensorPart {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).expect("a tensor of this file")
    }

    /// Gives `name` another type, with bytes to match.
    pub(crate) fn retype(&mut self, name: &str, tensor_type: TensorType) {
        let tensor = self.tensor(name);
        tensor.tensor_type = tensor_type;
        tensor.bytes = blocks(tensor.dims.iter().product(), tensor_type);
    }

    pub(crate) fn remove_tensor(&mut self, name: &str) {
        self.tensor(name);
        self.tensors.retain(|tensor| tensor.name != name);
    }

    /// Sets a key, which may be new.
    pub(crate) fn set(&mut self, key: &str, value: Value<'static>) {
        self.metadata.retain(|(name, _)| name != key);
        self.metadata.push((key.to_owned(), value));
    }

    pub(crate) fn remove_key(&mut self, key: &str) {
        self.metadata.retain(|(name, _)| name != key);
    }

    /// The file's bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut writer = GgufWriter::new();
        for (key, value) in &self.metadata {
            writer.value(key, *value);
        }
        for tensor in &self.tensors {
            let TensorPart { name, dims, tensor_type, bytes } = tensor;
            writer.tensor(name, dims, *tensor_type, bytes).expect("a tensor that can be written");
        }
        writer.finish().expect("a file that parses")
    }
}

/// Blocks of `elements` elements: each begins with an f16 scale of 1, the rest is zero.
pub(crate) fn blocks(elements: usize, tensor_type: TensorType) -> Vec<u8> {
    let mut block = vec![0; tensor_type.block_bytes()];
    if block.len() > 2 {
        block[..2].copy_from_slice(&0x3C00_u16.to_le_bytes());
    }
    block.repeat(elements / tensor_type.block_len())
}

/// A recording that the repository carries.
pub(crate) fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../ck-testing/golden").join(name)
}

/// Reads layer 0 of a file and hands it on.
pub(crate) fn with_layer<R>(file: &LayerFile, check: impl FnOnce(AttentionLayer<'_>) -> R) -> R {
    let bytes = file.bytes();
    let file = GgufFile::parse(&bytes).expect("the file opens");
    check(AttentionLayer::read(&file, 0).expect("the layer is right"))
}

/// The error of a `qwen2` file of small sizes after a change.
pub(crate) fn refused(change: impl FnOnce(&mut LayerFile)) -> Error {
    let mut file = LayerFile::new("qwen2", SMALL);
    change(&mut file);
    refusal(&file)
}

/// The error of layer 0 of a file, after checking that finding it took little memory.
pub(crate) fn refusal(file: &LayerFile) -> Error {
    let bytes = file.bytes();
    let file = GgufFile::parse(&bytes).expect("the file opens");
    let (result, used) = ALLOCATOR.on_this_thread(|| AttentionLayer::read(&file, 0));
    let error = result.expect_err("this layer must be refused");
    assert!(used.peak_bytes < 1 << 20, "{used:?} for {error:?}");
    error
}
