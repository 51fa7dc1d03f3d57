//! Every file of `corpus/` passes its target's check.

use std::fs;
use std::path::Path;

#[test]
fn every_seed_and_every_former_finding_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, check) in ck_fuzz::TARGETS {
        let files: Vec<_> = fs::read_dir(corpus.join(name)).unwrap().collect();
        assert!(files.len() >= 3, "{name} has {} seeds", files.len());
        for file in files {
            let path = file.unwrap().path();
            println!("{}", path.display());
            check(&fs::read(&path).unwrap());
        }
    }
}
