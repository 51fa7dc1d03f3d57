//! The suite: which cases there are, and who takes part in each.

mod attention;
mod layers;
mod products;

use crate::case::{Case, Heat};
use crate::context::Kv;
use crate::memory::PageKind;
use crate::model::Model;
use crate::session::Session;
use crate::{attention as attention_case, layer};
use anyhow::Result;
use ck_fused::Strategy;
use ck_isa::Isa;
use ck_quant::Format;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// A look: one context, hot.
    Quick,
    /// What a run without arguments measures.
    Normal,
    /// Everything.
    Full,
}

/// What is asked for. What is empty stands for what the extent says.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much is measured.
    pub extent: Extent,
    /// Only cases whose name has all of these words.
    pub filter: String,
    /// The models.
    pub models: Vec<Model>,
    /// The lengths of the context.
    pub contexts: Vec<usize>,
    /// The numbers of threads.
    pub threads: Vec<usize>,
    /// The levels, the one that is stood for first.
    pub levels: Vec<Isa>,
    /// The types of caches, the one that is stood for first.
    pub kv: Vec<Kv>,
    /// The strategies of teams.
    pub strategies: Vec<Strategy>,
    /// Whether ggml takes part.
    pub ggml: bool,
    /// Whether candle takes part.
    pub candle: bool,
}

impl Options {
    fn models_or_all(&self) -> impl Iterator<Item = Model> {
        let named = !self.models.is_empty();
        let models = if named { self.models.clone() } else { crate::model::MODELS.to_vec() };
        models.into_iter()
    }

    fn kv_or_default(&self) -> Vec<Kv> {
        match (self.kv.is_empty(), self.extent) {
            (false, _) => self.kv.clone(),
            (true, Extent::Full) => vec![Kv::F16, Kv::F32],
            (true, _) => vec![Kv::F32],
        }
    }

    /// The lengths of the context at which attention alone is measured.
    ///
    /// What streams is the same whatever its length, and peers take long over long contexts. So `--full` has every length
    /// hot, and one that streams.
    fn attention_contexts(&self, model: Model, kv: Kv, heat: Heat) -> Vec<usize> {
        // Many heads to a key and value head are bound by arithmetic, one is by memory.
        let grouped = model.is_grouped();
        let asked = self.kv.contains(&kv);
        if !self.kv.is_empty() && !asked {
            return Vec::new();
        }
        if !self.contexts.is_empty() {
            // What is short cannot stream: its copies would be more than the cases are worth.
            let long = |len: &&usize| heat == Heat::Hot || **len >= 4096;
            let wanted = asked || self.kv_or_default().contains(&kv);
            return self.contexts.iter().filter(long).filter(|_| wanted).copied().collect();
        }
        let contexts: &[usize] = match (self.extent, heat, kv) {
            (Extent::Full, Heat::Hot, kv) if grouped && (asked || kv == Kv::F16) => {
                &[1024, 4096, 16_384, 65_536]
            }
            (Extent::Full, Heat::Streaming, kv) if grouped && (asked || kv == Kv::F16) => &[16_384],
            (Extent::Full, Heat::Hot, Kv::F32) if grouped => &[4096],
            (Extent::Full, Heat::Streaming, kv) if !grouped && (asked || kv != Kv::F32) => &[4096],
            (Extent::Quick | Extent::Normal, _, kv) if grouped && (asked || kv == Kv::F32) => {
                &[4096]
            }
            _ => &[],
        };
        contexts.to_vec()
    }

    /// The lengths of the context at which layers are measured.
    fn layer_contexts(&self, heat: Heat) -> Vec<usize> {
        match (self.extent, heat) {
            _ if !self.contexts.is_empty() => self.contexts.clone(),
            (Extent::Quick, _) | (Extent::Full, Heat::Streaming) => vec![128],
            (Extent::Normal, _) => vec![128, 4096],
            (Extent::Full, Heat::Hot) => vec![6, 128, 1024, 4096],
        }
    }

    fn heats(&self) -> &[Heat] {
        if self.extent == Extent::Quick { &[Heat::Hot] } else { &Heat::ALL }
    }

