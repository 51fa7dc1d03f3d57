//! Bytes as layers and calls of them: every strategy, team and level gives the serial bits, or all give an error.

use crate::bits;
use arbitrary::{Arbitrary, Result, Unstructured};
use ck_fused::{
    DecodeContext, DecodeLayer, LayerShape, LayerWeights, Norm, Projection, Projections, Runner,
    Scratch, Strategy,
};
use ck_isa::Isa;
use ck_ops::{
    CacheElement, KvCache, Llama3, Pairing, Q8_0, RopeConfig, RopeScaling, RopeTable, Yarn,
};
use ck_quant::{Format, Matrix};
use ck_testing::generate::{Biases, Formats, Rng, Values, random_layer, with_head_norms};
use ck_testing::oracle::{self, BLOCK, Shape};
use ck_threadpool::{ThreadPool, WaitPolicy};
use half::f16;
use std::sync::OnceLock;

/// Members of the largest team.
const TEAM: usize = 4;

/// Makes the layer that the bytes say, and decodes the tokens that they say.
///
/// # Panics
///
/// If a shape is accepted that must not be, or a way to run the layer differs from the serial scalar one.
pub fn check(bytes: &[u8]) {
    // Bytes that end early end the sequence.
    let mut input = Unstructured::new(bytes);
    let _ = run(&mut input);
}

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let Some(shape) = any_shape(input)? else { return Ok(()) };
    let weights = any_weights(input, shape)?;
    let Some(layer) = build(&weights, shape) else { return Ok(()) };
    let packed = layer.pack().unwrap();
    let rope = any_rope(input, shape.head_dim())?;
    let way = Way {
        layer: if bool::arbitrary(input)? { &packed } else { &layer },
        strategy: *input.choose(Strategy::ALL)?,
        isa: *input.choose(&Isa::available().collect::<Vec<_>>())?,
        team: input.int_in_range(1..=TEAM)?,
    };
    match input.int_in_range(0..=2)? {
        1 => compare::<f16>(input, &layer, &way, rope.as_ref()),
        2 if shape.head_dim().is_multiple_of(BLOCK) => {
            compare::<Q8_0>(input, &layer, &way, rope.as_ref())
        }
        _ => compare::<f32>(input, &layer, &way, rope.as_ref()),
    }
}

/// A shape; where it is refused, none.
fn any_shape(input: &mut Unstructured<'_>) -> Result<Option<LayerShape>> {
    if input.ratio(1, 8)? {
        let [embed, heads, kv_heads, head_dim] = <[usize; 4]>::arbitrary(input)?;
        // Too large to be decoded in a moment, if it is a shape at all.
        let _ = LayerShape::new(embed, heads, kv_heads, head_dim);
        return Ok(None);
    }
    let embed = if input.ratio(1, 16)? { 33 } else { 32 * input.int_in_range(1..=5)? };
    let kv_heads = input.int_in_range(0..=3)?;
    let group = input.int_in_range(1..=4)?;
    let heads = if input.ratio(1, 16)? { input.int_in_range(0..=9)? } else { kv_heads * group };
    let head_dim = if input.ratio(1, 2)? { 32 } else { input.int_in_range(1..=66)? };
    let valid = kv_heads > 0
        && heads > 0
        && heads % kv_heads == 0
        && head_dim % 2 == 0
        && heads * head_dim % 32 == 0
        && embed % 32 == 0;
    let shape = LayerShape::new(embed, heads, kv_heads, head_dim);
    assert_eq!(shape.is_ok(), valid, "{shape:?}");
    Ok(shape.ok())
}

fn any_weights(input: &mut Unstructured<'_>, shape: LayerShape) -> Result<oracle::LayerWeights> {
    let all = Formats::all();
    let formats = *input.choose(&all)?;
    let [q, k, v, o] = <[bool; 4]>::arbitrary(input)?;
    let (n_heads, n_kv_heads) = (shape.n_heads(), shape.n_kv_heads());
    let (embed_dim, head_dim) = (shape.embed_dim(), shape.head_dim());
    let shape = Shape { embed_dim, n_heads, n_kv_heads, head_dim };
    let seed = u8::arbitrary(input)?;
    let mut weights = random_layer(seed.into(), shape, formats, Biases { q, k, v, o });
    // Some bytes of one matrix become others: scales that are huge, or no numbers.
    if input.ratio(1, 3)? {
        let matrix = match input.int_in_range(0..=3)? {
            0 => &mut weights.q,
            1 => &mut weights.k,
            2 => &mut weights.v,
            _ => &mut weights.o,
        };
        for _ in 0..input.int_in_range(1..=6)? {
            let index = input.choose_index(matrix.bytes.len())?;
            matrix.bytes[index] = u8::arbitrary(input)?;
        }
    }
    if input.ratio(1, 16)? {
        weights.gamma[0] = f32::arbitrary(input)?;
        weights.eps = f32::arbitrary(input)?;
    }
    if input.ratio(1, 2)? {
        weights = with_head_norms(seed.into(), weights);
        let norms = [&mut weights.q_norm, &mut weights.k_norm];
        for norm in norms {
            any_head_norm(input, norm)?;
        }
    }
    Ok(weights)
}

