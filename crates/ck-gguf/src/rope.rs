//! What a file says of the rotary position embedding.

use crate::error::{Error, Place};
use crate::file::GgufFile;
use crate::layer::Warning;
use crate::settings::{Settings, Windows};
use crate::weights;
use ck_ops::{RopeConfig, RopeScaling, Yarn};

/// The base of the rotation's frequencies where a file has none. llama.cpp takes the same.
pub const DEFAULT_ROPE_BASE: f64 = 10_000.0;

/// A number for every pair that its frequency is divided by: how files carry the rule of Llama 3.
const FACTORS: &str = "rope_freqs.weight";

/// Two sets of such numbers, of which the length of the context chooses one.
const LONGROPE: [&str; 2] = ["rope_factors_long.weight", "rope_factors_short.weight"];

const BASE: &str = "rope.freq_base";
const WINDOW_BASE: &str = "rope.freq_base_swa";
const WIDTH: &str = "rope.dimension_count";
const TYPE: &str = "rope.scaling.type";
const FACTOR: &str = "rope.scaling.factor";
const OLD_FACTOR: &str = "rope.scale_linear";
const MAGNITUDE: &str = "rope.scaling.attn_factor";
const ORIGINAL: &str = "rope.scaling.original_context_length";
const CONTEXT: &str = "context_length";
const EXT_FACTOR: &str = "rope.scaling.yarn_ext_factor";
const YARN_MAGNITUDE: &str = "rope.scaling.yarn_attn_factor";
const BETA_FAST: &str = "rope.scaling.yarn_beta_fast";
const BETA_SLOW: &str = "rope.scaling.yarn_beta_slow";
const LOG_MULTIPLIER: &str = "rope.scaling.yarn_log_multiplier";

/// Reads the rotation of a layer with heads of `head_dim` elements, which attends to a window or to everything.
pub(crate) fn read(
    file: &GgufFile<'_>,
    settings: &Settings<'_, '_>,
    (head_dim, has_window): (usize, bool),
    warnings: &mut Vec<Warning>,
) -> Result<RopeConfig, Error> {
    refuse_longrope(file)?;
    let rot_dim = settings.get::<usize>(WIDTH)?.unwrap_or(head_dim);
    if rot_dim == 0 || rot_dim % 2 != 0 || rot_dim > head_dim {
        let expected = format!("an even number from 2 to the head dimension, {head_dim}");
        return Err(settings.bad(WIDTH, &expected));
    }
    let windows = settings.architecture.windows().filter(|_| has_window);
    let mut config = RopeConfig::new(head_dim, base(settings, windows, warnings)?)
        .with_rot_dim(rot_dim)
        .with_pairing(settings.architecture.pairing());
    let scaling = scaling(settings)?;
    if windows.is_none_or(|windows| windows.plain_base.is_none()) {
        config = config.with_scaling(scaling);
    }
    match settings.get::<f64>(MAGNITUDE)? {
        Some(factor) if factor.is_finite() && factor > 0.0 => {
            config = config.with_attn_factor(factor);
        }
        Some(_) => return Err(settings.bad(MAGNITUDE, "a finite number above 0")),
        None => {}
    }
    if let Some(factors) = factors(file, settings, rot_dim)? {
        config = config.with_frequency_factors(factors);
    }
    config.check().map_err(|source| Error::Rotation { source })?;
    Ok(config)
}

fn base(
    settings: &Settings<'_, '_>,
    windows: Option<Windows>,
    warnings: &mut Vec<Warning>,
) -> Result<f64, Error> {
    let mut key = BASE;
    if let Some(windows) = windows {
        match (settings.get::<f64>(WINDOW_BASE)?, windows.plain_base) {
            (Some(_), _) => key = WINDOW_BASE,
            (None, Some(base)) => return Ok(base),
            (None, None) => {}
        }
    }
    match settings.get::<f64>(key)? {
        Some(base) if base.is_finite() && base > 0.0 => Ok(base),
        Some(_) => Err(settings.bad(key, "a finite number above 0")),
        None => {
            warnings.push(Warning::DefaultRopeBase { key: settings.key(key) });
            Ok(DEFAULT_ROPE_BASE)
        }
    }
}

