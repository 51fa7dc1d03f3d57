//! A graph of ggml, built once and computed again and again on other copies of its data.
//!
//! Intermediate tensors get their memory from ggml's own graph allocator, as in llama.cpp. Weights and caches are
//! *outside* tensors: their data is a slice of this project's, which is set anew before a graph is computed.

use llama_cpp_sys_2 as sys;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::rc::Rc;

/// A tensor of a graph. It is only good for the [`Builder`] that it came from, which is why this module is
/// private to the contenders that have one builder each.
#[derive(Clone, Copy)]
pub(super) struct Tensor(NonNull<sys::ggml_tensor>);

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `f32`.
    F32,
    /// `f16`.
    F16,
    /// `i32`.
    I32,
    /// Q5_0 blocks.
    Q5_0,
    /// Q8_0 blocks.
    Q8_0,
}

impl Kind {
    fn ggml(self) -> sys::ggml_type {
        match self {
            Self::F32 => sys::GGML_TYPE_F32,
            Self::F16 => sys::GGML_TYPE_F16,
            Self::I32 => sys::GGML_TYPE_I32,
            Self::Q5_0 => sys::GGML_TYPE_Q5_0,
            Self::Q8_0 => sys::GGML_TYPE_Q8_0,
        }
    }
}

/// ggml's threads: persistent, and polling for work.
pub struct Threads {
    pool: NonNull<sys::ggml_threadpool>,
    count: usize,
}

impl Threads {
    /// `count` threads, the caller among them, with ggml's default settings.
    ///
    /// # Panics
    ///
    /// If ggml gives none.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let number = i32::try_from(count).expect("a small number");
        // SAFETY: it only fills a struct.
        let mut params = unsafe { sys::ggml_threadpool_params_default(number) };
        // SAFETY: the parameters are ggml's own and live through the call.
        let pool = unsafe { sys::ggml_threadpool_new(&raw mut params) };
        Self { pool: NonNull::new(pool).expect("ggml's threads"), count }
    }

    /// Lets them poll.
    pub fn resume(&self) {
        // SAFETY: the pool lives as long as `self`.
        unsafe { sys::ggml_threadpool_resume(self.pool.as_ptr()) };
    }

    /// Sends them to sleep.
    pub fn pause(&self) {
        // SAFETY: the pool lives as long as `self`.
        unsafe { sys::ggml_threadpool_pause(self.pool.as_ptr()) };
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // SAFETY: the pool is live, and no graph is computed now, since that borrows a graph that keeps `self`.
        unsafe { sys::ggml_threadpool_free(self.pool.as_ptr()) };
    }
}

/// The most tensors of a graph; the attention block has some fifty.
const TENSORS: usize = 128;

/// What a graph is built in.
pub(super) struct Builder {
    context: NonNull<sys::ggml_context>,
    outside: Vec<Outside>,
    made: Vec<Tensor>,
}

/// A tensor whose data is this project's.
#[derive(Clone, Copy)]
struct Outside {
    tensor: Tensor,
    /// Whether the graph writes to it.
    written: bool,
}

impl Builder {
    /// A builder without tensors.
    ///
    /// # Panics
    ///
    /// If ggml has no memory for it.
    #[must_use]
    pub(super) fn new() -> Self {
        // SAFETY: it has no precondition; it fills ggml's tables, once.
        unsafe { sys::ggml_cpu_init() };
        // SAFETY: it has no precondition.
        let tensor = unsafe { sys::ggml_tensor_overhead() };
        // SAFETY: it has no precondition.
        let graph = unsafe { sys::ggml_graph_overhead_custom(TENSORS, false) };
        let mem_size = TENSORS * tensor + graph;
        let mem_buffer = std::ptr::null_mut();
        let params = sys::ggml_init_params { mem_size, mem_buffer, no_alloc: true };
        // SAFETY: without a buffer ggml allocates the size by itself.
        let context = NonNull::new(unsafe { sys::ggml_init(params) }).expect("ggml's context");
        Self { context, outside: Vec::new(), made: Vec::new() }
    }

    /// Keeps account of a tensor that ggml made in this context.
    fn made(&mut self, tensor: *mut sys::ggml_tensor) -> Tensor {
        // ggml ends the process rather than return null.
        let tensor = Tensor(NonNull::new(tensor).expect("a tensor"));
        self.made.push(tensor);
        tensor
    }

    fn ctx(&self) -> *mut sys::ggml_context {
        self.context.as_ptr()
    }

    /// A tensor whose data is this project's: the next one that [`Graph::compute`] takes a slice for.
    ///
    pub(super) fn outside(&mut self, kind: Kind, columns: usize, rows: usize) -> Tensor {
        self.outside_tensor(kind, columns, rows, false)
    }

