//! Errors on a team: found before any work, or within a dispatch; nothing has changed afterwards.

use super::team::{LARGEST, Run, name, runners, stored};
use crate::sample::Sample;
use ck_fused::{DecodeContext, LayerError, Runner, Scratch, Strategy};
use ck_ops::KvCache;
use ck_quant::Isa;
use ck_testing::compare::{Failures, check_bits};
use ck_threadpool::ThreadPool;

#[test]
fn a_scratch_for_a_smaller_team_is_refused() {
    let pool = ThreadPool::new(3).unwrap();
    let sample = Sample::small(1);
    let layer = sample.layer();
    let mut cache = KvCache::<f32>::with_capacity(sample.shape().cache().unwrap(), 4).unwrap();
    let rope = sample.table(4);
    let mut hidden = sample.input(0);
    for &strategy in super::team::PARALLEL {
        let mut scratch = Scratch::for_team(sample.shape(), 4, 2).unwrap();
        let context =
            DecodeContext { rope: rope.as_ref(), cache: &mut cache, scratch: &mut scratch };
        let runner = Runner::new(Isa::detect(), &pool).with_strategy(strategy);
        let error = layer.decode_in_place(&runner, context, &mut hidden).unwrap_err();
        assert_eq!(error, LayerError::Team { expected: 3, found: 2 }, "{strategy}");
    }
    assert_eq!((cache.len(), hidden), (0, sample.input(0)));
    let none = Scratch::<f32>::for_team(sample.shape(), 4, 0);
    assert!(matches!(none, Err(LayerError::Zero { .. })), "{none:?}");
}

/// A sample one of whose biases overflows when it is added, on one row alone.
fn overflowing(bias: &str, row: usize) -> Sample {
    let mut sample = Sample::small(5);
    let weights = &mut sample.weights;
    let projection = match bias {
        "q" => &mut weights.q,
        "k" => &mut weights.k,
        "v" => &mut weights.v,
        _ => &mut weights.o,
    };
    let rows = projection.rows();
    let biases = projection.bias.get_or_insert_with(|| vec![0.0; rows]);
    // Finite, as a bias must be, and beyond every score, sum and scale.
    biases[row % rows] = f32::MAX;
    sample
}

#[test]
fn an_error_within_a_dispatch_leaves_no_trace_and_the_next_call_is_right() {
    let pool = ThreadPool::new(LARGEST).unwrap();
    let good = Sample::small(5);
    let good_layer = good.layer();
    let mut run = Run::<f32>::new(&good, 260, 262);
    let right = run.sequence(&good, &good_layer, &Runner::serial(Isa::Scalar), 1);
    for bias in ["q", "k", "v"] {
        for row in [0, 31, 63, 127] {
            let bad = overflowing(bias, row);
            let bad_layer = bad.layer();
            for runner in runners(&pool).filter(|runner| runner.isa() == Isa::detect()) {
                let mut run = Run::<f32>::new(&good, 260, 262);
                let before = stored(&run.cache);
                let result = run.decode(&bad_layer, &runner, &good.input(0));
                let error = result.expect_err("a number beyond every range");
                assert!(!matches!(error, LayerError::Interrupted(_)), "{}", name(&runner));
                assert!(stored(&run.cache) == before, "{bias} {row}: {}", name(&runner));
                let after = run.sequence(&good, &good_layer, &runner, 1);
                assert!(after == right, "{bias} {row}: {}", name(&runner));
            }
        }
    }
}

/// What a failed call leaves in the scratch means nothing to any other strategy or team: memory that one of them
/// never writes must not be read by it either.
#[test]
fn a_scratch_that_failed_in_one_setup_serves_every_other() {
    let pool = ThreadPool::new(LARGEST).unwrap();
    let good = Sample::small(6);
    let good_layer = good.layer();
    let right = Run::<f32>::new(&good, 9, 10)
        .decode(&good_layer, &Runner::serial(Isa::Scalar), &good.input(0))
        .unwrap();
    // Values that attention bears and the O projection does not: the heads' results are left behind.
    let mut bad = good.clone();
    bad.weights.v.bias.as_mut().expect("a bias").fill(1e30);
    let bad_layer = bad.layer();
    let setups = || runners(&pool).filter(|runner| runner.isa() == Isa::detect());
    let mut failures = Failures::default();
    for failing in setups() {
        let mut run = Run::<f32>::new(&good, 9, 10);
        for runner in setups() {
            run.decode(&bad_layer, &failing, &good.input(1)).expect_err("a scale beyond f16");
            let got = run.decode(&good_layer, &runner, &good.input(0));
            run.cache.truncate(9);
            let compared =
                got.map_err(|error| error.to_string()).and_then(|got| check_bits(&got, &right));
            failures.add(format!("{} after {}", name(&runner), name(&failing)), compared);
        }
    }
    failures.assert_none();
}

#[test]
fn errors_do_not_depend_on_the_team() {
    let pool = ThreadPool::new(LARGEST).unwrap();
    let bad = overflowing("v", 40);
    let layer = bad.layer();
    let mut messages: Vec<String> = runners(&pool)
        .filter(|runner| runner.strategy() == Strategy::Barrier)
        .map(|runner| {
            let mut run = Run::<f32>::new(&bad, 20, 21);
            run.decode(&layer, &runner, &bad.input(0)).unwrap_err().to_string()
        })
        .collect();
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
}
