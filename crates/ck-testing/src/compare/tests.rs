use super::*;

const NAN: f32 = f32::NAN;

#[test]
fn equal_bits_pass_nan_and_emptiness_included() {
    assert_bits_eq("empty", &[], &[]);
    assert_bits_eq("nan", &[NAN, -0.0], &[NAN, -0.0]);
}

#[test]
fn bits_tell_zeros_and_nans_apart_and_all_differences_are_counted() {
    assert!(check_bits(&[0.0], &[-0.0]).is_err());
    assert!(check_bits(&[NAN], &[f32::from_bits(0x7FC0_0001)]).is_err());
    assert!(check_bits(&[1.0], &[1.0f32.next_up()]).is_err());
    let report = check_bits(&[0.0; 20], &[1.0; 20]).expect_err("all differ");
    assert!(report.starts_with("20 of 20 elements differ\n  [0] got 0e0 (00000000)"), "{report}");
    assert!(report.contains("expected 1e0 (3f800000)"), "{report}");
    assert!(report.ends_with("and 12 more, the last at 19"), "{report}");
    assert_eq!(report.matches('[').count(), SHOWN);
    let one = check_bits(&[1.0, 2.0, 3.0], &[1.0, 2.5, 3.0]).expect_err("one differs");
    assert!(one.starts_with("1 of 3") && one.contains("[1]"), "{one}");
}

#[test]
fn lengths_that_differ_are_a_difference() {
    assert!(check_bits(&[], &[1.0]).is_err());
    assert!(check_within(&[1.0, 1.0], &[1.0], &[1.0]).is_err());
    assert!(check_within(&[1.0], &[1.0], &[]).is_err());
}

#[test]
fn within_holds_at_the_bound_and_fails_beyond() {
    assert_within("at the bound", &[1.5, 0.0], &[1.0, 0.0], &[0.5, 0.0]);
    assert!(check_within(&[1.5f32.next_up()], &[1.0], &[0.5]).is_err());
    assert!(check_within(&[f32::from_bits(1)], &[0.0], &[0.0]).is_err());
}

#[test]
fn within_accepts_nothing_that_is_not_a_number() {
    let infinity = f32::INFINITY;
    for (got, expected, bound) in [
        (NAN, 1.0, 1.0),
        (1.0, f64::NAN, 1.0),
        (NAN, f64::NAN, 1.0),
        (1.0, 1.0, f64::NAN),
        (1.0, 1.0, f64::INFINITY),
        (1.0, 1.0, -1.0),
        (infinity, f64::INFINITY, 1.0),
        (infinity, 1.0, f64::INFINITY),
    ] {
        assert!(check_within(&[got], &[expected], &[bound]).is_err(), "{got} {expected} {bound}");
    }
}

#[test]
fn a_huge_row_hides_no_error_of_another() {
    let recorded = [1e6, -2e6, 1.0, 2.0, 4.0, 3.0];
    let got = [1e6f32, -2e6, 1.0, 2.0, 4.0, 3.5];
    let error = max_rel_err(&got, &recorded, 2);
    assert_eq!(error, RelativeError { value: 0.125, row: 2, column: 1 });
    assert_eq!(max_rel_err(&recorded, &recorded, 3).value, 0.0);
}

#[test]
fn the_divisor_is_a_magnitude() {
    assert_eq!(max_rel_err(&[-4.0f32, 0.5], &[-4.0, 1.0], 2).value, 0.125);
}

#[test]
fn a_row_of_zeros_must_be_met() {
    assert_eq!(max_rel_err(&[-0.0f32, 0.0], &[0.0, 0.0], 2).value, 0.0);
    let error = max_rel_err(&[0.0, f32::from_bits(1)], &[0.0, 0.0], 2);
    assert_eq!(error, RelativeError { value: f64::INFINITY, row: 0, column: 1 });
}

