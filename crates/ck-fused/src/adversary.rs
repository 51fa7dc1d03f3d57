//! Programs that safe code might try and that must not compile. Only doc tests see this file; the first
//! example of each item compiles, so that the second fails for the line that differs.

/// Weights are borrowed for as long as the layer is used.
///
/// ```
/// # use ck_fused::{DecodeContext, DecodeLayer, LayerShape, LayerWeights, Norm, Projection, Projections, Runner, Scratch};
/// # use ck_ops::KvCache;
/// # use ck_quant::{Format, Isa, Matrix};
/// # let shape = LayerShape::new(32, 1, 1, 32).unwrap();
/// # let mut cache = KvCache::<f32>::with_capacity(shape.cache().unwrap(), 4).unwrap();
/// # let mut scratch = Scratch::new(shape, 4).unwrap();
/// let mut bytes = Format::Q5_0.quantize(&[0.5; 32 * 32]).unwrap();
/// let weights = || Projection::new(Matrix::new(Format::Q5_0, 32, 32, &bytes).unwrap());
/// let norm = Norm::new(vec![1.0; 32], 1e-6);
/// let (q, k, v, o) = (weights(), weights(), weights(), weights());
/// let weights = LayerWeights::new(norm, Projections { q, k, v, o });
/// let layer = DecodeLayer::new(shape, weights).unwrap();
/// let context = DecodeContext { rope: None, cache: &mut cache, scratch: &mut scratch };
/// layer.decode_in_place(&Runner::serial(Isa::Scalar), context, &mut [1.0; 32]).unwrap();
/// bytes[0] = 7;
/// ```
///
/// ```compile_fail,E0502
/// # use ck_fused::{DecodeContext, DecodeLayer, LayerShape, LayerWeights, Norm, Projection, Projections, Runner, Scratch};
/// # use ck_ops::KvCache;
/// # use ck_quant::{Format, Isa, Matrix};
/// # let shape = LayerShape::new(32, 1, 1, 32).unwrap();
/// # let mut cache = KvCache::<f32>::with_capacity(shape.cache().unwrap(), 4).unwrap();
/// # let mut scratch = Scratch::new(shape, 4).unwrap();
/// let mut bytes = Format::Q5_0.quantize(&[0.5; 32 * 32]).unwrap();
/// let weights = || Projection::new(Matrix::new(Format::Q5_0, 32, 32, &bytes).unwrap());
/// let norm = Norm::new(vec![1.0; 32], 1e-6);
/// let (q, k, v, o) = (weights(), weights(), weights(), weights());
/// let weights = LayerWeights::new(norm, Projections { q, k, v, o });
/// let layer = DecodeLayer::new(shape, weights).unwrap();
/// let context = DecodeContext { rope: None, cache: &mut cache, scratch: &mut scratch };
/// bytes[0] = 7;
/// layer.decode_in_place(&Runner::serial(Isa::Scalar), context, &mut [1.0; 32]).unwrap();
/// ```
struct ChangesWeightsThatAreInUse;

/// A cache and a scratch serve one call at a time.
///
/// ```
/// # use ck_fused::{DecodeContext, LayerShape, Scratch};
/// # use ck_ops::KvCache;
/// # let shape = LayerShape::new(32, 1, 1, 32).unwrap();
/// # let mut cache = KvCache::<f32>::with_capacity(shape.cache().unwrap(), 4).unwrap();
/// # let mut other = KvCache::<f32>::with_capacity(shape.cache().unwrap(), 4).unwrap();
/// # let (mut a, mut b) = (Scratch::new(shape, 4).unwrap(), Scratch::new(shape, 4).unwrap());
/// let one = DecodeContext { rope: None, cache: &mut cache, scratch: &mut a };
/// let two = DecodeContext { rope: None, cache: &mut other, scratch: &mut b };
/// drop((one, two));
/// ```
///
/// ```compile_fail,E0499
/// # use ck_fused::{DecodeContext, LayerShape, Scratch};
/// # use ck_ops::KvCache;
/// # let shape = LayerShape::new(32, 1, 1, 32).unwrap();
/// # let mut cache = KvCache::<f32>::with_capacity(shape.cache().unwrap(), 4).unwrap();
/// # let (mut a, mut b) = (Scratch::new(shape, 4).unwrap(), Scratch::new(shape, 4).unwrap());
/// let one = DecodeContext { rope: None, cache: &mut cache, scratch: &mut a };
/// let two = DecodeContext { rope: None, cache: &mut cache, scratch: &mut b };
/// drop((one, two));
/// ```
struct SharesACache;
