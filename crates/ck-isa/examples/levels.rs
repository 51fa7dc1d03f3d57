//! The SIMD levels that this CPU has, what each of the others lacks, and one multiply-add.
//!
//!     cargo run -p ck-isa --example levels

use ck_isa::{Features, Isa, Level};

fn main() {
    let features = Features::detect();
    for level in Level::ALL {
        match Isa::with_level(level) {
            Ok(isa) => println!("{isa:12} may run here"),
            Err(error) => {
                let lacking = level.features().iter().filter(|name| !features.has(name));
                println!("{level:12} lacks {}", lacking.copied().collect::<Vec<_>>().join(", "));
                println!("{:12} (the error: {error})", "");
            }
        }
    }
    println!("best: {}", Isa::detect());

    // 1 + 2^-12 squared needs 25 bits: rounded once, the last of them survives the subtraction.
    let x = 1.0 + 2f32.powi(-12);
    let (fused, separate) = (ck_isa::fma(x, x, -1.0), x * x - 1.0);
    println!("x * x - 1, rounded once: {fused:e}; rounded twice: {separate:e}");
    assert_ne!(fused, separate);
}
