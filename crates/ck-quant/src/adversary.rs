//! Programs that safe code might try and that must not compile. Only doc tests see this file; the first
//! example of each item compiles, so that the second fails for the line that differs.

/// A view lives no longer than its bytes.
///
/// ```
/// # use ck_quant::{Format, Matrix};
/// let bytes = Format::Q8_0.quantize(&[0.5; 32]).unwrap();
/// let matrix = Matrix::new(Format::Q8_0, 1, 32, &bytes).unwrap();
/// assert_eq!(matrix.rows(), 1);
/// drop(bytes);
/// ```
///
/// ```compile_fail,E0505
/// # use ck_quant::{Format, Matrix};
/// let bytes = Format::Q8_0.quantize(&[0.5; 32]).unwrap();
/// let matrix = Matrix::new(Format::Q8_0, 1, 32, &bytes).unwrap();
/// drop(bytes);
/// assert_eq!(matrix.rows(), 1);
/// ```
struct OutlivesItsBytes;

/// A level is detected, never made up.
///
/// ```
/// # use ck_quant::Isa;
/// assert!(Isa::available().any(|isa| isa == Isa::Scalar));
/// ```
///
/// ```compile_fail,E0423
/// # use ck_quant::Isa;
/// assert!(Isa::available().any(|isa| isa == Isa::Avx2(ck_isa::Avx2(()))));
/// ```
struct ForgesAToken;
