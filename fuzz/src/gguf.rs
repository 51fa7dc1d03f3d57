//! Bytes as a GGUF file: whatever they are, parsing and reading layers gives values or errors.

use ck_fused::{DecodeContext, Runner, Scratch};
use ck_gguf::{AttentionLayer, GgufFile};
use ck_isa::Isa;
use ck_ops::{KvCache, RopeTable};

/// Parses the bytes, looks at everything in them, reads the first layers, and decodes one token by each.
///
/// # Panics
///
/// If a parsed file has a tensor outside its bytes, or a layer that was read cannot be run.
pub fn check(bytes: &[u8]) {
    let file = match GgufFile::parse(bytes) {
        Ok(file) => file,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for (key, value) in file.metadata().iter() {
        assert!(!key.is_empty());
        let _ = value.to_string();
    }
    let all = bytes.as_ptr_range();
    for tensor in file.tensors() {
        let range = tensor.bytes().as_ptr_range();
        assert!(all.start <= range.start && range.end <= all.end, "{tensor:?}");
        assert!(file.tensor(tensor.name()).is_ok());
    }
    for layer in 0..2 {
        match AttentionLayer::read(&file, layer) {
            Ok(layer) => decode(&layer),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Decodes one token. The weights may overflow, which is an error; nothing else is.
fn decode(layer: &AttentionLayer<'_>) {
    let AttentionLayer { layer, rope, .. } = layer;
    let shape = layer.shape();
    let rope = RopeTable::new(rope.clone(), 1).expect("a rotation that was checked");
    let mut cache = KvCache::<f32>::with_capacity(shape.cache().unwrap(), 1).unwrap();
    let mut scratch = Scratch::new(shape, 1).unwrap();
    let input: Vec<f32> = (0..shape.embed_dim()).map(|i| i as f32 - 3.5).collect();
    let mut output = vec![0.0; shape.embed_dim()];
    let context = DecodeContext { rope: Some(&rope), cache: &mut cache, scratch: &mut scratch };
    let runner = Runner::serial(Isa::detect());
    match layer.decode(&runner, context, &input, None, &mut output) {
        Ok(()) => {
            assert!(output.iter().all(|x| x.is_finite()));
            assert_eq!(cache.len(), 1);
        }
        Err(_) => assert!(cache.is_empty() && output.iter().all(|x| *x == 0.0)),
    }
}
