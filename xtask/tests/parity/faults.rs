//! Recordings that agree pass, and one wrong number in any of them does not.

use crate::recording::Recording;
use crate::run::{Run, SCALAR};
use ck_testing::generate::Biases;
use ck_testing::oracle::{Pairing, Rope, Shape};
use serde_json::Value;

#[test]
fn a_recording_of_the_oracle_passes_and_the_json_says_so() {
    let golden = Recording::small().write("agrees.gguf");
    let run = Run::new("agrees", &golden, &["--threads", "1,2"]);
    assert_eq!(run.status, Some(0), "{}{}", run.stdout, run.stderr);
    let json = run.json.as_ref().expect("a JSON file");
    let mut keys: Vec<_> = json.as_object().expect("an object").keys().collect();
    keys.sort();
    assert_eq!(keys, ["cases", "ok"]);
    assert_eq!(json["ok"], true);
    let mut seen = Vec::new();
    for case in run.cases() {
        let mut keys: Vec<_> = case.as_object().expect("an object").keys().collect();
        keys.sort();
        let expected = [
            "bound",
            "golden",
            "isa",
            "kv",
            "max_rel_err",
            "mode",
            "ok",
            "stage",
            "strategy",
            "threads",
        ];
        assert_eq!(keys, expected);
        assert_eq!(case["golden"], "agrees.gguf");
        assert_eq!(case["ok"], true);
        let (error, bound) = (case["max_rel_err"].as_f64(), case["bound"].as_f64());
        assert!(error.expect("a number") <= bound.expect("a number"), "{case}");
        let text = |key: &str| case[key].as_str().expect("text").to_owned();
        let (mode, stage) = (text("mode"), text("stage"));
        match &mode[..] {
            "fed" => {
                assert_eq!((&case["strategy"], &case["threads"]), (&"serial".into(), &1.into()))
            }
            "end_to_end" => assert_eq!(stage, "output"),
            "bits" => assert_eq!((error, bound), (Some(0.0), Some(0.0))),
            other => panic!("mode {other}"),
        }
        if text("isa") == "scalar" && text("strategy") == "serial" && text("kv") == "f32" {
            seen.push((mode, stage));
        }
    }
    let expected = [
        ("fed", "norm"),
        ("fed", "q"),
        ("fed", "k"),
        ("fed", "v"),
        ("fed", "attn"),
        ("fed", "output"),
        ("end_to_end", "output"),
        ("bits", "output"),
    ];
    seen.sort();
    let mut expected = expected.map(|(mode, stage)| (mode.to_owned(), stage.to_owned()));
    expected.sort();
    assert_eq!(seen, expected);
}

/// Contexts of two chunks, and heads of 96 and 128 that are wider together than the embedding or as wide
/// as it.
#[test]
fn long_recordings_of_other_shapes_pass() {
    for (head_dim, pairing, biases) in
        [(96, Pairing::SplitHalf, Biases::QKV), (128, Pairing::Interleaved, Biases::NONE)]
    {
        let shape = Shape { embed_dim: 512, n_heads: 6, n_kv_heads: 3, head_dim };
        let rope = Rope::new(pairing, head_dim, 1e4);
        let name = format!("long-{head_dim}");
        let golden = Recording::new(shape, rope, biases, 300).write(&format!("{name}.gguf"));
        let run = Run::new(&name, &golden, &SCALAR);
        assert_eq!(run.status, Some(0), "{}{}", run.stdout, run.stderr);
        assert_eq!(run.cases().len(), 8);
    }
}

/// A number of a recorded stage is changed by 1e-4 of its row's largest: only the stages that the number belongs
/// to fail.
#[test]
fn one_wrong_number_of_any_stage_fails() {
    for (stage, fed) in [
        ("norm", &["norm", "q", "k", "v"][..]),
        ("q", &["q", "attn"]),
        ("k", &["k", "attn"]),
        ("v", &["v", "attn"]),
        ("attn", &["attn", "output"]),
        ("output", &["output"]),
        ("input", &["norm", "output"]),
    ] {
        let mut recording = Recording::small();
        let rows = recording.stage(stage);
        // The last element of the last token, so that a comparison that ends early would not see it.
        let last = rows.last_mut().expect("elements");
        *last += 0.05;
        let name = format!("wrong-{stage}");
        let run = Run::new(&name, &recording.write(&format!("{name}.gguf")), &SCALAR);
        assert_eq!(run.status, Some(1), "{stage}: {}{}", run.stdout, run.stderr);
        assert_eq!(run.json.as_ref().map(|json| &json["ok"]), Some(&Value::Bool(false)));
        let failed: Vec<_> = run.failed().into_iter().filter(|(mode, _)| mode == "fed").collect();
        assert!(failed.contains(&("fed".to_owned(), stage.replace("input", "norm"))), "{failed:?}");
        assert!(failed.iter().all(|(_, stage)| fed.contains(&&stage[..])), "{stage}: {failed:?}");
        assert!(run.stdout.contains("FAILED"), "{}", run.stdout);
    }
}

#[test]
fn a_recorded_nan_fails_and_its_error_is_null() {
    for (stage, value) in [("norm", f32::NAN), ("v", f32::INFINITY), ("output", f32::NAN)] {
        let mut recording = Recording::small();
        recording.stage(stage)[70] = value;
        let name = format!("nan-{stage}");
        let run = Run::new(&name, &recording.write(&format!("{name}.gguf")), &SCALAR);
        assert_eq!(run.status, Some(1), "{}{}", run.stdout, run.stderr);
        let of_stage = |case: &&Value| case["mode"] == "fed" && case["stage"] == stage;
        let case = run.cases().iter().find(of_stage).expect("the stage");
        assert_eq!((&case["max_rel_err"], &case["ok"]), (&Value::Null, &Value::Bool(false)));
    }
}

/// What the weights, the rotation and the norm do wrong is seen by the stage that they belong to.
#[test]
fn another_layer_than_the_recorded_one_fails() {
    type Change = fn(&mut Recording);
    let changes: [(&str, Change, &[&str]); 9] = [
        ("eps", |r| r.weights.eps *= 2.0, &["norm"]),
        ("gamma", |r| r.weights.gamma[63] *= 1.001, &["norm"]),
        ("bias-q", |r| r.weights.q.bias.as_mut().expect("a bias").fill(0.0), &["q"]),
        ("bias-k", |r| r.weights.k.bias.as_mut().expect("a bias")[63] += 1e-3, &["k"]),
        ("bias-v", |r| r.weights.v.bias.as_mut().expect("a bias")[0] += 1e-3, &["v"]),
        ("quant-v", |r| *r.weights.v.bytes.last_mut().expect("bytes") ^= 1, &["v"]),
        ("quant-o", |r| *r.weights.o.bytes.last_mut().expect("bytes") ^= 0x10, &["output"]),
        ("base", |r| r.rope.base = 9.99e5, &["q", "k"]),
        ("width", |r| r.rope.width = 30, &["q", "k"]),
    ];
    for (what, change, expected) in changes {
        let mut recording = Recording::small();
        change(&mut recording);
        let name = format!("other-{what}");
        let run = Run::new(&name, &recording.write(&format!("{name}.gguf")), &SCALAR);
        assert_eq!(run.status, Some(1), "{what}: {}{}", run.stdout, run.stderr);
        let failed: Vec<String> = run
            .failed()
            .into_iter()
            .filter_map(|(mode, stage)| (mode == "fed").then_some(stage))
            .collect();
        assert_eq!(failed, expected, "{what}");
    }
}