    /// The same for a tensor that the graph copies something into: it takes a mutable slice.
    pub(super) fn outside_mut(&mut self, kind: Kind, columns: usize, rows: usize) -> Tensor {
        self.outside_tensor(kind, columns, rows, true)
    }

    fn outside_tensor(&mut self, kind: Kind, columns: usize, rows: usize, written: bool) -> Tensor {
        let [columns, rows] = [columns, rows].map(dimension);
        // SAFETY: the context is live.
        let tensor = unsafe { sys::ggml_new_tensor_2d(self.ctx(), kind.ggml(), columns, rows) };
        let tensor = self.made(tensor);
        // Any address but null tells the allocator that the tensor needs no memory. Nobody reads there: the
        // data is set before anything is computed.
        let placeholder = NonNull::<u64>::dangling().as_ptr().cast::<c_void>();
        // SAFETY: the tensor is live in this context, and nothing else refers to it yet.
        unsafe { (*tensor.0.as_ptr()).data = placeholder };
        self.outside.push(Outside { tensor, written });
        tensor
    }

    /// RMSNorm without weights.
    pub(super) fn rms_norm(&mut self, x: Tensor, eps: f32) -> Tensor {
        // SAFETY: the context is live and the tensor is of it.
        let tensor = unsafe { sys::ggml_rms_norm(self.ctx(), x.0.as_ptr(), eps) };
        self.made(tensor)
    }

    /// Elementwise product.
    pub(super) fn mul(&mut self, a: Tensor, b: Tensor) -> Tensor {
        // SAFETY: the context is live and the tensors are of it.
        let tensor = unsafe { sys::ggml_mul(self.ctx(), a.0.as_ptr(), b.0.as_ptr()) };
        self.made(tensor)
    }

    /// Elementwise sum.
    pub(super) fn add(&mut self, a: Tensor, b: Tensor) -> Tensor {
        // SAFETY: the context is live and the tensors are of it.
        let tensor = unsafe { sys::ggml_add(self.ctx(), a.0.as_ptr(), b.0.as_ptr()) };
        self.made(tensor)
    }

    /// The product of a matrix and one or more vectors.
    pub(super) fn mul_mat(&mut self, matrix: Tensor, x: Tensor) -> Tensor {
        // SAFETY: the context is live and the tensors are of it.
        let tensor = unsafe { sys::ggml_mul_mat(self.ctx(), matrix.0.as_ptr(), x.0.as_ptr()) };
        self.made(tensor)
    }

    /// RoPE of heads at a position, with ggml's mode of pairing and a frequency base.
    pub(super) fn rope(
        &mut self,
        heads: Tensor,
        position: Tensor,
        split_half: bool,
        base: f32,
    ) -> Tensor {
        // The mode for pairs in split halves, which its header calls NEOX, is a macro that has no binding.
        let mode = if split_half { 2 } else { 0 };
        // SAFETY: `heads` is a live tensor.
        let head_dim = unsafe { heads.0.as_ref() }.ne[0];
        // SAFETY: the context is live and the tensors are of it; without frequency factors the third is null.
        let tensor = unsafe {
            sys::ggml_rope_ext(
                self.ctx(),
                heads.0.as_ptr(),
                position.0.as_ptr(),
                std::ptr::null_mut(),
                i32::try_from(head_dim).expect("a small number"),
                mode,
                131_072,
                base,
                1.0,
                0.0,
                1.0,
                32.0,
                1.0,
            )
        };
        self.made(tensor)
    }

    /// The same elements in three dimensions.
    pub(super) fn reshape(&mut self, x: Tensor, [a, b, c]: [usize; 3]) -> Tensor {
        let [a, b, c] = [a, b, c].map(dimension);
        // SAFETY: the context is live and the tensor is of it.
        let tensor = unsafe { sys::ggml_reshape_3d(self.ctx(), x.0.as_ptr(), a, b, c) };
        self.made(tensor)
    }

    /// A view in three dimensions: their sizes, the strides of the second and third, and the offset, in bytes.
    pub(super) fn view(
        &mut self,
        x: Tensor,
        sizes: [usize; 3],
        strides: [usize; 2],
        start: usize,
    ) -> Tensor {
        let ([a, b, c], [second, third]) = (sizes.map(dimension), strides);
        // SAFETY: the context is live and the tensor is of it; ggml asserts that the view is inside.
        let tensor =
            unsafe { sys::ggml_view_3d(self.ctx(), x.0.as_ptr(), a, b, c, second, third, start) };
        self.made(tensor)
    }

    /// The second dimension third and the third one second.
    pub(super) fn swap_outer(&mut self, x: Tensor) -> Tensor {
        // SAFETY: the context is live and the tensor is of it.
        let tensor = unsafe { sys::ggml_permute(self.ctx(), x.0.as_ptr(), 0, 2, 1, 3) };
        self.made(tensor)
    }

