//! A system that refuses memory: packing and quantizing are errors, and nothing else is lost.
//!
//! The limit holds for the whole process, so the test runs itself again in a child.

#![cfg(target_os = "linux")]

use ck_quant::{Format, Matrix, PackedMatrix, QuantError, QuantizedVector};
use ck_testing::run::SLOW;
use std::process::Command;

/// Set in the child.
const IN_CHILD: &str = "CK_REFUSE_MEMORY";

/// What the child says first.
const STARTED: &str = "the child runs";

/// Address space that the child may use beyond what it has; less than the matrix takes.
const MORE: u64 = 16 << 20;

/// Rows and columns of a matrix of 46 MB.
const SIZES: (usize, usize) = (4096, 16384);

/// Lets this process use at most [`MORE`] bytes of address space more than it does.
fn limit_address_space() {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    let limit = pages * 4096 + MORE;
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: the call reads the structure that the reference points to.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// What the child does.
fn pack_in_little_memory() {
    println!("{STARTED}");
    let (rows, columns) = SIZES;
    let bytes = vec![0; Format::Q5_0.matrix_bytes(rows, columns).unwrap()];
    let large = Matrix::new(Format::Q5_0, rows, columns, &bytes).unwrap();
    let small = Matrix::new(Format::Q5_0, 16, columns, &bytes[..bytes.len() / 256]).unwrap();
    // Their blocks take 21 MB. The numbers themselves are never looked at.
    let numbers = vec![0.0; 20_000_000];
    limit_address_space();
    if Vec::<u8>::new().try_reserve_exact(bytes.len()).is_ok() {
        // User-mode emulators have no limits of their own.
        println!("this system does not hold a limit of the address space");
        return;
    }
    for _ in 0..3 {
        let error = PackedMatrix::pack(large).unwrap_err();
        assert!(matches!(error, QuantError::Allocation { .. }), "{error}");
        assert!(QuantizedVector::zeros(rows * columns).is_err());
    }
    let error = Format::Q8_0.quantize(&numbers).unwrap_err();
    assert!(matches!(error, QuantError::Allocation { .. }), "{error}");
    let packed = PackedMatrix::pack(small).unwrap();
    assert_eq!(packed.rows(), 16, "what fits is packed");
}

#[test]
fn memory_that_is_refused_is_an_error() {
    if std::env::var_os(IN_CHILD).is_some() {
        return pack_in_little_memory();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory_that_is_refused_is_an_error", "--nocapture", "--test-threads=1"])
        .env(IN_CHILD, "1")
        // One arena for all threads: else each reserves address space of its own.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    print!("{said}");
    if !said.contains(STARTED) && std::env::var_os(SLOW).is_some() {
        println!("an emulator of another architecture does not start programs out of programs");
        return;
    }
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}
