//! A row-split matrix-vector product: every member computes its own rows of the output.
//!
//!     cargo run --release -p ck-threadpool --example matvec

use ck_threadpool::{SharedSlice, ThreadPool};
use std::time::Instant;

const ROWS: usize = 2048;
const COLUMNS: usize = 2048;

/// `y = matrix * x`, rows split among the members.
fn product(pool: &ThreadPool, members: usize, matrix: &[f32], x: &[f32], y: &mut [f32]) {
    // Blocks of 16 rows: a cache line of the output belongs to one member.
    let out = SharedSlice::in_blocks(y, 16);
    pool.run_on(members, |team| {
        let rows = out.range(team);
        let matrix = &matrix[rows.start * COLUMNS..rows.end * COLUMNS];
        for (y, row) in out.part(team).iter_mut().zip(matrix.chunks_exact(COLUMNS)) {
            *y = row.iter().zip(x).map(|(a, b)| a * b).sum();
        }
    });
}

fn main() -> Result<(), ck_threadpool::BuildError> {
    let pool = ThreadPool::new(ck_threadpool::available_cpus())?;
    let matrix: Vec<f32> = (0..ROWS * COLUMNS).map(|i| (i % 7) as f32 - 3.0).collect();
    let x: Vec<f32> = (0..COLUMNS).map(|i| (i % 5) as f32).collect();
    let mut serial = vec![0.0; ROWS];
    let mut parallel = vec![0.0; ROWS];
    for members in 1..=pool.threads() {
        product(&pool, members, &matrix, &x, &mut parallel);
        let start = Instant::now();
        for _ in 0..20 {
            product(&pool, members, &matrix, &x, &mut parallel);
        }
        println!("team of {members}: {:?} a product", start.elapsed() / 20);
        if members == 1 {
            serial.copy_from_slice(&parallel);
        }
        assert!(serial.iter().zip(&parallel).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
    Ok(())
}
