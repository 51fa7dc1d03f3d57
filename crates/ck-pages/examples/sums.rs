//! One sum over numbers in large pages and in whatever a `Vec` gives, with the time of both.
//!
//!     cargo run --release -p ck-pages --example sums

use ck_pages::{PagesError, ZeroedSlice};
use std::time::Instant;

/// 64 MiB: more than most caches hold.
const LEN: usize = 16 << 20;

fn main() -> Result<(), PagesError> {
    let mut pages = ZeroedSlice::<f32>::new(LEN)?;
    let mut plain = vec![0.0f32; LEN];
    for (index, (a, b)) in pages.iter_mut().zip(&mut plain).enumerate() {
        *a = (index % 7) as f32;
        *b = *a;
    }
    let sums = [("large pages", &pages[..]), ("a vector", &plain[..])].map(|(name, numbers)| {
        let start = Instant::now();
        // Sixteen sums side by side, so that memory is what is waited for.
        let mut sums = [0.0f32; 16];
        for chunk in numbers.chunks_exact(16) {
            sums.iter_mut().zip(chunk).for_each(|(sum, number)| *sum += number);
        }
        println!("{name}: {:?} at {:p}", start.elapsed(), numbers.as_ptr());
        sums
    });
    assert_eq!(sums[0], sums[1]);

    let error = ZeroedSlice::<f32>::new(usize::MAX).unwrap_err();
    println!("too much: {error}");
    Ok(())
}