fn scaling(settings: &Settings<'_, '_>) -> Result<RopeScaling, Error> {
    let factor = match settings.get::<f64>(FACTOR)? {
        Some(_) => settings.nonzero::<f64>(FACTOR)?,
        None => settings.nonzero::<f64>(OLD_FACTOR)?,
    };
    let scaling_type = settings.get::<&str>(TYPE)?.unwrap_or("linear");
    match scaling_type {
        "yarn" => return yarn(settings, factor.unwrap_or(1.0)).map(RopeScaling::Yarn),
        "none" | "linear" => {}
        _ => return Err(settings.unsupported(TYPE, "a RoPE scaling other than linear or YaRN")),
    }
    for key in [EXT_FACTOR, YARN_MAGNITUDE, BETA_FAST, BETA_SLOW, LOG_MULTIPLIER] {
        if settings.get::<f64>(key)?.is_some() {
            return Err(settings.unsupported(key, "YaRN in a rotation of another type"));
        }
    }
    Ok(match factor {
        Some(factor) if scaling_type == "linear" => RopeScaling::Linear { factor },
        _ => RopeScaling::None,
    })
}

fn yarn(settings: &Settings<'_, '_>, factor: f64) -> Result<Yarn, Error> {
    if settings.architecture.windows().is_some() {
        return Err(settings.unsupported(TYPE, "YaRN in a model with sliding windows"));
    }
    let original = match settings.get::<usize>(ORIGINAL)?.filter(|&positions| positions > 0) {
        Some(positions) => positions,
        None => settings.require::<usize>(CONTEXT)?,
    };
    let mut yarn = Yarn::new(factor, original);
    // llama.cpp takes a negative one for one that is not set.
    let ext_factor = settings.get::<f64>(EXT_FACTOR)?.unwrap_or(-1.0);
    if ext_factor.is_nan() || ext_factor >= 0.0 {
        yarn = yarn.with_ext_factor(ext_factor);
    }
    let fast = settings.get(BETA_FAST)?.unwrap_or(yarn.beta_fast);
    let slow = settings.get(BETA_SLOW)?.unwrap_or(yarn.beta_slow);
    let log_multiplier = settings.get(LOG_MULTIPLIER)?.unwrap_or(yarn.log_multiplier);
    yarn = yarn.with_betas(fast, slow).with_log_multiplier(log_multiplier);
    // To some programs this is the whole magnitude, and llama.cpp computes its own: they must agree.
    if let Some(magnitude) = settings.get::<f64>(YARN_MAGNITUDE)? {
        let difference = (magnitude / yarn.magnitude() - 1.0).abs();
        if difference.is_nan() || difference > 1e-4 {
            let expected = format!("{}, which follows from the other keys", yarn.magnitude());
            return Err(settings.bad(YARN_MAGNITUDE, &expected));
        }
    }
    Ok(yarn)
}

fn factors(
    file: &GgufFile<'_>,
    settings: &Settings<'_, '_>,
    rot_dim: usize,
) -> Result<Option<Vec<f32>>, Error> {
    let Some(tensor) = file.find(FACTORS) else { return Ok(None) };
    if settings.architecture.windows().is_some() {
        let place = Place::Tensor(FACTORS.to_owned());
        let feature = "frequency factors in a model with sliding windows";
        return Err(Error::UnsupportedFeature { place, feature });
    }
    weights::vector(&tensor, rot_dim / 2, "one factor per pair of rotated elements").map(Some)
}

fn refuse_longrope(file: &GgufFile<'_>) -> Result<(), Error> {
    match LONGROPE.into_iter().find(|name| file.find(name).is_some()) {
        Some(tensor) => {
            let place = Place::Tensor(tensor.to_owned());
            let feature = "frequency factors that depend on the length of the context (longrope)";
            Err(Error::UnsupportedFeature { place, feature })
        }
        None => Ok(()),
    }
}