#[test]
fn nothing_non_finite_passes_the_metric_wherever_it_is() {
    for bad in [NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for place in 0..4 {
            let good = [1.0f32, 2.0, 3.0, 4.0];
            let mut broken = good;
            broken[place] = bad;
            let expected =
                RelativeError { value: f64::INFINITY, row: place / 2, column: place % 2 };
            assert_eq!(max_rel_err(&broken, &good, 2), expected);
            let in_recording = max_rel_err(&good, &broken, 2);
            assert_eq!((in_recording.value, in_recording.row), (f64::INFINITY, place / 2));
            let both = max_rel_err(&broken, &broken, 2);
            assert_eq!((both.value, both.row), (f64::INFINITY, place / 2));
            for (got, recorded, input) in
                [(&broken, &good, &[0.0; 4]), (&good, &broken, &[0.0; 4]), (&good, &good, &broken)]
            {
                let error = max_rel_err_of_output(got, recorded, input, 2);
                assert_eq!((error.value, error.row), (f64::INFINITY, place / 2));
            }
        }
    }
}

#[test]
fn the_output_is_judged_by_what_the_block_added() {
    // The block added 1 and 2 to a residual of 1000. One ulp of 1002 is 2^-14.
    let input = [1000.0f32, 1000.0];
    let recorded = [1001.0f32, 1002.0];
    let one_ulp = 1002.0 + 2f32.powi(-14);
    assert_eq!(max_rel_err_of_output(&[1001.0, one_ulp], &recorded, &input, 2).value, 0.0);
    let got = [1001.0, 1002.0 + 3.0 * 2f32.powi(-14)];
    let error = max_rel_err_of_output(&got, &recorded, &input, 2);
    assert_eq!(error, RelativeError { value: 2f64.powi(-14), row: 0, column: 1 });
    // A block that added nothing: an ulp is forgiven, more is not.
    assert_eq!(max_rel_err_of_output(&input, &input, &input, 2).value, 0.0);
    let two_ulps = [1000.0f32.next_up().next_up(), 1000.0];
    assert_eq!(max_rel_err_of_output(&two_ulps, &input, &input, 2).value, f64::INFINITY);
}

#[test]
fn the_ulp_is_the_spacing_above() {
    assert_eq!(ulp(1.0), f64::from(f32::EPSILON));
    assert_eq!(ulp(0.0), f64::from(f32::from_bits(1)));
    assert_eq!(ulp(-1002.0), 2f64.powi(-14));
    assert_eq!(ulp(f32::MAX), 2f64.powi(104));
}

#[test]
fn nothing_to_compare_is_no_success() {
    assert!(std::panic::catch_unwind(|| max_rel_err::<f32>(&[], &[], 1)).is_err());
    assert!(std::panic::catch_unwind(|| Failures::default().assert_none()).is_err());
}

#[test]
fn failures_report_every_failing_case() {
    let mut failures = Failures::default();
    failures.add("first", check_bits(&[1.0], &[2.0]));
    failures.add("second", Ok(()));
    failures.add("third", check_bits(&[3.0], &[4.0]));
    let panic = std::panic::catch_unwind(|| failures.assert_none()).expect_err("two failed");
    let text = panic.downcast_ref::<String>().expect("a message");
    assert!(text.starts_with("2 of 3 cases failed\nfirst: "), "{text}");
    assert!(text.contains("\nthird: ") && !text.contains("second"), "{text}");
}

#[test]
fn a_digest_is_that_of_the_bytes_and_sees_every_bit_and_the_order() {
    // A zero byte multiplies by the prime.
    let zero = (0..4).fold(digest(&[]), |hash: u64, _| hash.wrapping_mul(0x0100_0000_01b3));
    assert_eq!(digest(&[0.0]), zero);
    for (one, other) in
        [([0.0, 1.0], [-0.0, 1.0]), ([1.0, 2.0], [2.0, 1.0]), ([NAN, 0.0], [-NAN, 0.0])]
    {
        assert_ne!(digest(&one), digest(&other), "{one:?} {other:?}");
    }
}

#[test]
fn a_pinned_digest_holds_on_every_level_or_panics_with_the_new_one() {
    let result = |level: &str| vec![if level == "wide" { 1.5f32.next_up() } else { 1.5 }];
    assert_pinned("one", ["scalar"], digest(&[1.5]), result);
    for levels in [&["scalar", "wide"][..], &[]] {
        let pinned = std::panic::catch_unwind(|| {
            assert_pinned("one", levels.iter().copied(), digest(&[1.5]), result);
        });
        assert!(pinned.is_err(), "{levels:?}");
    }
}
