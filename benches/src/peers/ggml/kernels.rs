//! ggml's kernels, through the table that its own graph code takes them from.

use super::level;
use crate::contender::{Agreement, Contender, Side};
use crate::gemv::Case;
use crate::memory::Copies;
use ck_quant::Format;
use llama_cpp_sys_2 as sys;
use std::ffi::c_void;

/// The kernels of one format.
#[derive(Clone, Copy)]
struct Kernels {
    from_float: unsafe extern "C" fn(*const f32, *mut c_void, i64),
    vec_dot: VecDot,
}

type VecDot =
    unsafe extern "C" fn(i32, *mut f32, usize, *const c_void, usize, *const c_void, usize, i32);

impl Kernels {
    fn of(format: Format) -> Self {
        let kind = match format {
            Format::Q5_0 => sys::GGML_TYPE_Q5_0,
            Format::Q8_0 => sys::GGML_TYPE_Q8_0,
            other => panic!("ggml's name for {other} is not known here"),
        };
        // SAFETY: it has no precondition; it fills ggml's tables, once.
        unsafe { sys::ggml_cpu_init() };
        // SAFETY: `kind` is one of ggml's types, so the result points into its static table.
        let traits = unsafe { sys::ggml_get_type_traits_cpu(kind) };
        // SAFETY: the entry was initialized above, and nobody writes to it again.
        let traits = unsafe { &*traits };
        Self {
            from_float: traits.from_float.expect("ggml quantizes this format"),
            vec_dot: traits.vec_dot.expect("ggml multiplies this format"),
        }
    }
}

/// Quantizes with ggml's own kernel.
fn quantize(values: &[f32], bytes: &mut [u8]) {
    let expected = Format::Q8_0.matrix_bytes(1, values.len()).expect("whole blocks");
    assert_eq!(bytes.len(), expected, "bytes of the quantized row");
    let from_float = Kernels::of(Format::Q8_0).from_float;
    // SAFETY: the row has `values.len()` elements, whole blocks, and the assertion above holds the room for them.
    unsafe { from_float(values.as_ptr(), bytes.as_mut_ptr().cast(), values.len() as i64) };
}

/// ggml's dot product, row after row.
pub struct Gemv<'a> {
    copies: &'a Copies,
    kernels: Kernels,
    row_bytes: usize,
    x: Vec<u8>,
    out: Vec<f32>,
}

impl<'a> Gemv<'a> {
    /// The product of a case; `copies` are copies of its weights.
    ///
    /// # Panics
    ///
    /// If the copies are not of the case's weights.
    #[must_use]
    pub fn new(case: &Case, copies: &'a Copies) -> Self {
        assert_eq!(copies.get(0).len(), case.bytes.len(), "copies of the case's weights");
        let mut x = vec![0; Format::Q8_0.matrix_bytes(1, case.columns).expect("whole blocks")];
        quantize(&case.x, &mut x);
        let kernels = Kernels::of(case.format);
        let row_bytes = case.bytes.len() / case.rows;
        Self { copies, kernels, row_bytes, x, out: vec![f32::NAN; case.rows] }
    }
}

impl Contender for Gemv<'_> {
    fn name(&self) -> String {
        format!("ggml, {}, {}", level(), self.copies.kind().name())
    }

    fn side(&self) -> Side {
        Side::Peer
    }

    fn run(&mut self, copy: usize) {
        let columns = (self.x.len() / Format::Q8_0.block_bytes() * 32) as i32;
        let rows = self.copies.get(copy).chunks_exact(self.row_bytes);
        let x = self.x.as_ptr().cast();
        for (row, out) in rows.zip(&mut self.out) {
            // SAFETY: the row and `x` hold `columns` elements in the formats that the kernel is for (`new` made
            // both), and `out` is one float.
            unsafe { (self.kernels.vec_dot)(columns, out, 0, row.as_ptr().cast(), 0, x, 0, 1) };
        }
    }

    fn answer(&self) -> Vec<f32> {
        self.out.clone()
    }

    fn agreement(&self) -> Agreement {
        // Another order of summation, over at most 128 blocks.
        Agreement::Within(1e-4)
    }
}

/// ggml's quantizer of activations.
pub struct Quantize {
    values: Vec<f32>,
    bytes: Vec<u8>,
}

impl Quantize {
    /// The quantizer of `len` activations.
    ///
    /// # Panics
    ///
    /// If they are no whole number of blocks.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; Format::Q8_0.matrix_bytes(1, len).expect("whole blocks")];
        Self { values: crate::quantize::activations(len), bytes }
    }
}

impl Contender for Quantize {
    fn name(&self) -> String {
        format!("ggml, {}", level())
    }

    fn side(&self) -> Side {
        Side::Peer
    }

    fn run(&mut self, _copy: usize) {
        quantize(&self.values, &mut self.bytes);
    }

    fn answer(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.values.len()];
        let blocks = bytemuck::cast_slice(&self.bytes);
        ck_quant::q8_0::dequantize_row(blocks, &mut values).expect("as many blocks as values");
        values
    }

    fn agreement(&self) -> Agreement {
        Agreement::Bits
    }
}