/// Leaves a norm of heads as it is, takes it away, or puts other numbers into it.
fn any_head_norm(input: &mut Unstructured<'_>, norm: &mut Option<oracle::HeadNorm>) -> Result<()> {
    match (input.int_in_range(0..=15)?, norm.as_mut()) {
        (0, _) => *norm = None,
        (1, Some(norm)) => {
            norm.gamma[0] = f32::arbitrary(input)?;
            norm.eps = f32::arbitrary(input)?;
        }
        _ => {}
    }
    Ok(())
}

/// The layer, unless the weights hold numbers that are refused.
fn build(weights: &oracle::LayerWeights, shape: LayerShape) -> Option<DecodeLayer<'_>> {
    let scales = [&weights.q, &weights.k, &weights.v, &weights.o].into_iter().all(|projection| {
        let block_bytes = projection.format.block_bytes();
        let mut blocks = projection.bytes.chunks_exact(block_bytes);
        blocks.all(|block| f16::from_le_bytes([block[0], block[1]]).is_finite())
    });
    let good = |gamma: &[f32], eps: f32| gamma[0].is_finite() && eps.is_finite() && eps >= 0.0;
    let head_norms = [&weights.q_norm, &weights.k_norm];
    let numbers = good(&weights.gamma, weights.eps)
        && head_norms.into_iter().flatten().all(|norm| good(&norm.gamma, norm.eps));
    let projections = [&weights.q, &weights.k, &weights.v, &weights.o].map(projection);
    assert_eq!(projections.iter().all(Option::is_some), scales);
    let [Some(q), Some(k), Some(v), Some(o)] = projections else { return None };
    let norm = Norm::new(&weights.gamma[..], weights.eps);
    let mut layer_weights = LayerWeights::new(norm, Projections { q, k, v, o });
    layer_weights.q_norm = weights.q_norm.as_ref().map(head_norm);
    layer_weights.k_norm = weights.k_norm.as_ref().map(head_norm);
    let layer = DecodeLayer::new(shape, layer_weights);
    assert_eq!(layer.is_ok(), numbers, "{layer:?}");
    layer.ok()
}

fn head_norm(norm: &oracle::HeadNorm) -> Norm<'_> {
    Norm::new(&norm.gamma[..], norm.eps)
}

fn projection(projection: &oracle::Projection) -> Option<Projection<'_>> {
    let format = match projection.format {
        oracle::Format::Q5_0 => Format::Q5_0,
        oracle::Format::Q8_0 => Format::Q8_0,
    };
    let (rows, columns) = (projection.rows(), projection.columns);
    let matrix = Matrix::new(format, rows, columns, &projection.bytes).ok()?;
    let bias = projection.bias.as_deref();
    Some(bias.into_iter().fold(Projection::new(matrix), |p, bias| p.with_bias(bias)))
}

/// A rotation, or none. Some are for other heads, so that calls are refused.
fn any_rope(input: &mut Unstructured<'_>, head_dim: usize) -> Result<Option<RopeTable>> {
    if input.ratio(1, 4)? {
        return Ok(None);
    }
    let head_dim = if input.ratio(1, 16)? { head_dim + 2 } else { head_dim };
    let pairing = if bool::arbitrary(input)? { Pairing::SplitHalf } else { Pairing::Interleaved };
    let mut config = RopeConfig::new(head_dim, 1e4)
        .with_rot_dim(input.int_in_range(0..=head_dim)?)
        .with_pairing(pairing)
        .with_scaling(any_scaling(input)?);
    if input.ratio(1, 4)? {
        config = config.with_attn_factor(any_number(input)?);
    }
    if input.ratio(1, 4)? {
        let factor = any_number(input)? as f32;
        config.frequency_factors = Some(vec![factor; config.rot_dim / 2]);
    }
    let table = RopeTable::new(config.clone(), input.int_in_range(0..=300)?);
    // Fewer positions than memory has, so only the configuration can be refused.
    assert_eq!(table.is_ok(), config.check().is_ok(), "{config:?}");
    Ok(table.ok())
}

/// A number near 1, or any number at all.
fn any_number(input: &mut Unstructured<'_>) -> Result<f64> {
    if input.ratio(1, 8)? {
        return f64::arbitrary(input);
    }
    Ok(f64::from(input.int_in_range(1..=64)?) / 8.0)
}

