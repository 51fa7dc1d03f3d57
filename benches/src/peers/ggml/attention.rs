//! ggml's attention nodes alone, on one thread.

use super::graph::{Builder, Data, Graph, Kind, Threads};
use super::{Caches, Mode, level};
use crate::attention::queries;
use crate::contender::{Agreement, Contender, Side};
use crate::model::Model;
use std::rc::Rc;

/// Attention over one of some caches.
pub struct Attention {
    name: String,
    caches: Caches,
    mask: Vec<u8>,
    queries: Vec<f32>,
    agreement: Agreement,
    graph: Graph,
}

impl Attention {
    /// Attention of `model`'s query heads over `caches`, in turn.
    #[must_use]
    pub fn new(model: Model, mode: Mode, caches: Caches) -> Self {
        let shape = model.shape();
        let mut b = Builder::new();
        let q = b.outside(Kind::F32, shape.q_dim(), 1);
        let layout = caches.layout();
        let tensors = layout.tensors(&mut b);
        let q = b.reshape(q, [shape.head_dim(), shape.n_heads(), 1]);
        let out = layout.attend(&mut b, q, tensors);
        let graph = b.build(&[out], &Rc::new(Threads::new(1)));
        let name = format!("ggml {mode}, {}, {}", level(), caches.kind().name());
        let agreement = mode.agreement(layout.positions());
        let (mask, queries) = (layout.mask(), queries(model));
        Self { name, mask, queries, agreement, caches, graph }
    }
}

impl Contender for Attention {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn side(&self) -> Side {
        Side::Peer
    }

    fn run(&mut self, copy: usize) {
        let [keys, values] = self.caches.data(copy);
        let (queries, mask) = (Data::from(&self.queries[..]), Data::from(&self.mask[..]));
        self.graph.compute(&[queries, mask, keys, values]);
    }

    fn answer(&self) -> Vec<f32> {
        self.graph.output()
    }

    fn agreement(&self) -> Agreement {
        self.agreement
    }
}
