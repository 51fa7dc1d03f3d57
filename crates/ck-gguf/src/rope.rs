//! What a file says of the rotary position embedding.

use crate::error::{Error, Place};
use crate::file::GgufFile;
use crate::layer::{Settings, Warning};
use ck_ops::RopeConfig;

/// The base of the rotation's frequencies where a file has none. llama.cpp takes the same.
pub const DEFAULT_ROPE_BASE: f64 = 10_000.0;

/// Tensors that scale every frequency on its own.
const FACTOR_TENSORS: [&str; 3] =
    ["rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"];

/// Keys that scale all frequencies, or the rotated values, by one factor. 0 and 1 mean no scaling.
const FACTOR_KEYS: [&str; 3] =
    ["rope.scaling.factor", "rope.scale_linear", "rope.scaling.attn_factor"];

/// Reads the rotation of a layer with heads of `head_dim` elements.
pub(crate) fn read(
    file: &GgufFile<'_>,
    settings: &Settings<'_, '_>,
    head_dim: usize,
    warnings: &mut Vec<Warning>,
) -> Result<RopeConfig, Error> {
    refuse_scaling(file, settings)?;

    let base = match settings.get::<f64>("rope.freq_base")? {
        Some(base) if base.is_finite() && base > 0.0 => base,
        Some(_) => return Err(settings.bad("rope.freq_base", "a finite number above 0")),
        None => {
            warnings.push(Warning::DefaultRopeBase { key: settings.key("rope.freq_base") });
            DEFAULT_ROPE_BASE
        }
    };
    let rot_dim = settings.get::<usize>("rope.dimension_count")?.unwrap_or(head_dim);
    if rot_dim == 0 || rot_dim % 2 != 0 || rot_dim > head_dim {
        let expected = format!("an even number from 2 to the head dimension, {head_dim}");
        return Err(settings.bad("rope.dimension_count", &expected));
    }
    let pairing = settings.architecture.pairing();
    Ok(RopeConfig::new(head_dim, base).with_rot_dim(rot_dim).with_pairing(pairing))
}

/// Fails if the file asks for any change of the frequencies.
fn refuse_scaling(file: &GgufFile<'_>, settings: &Settings<'_, '_>) -> Result<(), Error> {
    let scaling_type = settings.get::<&str>("rope.scaling.type")?.unwrap_or("linear");
    if !["none", "linear"].contains(&scaling_type) {
        let place = Place::Key(settings.key("rope.scaling.type"));
        return Err(Error::UnsupportedFeature { place, feature: "a RoPE scaling" });
    }
    for suffix in FACTOR_KEYS {
        let factor = settings.get::<f64>(suffix)?.unwrap_or(1.0);
        if factor != 0.0 && factor != 1.0 {
            let place = Place::Key(settings.key(suffix));
            return Err(Error::UnsupportedFeature { place, feature: "a RoPE scaling" });
        }
    }
    match FACTOR_TENSORS.into_iter().find(|name| file.find(name).is_some()) {
        Some(tensor) => {
            let place = Place::Tensor(tensor.to_owned());
            Err(Error::UnsupportedFeature { place, feature: "RoPE frequency factors" })
        }
        None => Ok(()),
    }
}