    /// The first two dimensions swapped.
    pub(super) fn transpose(&mut self, x: Tensor) -> Tensor {
        // SAFETY: the context is live and the tensor is of it.
        let tensor = unsafe { sys::ggml_transpose(self.ctx(), x.0.as_ptr()) };
        self.made(tensor)
    }

    /// A copy in one piece, as one row.
    pub(super) fn continuous_row(&mut self, x: Tensor, columns: usize) -> Tensor {
        // SAFETY: the context is live and the tensor is of it.
        let tensor = unsafe { sys::ggml_cont_2d(self.ctx(), x.0.as_ptr(), dimension(columns), 1) };
        self.made(tensor)
    }

    /// A copy of `from` into `to`, which may have another type.
    ///
    /// # Panics
    ///
    /// If `to` is no view of a tensor made by [`outside_mut`](Self::outside_mut).
    pub(super) fn copy(&mut self, from: Tensor, to: Tensor) -> Tensor {
        let source = self.source(to).map(|index| self.outside[index].written);
        assert_eq!(source, Some(true), "a graph writes to outside_mut tensors only");
        // SAFETY: the context is live and the tensors are of it.
        let tensor = unsafe { sys::ggml_cpy(self.ctx(), from.0.as_ptr(), to.0.as_ptr()) };
        self.made(tensor)
    }

    /// The softmax of `scale * x + mask`.
    pub(super) fn soft_max(&mut self, x: Tensor, mask: Tensor, scale: f32) -> Tensor {
        let (x, mask) = (x.0.as_ptr(), mask.0.as_ptr());
        // SAFETY: the context is live and the tensors are of it.
        let tensor = unsafe { sys::ggml_soft_max_ext(self.ctx(), x, mask, scale, 0.0) };
        self.made(tensor)
    }

    /// Flash attention, at the precision that llama.cpp asks for.
    pub(super) fn flash_attention(&mut self, [q, k, v, mask]: [Tensor; 4], scale: f32) -> Tensor {
        let [q, k, v, mask] = [q, k, v, mask].map(|tensor| tensor.0.as_ptr());
        // SAFETY: the context is live and the tensors are of it.
        let tensor =
            unsafe { sys::ggml_flash_attn_ext(self.ctx(), q, k, v, mask, scale, 0.0, 0.0) };
        // SAFETY: the tensor was just made by the node that this is about.
        unsafe { sys::ggml_flash_attn_ext_set_prec(tensor, sys::GGML_PREC_F32) };
        self.made(tensor)
    }

    /// The graph that computes `results`, in this order, with the last one as its output.
    ///
    /// # Panics
    ///
    /// Without results, or if ggml has no memory.
    #[must_use]
    pub(super) fn build(mut self, results: &[Tensor], threads: &Rc<Threads>) -> Graph {
        let output = *results.last().expect("a result");
        // SAFETY: the context is live and was made with room for a graph of this size.
        let graph = unsafe { sys::ggml_new_graph_custom(self.ctx(), TENSORS, false) };
        let graph = NonNull::new(graph).expect("a graph");
        // SAFETY: the tensor is of this context.
        unsafe { sys::ggml_set_output(output.0.as_ptr()) };
        for result in results {
            // SAFETY: graph and tensor are of this context.
            unsafe { sys::ggml_build_forward_expand(graph.as_ptr(), result.0.as_ptr()) };
        }
        // SAFETY: it has no precondition.
        let memory = unsafe { sys::ggml_backend_cpu_buffer_type() };
        // SAFETY: the buffer type is ggml's own and static.
        let allocator = unsafe { sys::ggml_gallocr_new(memory) };
        let allocator = NonNull::new(allocator).expect("ggml's allocator");
        // SAFETY: allocator and graph are live.
        let allocated =
            unsafe { sys::ggml_gallocr_alloc_graph(allocator.as_ptr(), graph.as_ptr()) };
        assert!(allocated, "memory for ggml's intermediate results");
        let count = i32::try_from(threads.count).expect("a small number");
        // SAFETY: the graph is live, and so are the threads, which the result keeps.
        let mut plan =
            unsafe { sys::ggml_graph_plan(graph.as_ptr(), count, threads.pool.as_ptr()) };
        let mut work = vec![0u8; plan.work_size + 64];
        let start = work.as_ptr().align_offset(64);
        plan.work_data = work[start..].as_mut_ptr();
        let views = self.made.iter().filter_map(|tensor| Some((*tensor, self.source(*tensor)?)));
        let views = views.collect();
        let outside = std::mem::take(&mut self.outside);
        let threads = Rc::clone(threads);
        Graph {
            _builder: self,
            graph,
            allocator,
            plan,
            _work: work,
            outside,
            views,
            output,
            threads,
        }
    }