    /// The kinds of pages of every contender's data.
    fn pages(&self) -> &[PageKind] {
        match self.extent {
            Extent::Full => &[PageKind::Large, PageKind::Base],
            _ => &[PageKind::Large],
        }
    }

    /// The level that this project stands for.
    fn level(&self) -> Isa {
        self.levels.first().copied().unwrap_or_else(Isa::detect)
    }
}

/// Cases that share their data.
enum Group {
    Quantize(usize),
    Gemv(Format, usize, Heat),
    Attention(Model, Kv, Heat, Vec<usize>),
    Layer(Model, Heat, Vec<(usize, usize)>),
}

/// What is measured, in order.
pub struct Plan {
    groups: Vec<Group>,
    names: Vec<String>,
}

impl Plan {
    /// What `options` ask for.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let mut plan = Self { groups: Vec::new(), names: Vec::new() };
        for len in [576, 896, 4096] {
            plan.add(options, Group::Quantize(len));
        }
        for format in [Format::Q5_0, Format::Q8_0] {
            for size in [896, 2048, 4096] {
                for heat in options.heats() {
                    plan.add(options, Group::Gemv(format, size, *heat));
                }
            }
        }
        plan.add_attention(options);
        plan.add_layers(options);
        plan
    }

    fn add_attention(&mut self, options: &Options) {
        let heads = ["SmolLM2-135M", "Qwen2-0.5B", "Llama-3.2-1B", "Llama-2-7B"];
        for model in options.models_or_all().filter(|model| heads.contains(&model.name)) {
            for kv in [Kv::F32, Kv::F16, Kv::Q8_0] {
                for heat in options.heats() {
                    let contexts = options.attention_contexts(model, kv, *heat);
                    self.add(options, Group::Attention(model, kv, *heat, contexts));
                }
            }
        }
    }

    fn add_layers(&mut self, options: &Options) {
        let named = !options.models.is_empty();
        for model in options.models_or_all().filter(|model| named || model.has_layer()) {
            for heat in options.heats() {
                let contexts = options.layer_contexts(*heat);
                let cases = contexts.iter().flat_map(|context| {
                    options.threads.iter().map(move |threads| (*context, *threads))
                });
                self.add(options, Group::Layer(model, *heat, cases.collect()));
            }
        }
    }

    /// Adds those cases of a group that the filter lets through.
    fn add(&mut self, options: &Options, mut group: Group) {
        let mut names = Vec::new();
        let mut wanted = |case: Case| {
            let wanted = case.matches(&options.filter);
            names.extend(wanted.then(|| case.name()));
            wanted
        };
        let any = match &mut group {
            Group::Quantize(len) => wanted(products::quantize_case(*len)),
            Group::Gemv(format, size, heat) => wanted(products::gemv_case(*format, *size, *heat)),
            Group::Attention(model, kv, heat, contexts) => {
                contexts
                    .retain(|context| wanted(attention_case::case(*model, *context, *kv, *heat)));
                !contexts.is_empty()
            }
            Group::Layer(model, heat, cases) => {
                cases.retain(|(context, threads)| {
                    wanted(layer::case(*model, *context, *heat, *threads))
                });
                !cases.is_empty()
            }
        };
        if any {
            self.groups.push(group);
            self.names.extend(names);
        }
    }

    /// The names of the cases.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many cases there are.
    #[must_use]
    pub fn cases(&self) -> usize {
        self.names.len()
    }

    /// Measures everything, or as much of it as Ctrl-C lets it.
    ///
    /// # Errors
    ///
    /// A wrong answer of a contender; memory that is not to be had.
    pub fn run(&self, options: &Options, session: &mut Session) -> Result<()> {
        for group in &self.groups {
            if session.interrupted() {
                break;
            }
            crate::memory::trim_heap();
            match group {
                Group::Quantize(len) => products::quantize(options, session, *len)?,
                Group::Gemv(format, size, heat) => {
                    products::gemv(options, session, *format, *size, *heat)?;
                }
                Group::Attention(model, kv, heat, contexts) => {
                    attention::run(options, session, (*model, *kv, *heat), contexts)?;
                }
                Group::Layer(model, heat, cases) => {
                    layers::run(options, session, *model, *heat, cases)?;
                }
            }
        }
        Ok(())
    }
}