fn any_scaling(input: &mut Unstructured<'_>) -> Result<RopeScaling> {
    let context = if input.ratio(1, 16)? { 0 } else { input.int_in_range(1..=200)? };
    Ok(match input.int_in_range(0..=5)? {
        0 => RopeScaling::Linear { factor: any_number(input)? },
        1 => {
            let rule = Llama3::new(any_number(input)?, context);
            RopeScaling::Llama3(rule.with_freq_factors(any_number(input)?, any_number(input)?))
        }
        2 => {
            let yarn = Yarn::new(any_number(input)?, context)
                .with_betas(4.0 * any_number(input)?, any_number(input)?)
                .with_ext_factor(any_number(input)? / 8.0)
                .with_log_multiplier(any_number(input)?);
            RopeScaling::Yarn(yarn)
        }
        _ => RopeScaling::None,
    })
}

/// The way to run a layer that is compared with the serial scalar one.
struct Way<'l> {
    layer: &'l DecodeLayer<'l>,
    strategy: Strategy,
    isa: Isa,
    team: usize,
}

/// What one way of decoding works in.
struct Memory<E: CacheElement> {
    cache: KvCache<E>,
    scratch: Scratch<E>,
}

impl<E: CacheElement> Memory<E> {
    fn new(shape: LayerShape, positions: usize, team: usize) -> Self {
        let cache = KvCache::with_capacity(shape.cache().unwrap(), positions).unwrap();
        Self { cache, scratch: Scratch::for_team(shape, positions, team).unwrap() }
    }

    fn stored(&self, position: usize) -> Vec<u32> {
        let mut row = vec![0.0; self.cache.shape().head_dim()];
        let mut all = Vec::new();
        for head in 0..self.cache.shape().n_kv_heads() {
            self.cache.key(head, position, &mut row).unwrap();
            all.extend(bits(&row));
            self.cache.value(head, position, &mut row).unwrap();
            all.extend(bits(&row));
        }
        all
    }
}

/// Decodes tokens both ways.
fn compare<E: CacheElement>(
    input: &mut Unstructured<'_>,
    layer: &DecodeLayer<'_>,
    way: &Way<'_>,
    rope: Option<&RopeTable>,
) -> Result<()> {
    static POOL: OnceLock<ThreadPool> = OnceLock::new();
    let pool = POOL.get_or_init(|| {
        let builder = ThreadPool::builder().threads(TEAM).wait_policy(WaitPolicy::SLEEP);
        builder.build().expect("a few threads")
    });
    let runner = Runner::new(way.isa, pool).with_strategy(way.strategy).with_team(way.team);
    let positions = input.int_in_range(0..=290)?;
    let mut serial = Memory::<E>::new(layer.shape(), positions, 1);
    let mut other = Memory::<E>::new(layer.shape(), positions, way.team);
    let tokens = if input.ratio(1, 32)? { 270 } else { input.int_in_range(1..=5)? };
    for token in 0..tokens {
        let hidden = any_input(input, layer.shape().embed_dim(), token)?;
        let residual = (token % 3 > 0).then_some(&hidden[..]);
        let decode = |layer: &DecodeLayer<'_>, runner: &Runner<'_>, memory: &mut Memory<E>| {
            let Memory { cache, scratch } = memory;
            let mut out = vec![7.0; layer.shape().embed_dim()];
            let context = DecodeContext { rope, cache, scratch };
            (layer.decode(runner, context, &hidden, residual, &mut out), out)
        };
        let (expected, a) = decode(layer, &Runner::serial(Isa::Scalar), &mut serial);
        let (result, b) = decode(way.layer, &runner, &mut other);
        assert_eq!(result.is_ok(), expected.is_ok(), "{result:?} instead of {expected:?}");
        assert_eq!(bits(&a), bits(&b), "{runner:?} at position {}", serial.cache.len());
        assert_eq!(serial.cache.len(), other.cache.len());
        if expected.is_ok() {
            let newest = serial.cache.len() - 1;
            assert_eq!(serial.stored(newest), other.stored(newest), "{runner:?}");
        } else {
            assert!(a.iter().all(|x| *x == 7.0), "a failed call changes nothing");
        }
    }
    Ok(())
}

/// The hidden state of a token, now and then of a wrong length or with a number that is refused.
fn any_input(input: &mut Unstructured<'_>, len: usize, token: usize) -> Result<Vec<f32>> {
    let kind = *input.choose(&Values::ALL)?;
    let len = if input.ratio(1, 64)? { len + 1 } else { len };
    let mut hidden = kind.row(&mut Rng::new(token as u64), len);
    if input.ratio(1, 16)? {
        let index = input.choose_index(len)?;
        hidden[index] = f32::arbitrary(input)?;
    }
    Ok(hidden)
}