    /// The number of the outside tensor that `tensor` is a view of.
    fn source(&self, tensor: Tensor) -> Option<usize> {
        // SAFETY: the tensor is live in this context.
        let source = NonNull::new(unsafe { tensor.0.as_ref() }.view_src)?;
        self.outside.iter().position(|outside| outside.tensor.0 == source)
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        // SAFETY: the context is live, and the graphs in it go with it.
        unsafe { sys::ggml_free(self.context.as_ptr()) };
    }
}

/// A graph, ready to be computed.
pub(super) struct Graph {
    /// What the tensors live in.
    _builder: Builder,
    graph: NonNull<sys::ggml_cgraph>,
    allocator: NonNull<sys::ggml_gallocr>,
    plan: sys::ggml_cplan,
    /// What the plan's pointer points into.
    _work: Vec<u8>,
    outside: Vec<Outside>,
    /// Views of outside tensors, each with the number of its source.
    views: Vec<(Tensor, usize)>,
    output: Tensor,
    threads: Rc<Threads>,
}

impl Graph {
    /// The threads that compute it.
    #[must_use]
    pub(super) fn threads(&self) -> &Threads {
        &self.threads
    }

    /// How many bytes each outside tensor has, in the order in which they were made.
    fn bytes(&self, index: usize) -> usize {
        // SAFETY: the tensor is live in the builder's context.
        unsafe { sys::ggml_nbytes(self.outside[index].tensor.0.as_ptr()) }
    }

    /// Computes the graph on these outside data, in the order in which the tensors were made.
    ///
    /// # Panics
    ///
    /// If there are not as many as there are tensors, or one has too few bytes; if ggml fails.
    pub(super) fn compute(&mut self, data: &[Data<'_>]) {
        assert_eq!(data.len(), self.outside.len(), "data for every outside tensor");
        for (index, data) in data.iter().enumerate() {
            let bytes = self.bytes(index);
            assert!(data.len >= bytes, "tensor {index}: {} bytes of {bytes}", data.len);
            let written = self.outside[index].written;
            assert!(data.mutable || !written, "tensor {index} is written: a mutable slice");
            let tensor = self.outside[index].tensor.0.as_ptr();
            // SAFETY: the tensor is live, and nothing computes now.
            unsafe { (*tensor).data = data.start.as_ptr().cast() };
        }
        for (view, source) in &self.views {
            let view = view.0.as_ptr();
            // SAFETY: the tensor is live.
            let offset = unsafe { (*view).view_offs };
            let start = data[*source].start.as_ptr().wrapping_add(offset);
            // SAFETY: the tensor is live, and nothing computes now.
            unsafe { (*view).data = start.cast() };
        }
        // SAFETY: graph and plan belong together; every tensor has memory: the allocator's, or the data just
        // set, which is borrowed until this returns, is as long as asserted, and is mutable where the graph
        // writes, which is asserted here and in `copy`.
        let status = unsafe { sys::ggml_graph_compute(self.graph.as_ptr(), &raw mut self.plan) };
        assert_eq!(status, sys::GGML_STATUS_SUCCESS, "ggml's status");
    }

    /// The output of the last computation.
    #[must_use]
    pub(super) fn output(&self) -> Vec<f32> {
        // SAFETY: the tensor is live.
        let output = unsafe { self.output.0.as_ref() };
        let len = output.ne.iter().product::<i64>() as usize;
        assert_eq!(output.type_, sys::GGML_TYPE_F32, "the output's type");
        // SAFETY: the allocator gave the tensor memory for its elements, f32 in one piece, which was zero or
        // written; as an output it is not used for anything else.
        unsafe { std::slice::from_raw_parts(output.data.cast::<f32>(), len) }.to_vec()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the allocator is live, and the tensors that use its memory are not used again.
        unsafe { sys::ggml_gallocr_free(self.allocator.as_ptr()) };
    }
}

/// Bytes that a graph computes on.
pub(super) struct Data<'a> {
    start: NonNull<u8>,
    len: usize,
    mutable: bool,
    _borrowed: std::marker::PhantomData<&'a mut [u8]>,
}

impl<'a, T: bytemuck::NoUninit> From<&'a [T]> for Data<'a> {
    fn from(slice: &'a [T]) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(slice);
        let start = NonNull::from(bytes).cast();
        Self { start, len: bytes.len(), mutable: false, _borrowed: std::marker::PhantomData }
    }
}

impl<'a> From<&'a mut [u8]> for Data<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        let len = bytes.len();
        let start = NonNull::from(bytes).cast();
        Self { start, len, mutable: true, _borrowed: std::marker::PhantomData }
    }
}

/// A size as ggml takes it.
fn dimension(size: usize) -> i64 {
    i64::try_from(size).expect("a size below 2^63")
}
