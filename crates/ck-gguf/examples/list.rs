//! Prints the metadata and the tensors of a GGUF file: `cargo run -p ck-gguf --example list -- [FILE]`. Without a file it
//! takes the first of the recorded layers of the repository.

use ck_gguf::GgufFile;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    match list() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn list() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let recorded = || ck_testing::golden::golden_files().into_iter().next();
    let path = given.or_else(recorded).ok_or("expected the path of a GGUF file")?;
    // Read rather than mapped: a tool cannot promise that nobody writes to a file it was told to open.
    let bytes = std::fs::read(path)?;
    let file = GgufFile::parse(&bytes)?;

    println!("version {}, tensor data aligned to {} bytes", file.version(), file.alignment());
    for (key, value) in file.metadata().iter() {
        println!("{key}: {value}");
    }
    for tensor in file.tensors() {
        let (name, dims) = (tensor.name(), format!("{:?}", tensor.dims()));
        println!(
            "{name:40} {:8} {dims:16} {:>12} bytes",
            tensor.tensor_type(),
            tensor.bytes().len()
        );
    }
    Ok(())
}
