//! The attention block as llama.cpp builds it: one graph of some thirty nodes.

use super::graph::{Builder, Data, Graph, Kind, Threads};
use super::{Caches, Mode, level};
use crate::contender::{Agreement, Contender, Side};
use crate::memory::Copies;
use crate::model::{EPS, LayerData, ROPE_BASE};
use ck_ops::Pairing;
use ck_quant::Format;
use std::rc::Rc;

/// ggml's attention block.
pub struct Layer<'a> {
    name: String,
    data: &'a LayerData,
    copies: &'a Copies,
    caches: Caches,
    mask: Vec<u8>,
    position: [i32; 1],
    agreement: Agreement,
    graph: Graph,
}

impl<'a> Layer<'a> {
    /// The block on copies of a layer's bytes; `caches` are for as many positions as `positions` says.
    ///
    /// # Panics
    ///
    /// If the copies are not of the layer's bytes.
    #[must_use]
    pub fn new(
        data: &'a LayerData,
        copies: &'a Copies,
        caches: Caches,
        (mode, positions): (Mode, usize),
        threads: &Rc<Threads>,
    ) -> Self {
        assert_eq!(copies.get(0).len(), data.bytes.len(), "copies of the layer's bytes");
        let name = format!("ggml {mode}, {}, {}", level(), copies.kind().name());
        let mask = caches.layout().mask();
        let position = [i32::try_from(positions - 1).expect("a small number")];
        let graph = build(data, &caches, threads);
        let agreement = mode.agreement(positions);
        Self { name, data, copies, caches, mask, position, agreement, graph }
    }
}

/// Builds the graph. The outside tensors are, in this order: the hidden state, the position, the norm's weights,
/// four matrices, four biases, and the cache's three.
fn build(data: &LayerData, caches: &Caches, threads: &Rc<Threads>) -> Graph {
    let shape = data.model.shape();
    let (embed_dim, head_dim) = (shape.embed_dim(), shape.head_dim());
    let mut b = Builder::new();
    let hidden = b.outside(Kind::F32, embed_dim, 1);
    let position = b.outside(Kind::I32, 1, 1);
    let position = b.reshape(position, [1, 1, 1]);
    let gamma = b.outside(Kind::F32, embed_dim, 1);
    let matrices = data.parts.map(|part| {
        let kind = if part.format == Format::Q5_0 { Kind::Q5_0 } else { Kind::Q8_0 };
        b.outside(kind, part.columns, part.rows)
    });
    let biases = data.parts.map(|part| b.outside(Kind::F32, part.rows, 1));
    let [mask, keys, values] = caches.layout().tensors(&mut b);

    let normed = b.rms_norm(hidden, EPS);
    let normed = b.mul(normed, gamma);
    let mut project = |index: usize| {
        let product = b.mul_mat(matrices[index], normed);
        b.add(product, biases[index])
    };
    let [q, k, v] = [0, 1, 2].map(&mut project);
    let split_half = data.model.pairing == Pairing::SplitHalf;
    let mut rotate = |x, heads| {
        let x = b.reshape(x, [head_dim, heads, 1]);
        b.rope(x, position, split_half, ROPE_BASE as f32)
    };
    let q = rotate(q, shape.n_heads());
    let k = rotate(k, shape.n_kv_heads());
    let [k, v] = caches.layout().store(&mut b, [keys, values], [k, v]);
    let attn = caches.layout().attend(&mut b, q, [mask, keys, values]);
    let product = b.mul_mat(matrices[3], attn);
    let sum = b.add(product, biases[3]);
    let output = b.add(sum, hidden);
    b.build(&[q, k, v, output], threads)
}

impl Contender for Layer<'_> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn side(&self) -> Side {
        Side::Peer
    }

    fn start(&mut self) {
        self.graph.threads().resume();
    }

    fn stop(&mut self) {
        self.graph.threads().pause();
    }

    fn run(&mut self, copy: usize) {
        let bytes = self.copies.get(copy);
        let [keys, values] = self.caches.data(copy);
        let matrix = |index: usize| {
            let part = self.data.parts[index];
            Data::from(&bytes[part.start..part.start + part.len])
        };
        let bias = |index: usize| Data::from(&self.data.biases[index][..]);
        self.graph.compute(&[
            Data::from(&self.data.hidden[..]),
            Data::from(&self.position[..]),
            Data::from(&self.data.gamma[..]),
            matrix(0),
            matrix(1),
            matrix(2),
            matrix(3),
            bias(0),
            bias(1),
            bias(2),
            bias(3),
            Data::from(&self.mask[..]),
            keys,
            values,
        ]);
    }

    fn answer(&self) -> Vec<f32> {
        self.graph.output()
    }

    fn agreement(&self) -> Agreement {
        self.agreement
    }
}
