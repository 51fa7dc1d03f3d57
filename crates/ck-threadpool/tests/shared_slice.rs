//! Shared slices: what members get, and every way of misusing them that safe code can write.

#![cfg(not(loom))]

mod common;

use ck_threadpool::{Plan, Planned, SharedSlice, Team, ThreadPool};
use common::HangGuard;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The message of the panic that `call` ends with.
fn message(call: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(call)).expect_err("the misuse went unnoticed");
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast_ref::<&str>().map_or("?", |text| text).to_owned(),
    }
}

// Case B11.
#[test]
fn parts_cover_the_slice_for_any_length_and_any_team() {
    let _guard = HangGuard::seconds("parts", 60);
    for threads in [1, 2, 3, 4, 5, 6, 8, 16] {
        let pool = ThreadPool::new(threads).unwrap();
        for len in [0, 1, 7, 13, 897] {
            for block in [1, 2, 16, 1000] {
                let mut data = vec![f32::NAN; len + 4];
                let canaries = [1.5, 2.5, 3.5, 4.5];
                data[len..].copy_from_slice(&canaries);
                let shared = SharedSlice::in_blocks(&mut data[..len], block);
                pool.run(|team| {
                    let (range, part) = (shared.range(team), shared.part(team));
                    assert_eq!(range.len(), part.len());
                    part.fill(4064.0);
                });
                assert!(data[..len].iter().all(|&value| value == 4064.0));
                assert_eq!(data[len..], canaries);
            }
        }
    }
}

#[test]
fn blocks_go_out_once_each_and_again_in_the_next_phase() {
    let _guard = HangGuard::seconds("blocks", 60);
    for threads in [1, 2, 4] {
        let pool = ThreadPool::new(threads).unwrap();
        for (len, block) in [(0, 3), (1, 3), (1000, 7), (1001, 7), (64, 1)] {
            let mut data = vec![0; len];
            let shared = SharedSlice::in_blocks(&mut data, block);
            pool.run(|team| {
                for _ in 0..10 {
                    while let Some((number, values)) = shared.next_block(team) {
                        assert!(values.len() == block || number == len / block);
                        for (i, value) in values.iter_mut().enumerate() {
                            *value += number * block + i;
                        }
                    }
                    assert!(shared.next_block(team).is_none());
                    team.barrier();
                }
            });
            assert_eq!(data, (0..len).map(|i| 10 * i).collect::<Vec<_>>());
        }
    }
}

#[test]
fn one_member_may_have_everything() {
    let pool = ThreadPool::new(4).unwrap();
    let mut data = vec![0; 100];
    let shared = SharedSlice::new(&mut data);
    pool.run(|team| {
        for round in 0..10 {
            team.single(|team| shared.whole(team).iter_mut().for_each(|value| *value += 1));
            assert_eq!(shared.read(team)[99], round + 1);
        }
    });
    assert_eq!(data, [10; 100]);
}

#[test]
fn several_slices_can_be_taken_at_once() {
    let pool = ThreadPool::new(2).unwrap();
    let mut data = vec![[0; 8]; 20];
    let slices: Vec<_> = data.iter_mut().map(|slice| SharedSlice::new(slice)).collect();
    pool.run(|team| {
        let parts: Vec<_> = slices.iter().map(|slice| slice.part(team)).collect();
        parts.into_iter().flatten().for_each(|value| *value += 1);
    });
    drop(slices);
    assert_eq!(data, vec![[1; 8]; 20]);
}

/// Ways to use a slice that exclude each other within a phase.
const USES: [(&str, UseSlice); 5] = [
    ("part", |slice, team| slice.part(team).fill(1)),
    ("next_block", |slice, team| slice.next_block(team).unwrap().1.fill(1)),
    ("own", |slice, team| *slice.own(team) += 1),
    ("whole", |slice, team| slice.whole(team)[0] += 1),
    ("read", |slice, team| assert_eq!(slice.read(team).len(), 8)),
];

type UseSlice = fn(&SharedSlice<'_, i32>, &Team<'_>);

#[test]
fn two_uses_in_one_phase_are_refused() {
    for threads in [1, 2] {
        let pool = ThreadPool::new(threads).unwrap();
        for (first_name, first) in USES {
            for (second_name, second) in USES.into_iter().filter(|(name, _)| *name != first_name) {
                let mut data = [0; 8];
                let shared = SharedSlice::new(&mut data);
                let text = message(|| {
                    pool.run(|team| {
                        if team.index() == 0 {
                            first(&shared, team);
                            second(&shared, team);
                        }
                    });
                });
                let expected = format!("`{second_name}` was called after `{first_name}`");
                assert!(text.ends_with(&expected), "{text}");
            }
        }
    }
}

#[test]
fn another_members_use_is_refused_as_well() {
    let _guard = HangGuard::seconds("another member's use", 60);
    let pool = ThreadPool::new(2).unwrap();
    for (first_name, first) in USES {
        for (second_name, second) in USES {
            let mut data = [0; 8];
            let shared = SharedSlice::new(&mut data);
            let call = catch_unwind(AssertUnwindSafe(|| {
                pool.run(|team| {
                    if team.index() == 0 {
                        first(&shared, team);
                    } else {
                        second(&shared, team);
                    }
                });
            }));
            let may = first_name == second_name && first_name != "whole";
            assert_eq!(call.is_ok(), may, "{first_name} on one, {second_name} on the other member");
        }
    }
}

#[test]
fn a_share_is_taken_once_per_phase() {
    let pool = ThreadPool::new(2).unwrap();
    for (name, take) in USES.into_iter().filter(|(name, _)| ["part", "own"].contains(name)) {
        let mut data = [0; 8];
        let shared = SharedSlice::new(&mut data);
        let text = message(|| {
            pool.run(|team| {
                take(&shared, team);
                take(&shared, team);
            });
        });
        assert!(text.contains("once per phase"), "{name}: {text}");
        let shared = SharedSlice::new(&mut data);
        pool.run(|team| {
            take(&shared, team);
            team.barrier();
            take(&shared, team);
        });
    }
}

#[test]
fn a_slice_serves_one_dispatch() {
    let pool = ThreadPool::new(2).unwrap();
    for members in [1, 2] {
        let mut data = [0; 8];
        let shared = SharedSlice::new(&mut data);
        pool.run_on(members, |team| shared.part(team).fill(1));
        let text = message(|| pool.run_on(members, |team| shared.part(team).fill(2)));
        assert!(text.contains("serves one dispatch"), "{text}");
        assert_eq!(data, [1; 8]);
    }
}

#[test]
fn a_team_of_another_pool_is_refused() {
    let _guard = HangGuard::seconds("another pool's team", 30);
    let (outer, inner) = (ThreadPool::new(2).unwrap(), ThreadPool::new(2).unwrap());
    let mut data = [0; 8];
    let shared = SharedSlice::new(&mut data);
    let text = message(|| {
        outer.run(|team| {
            let part = shared.part(team);
            inner.run(|team| shared.part(team).fill(1));
            part[0] = 1;
        });
    });
    assert!(text.contains("serves one dispatch"), "{text}");
}

#[test]
fn a_slice_too_short_for_the_team_is_refused() {
    let pool = ThreadPool::new(3).unwrap();
    let mut data = [0; 2];
    let shared = SharedSlice::new(&mut data);
    let text = message(|| pool.run(|team| *shared.own(team) = 1));
    assert_eq!(text, "a slice with an element for each of 3 members is needed, found 2 elements");
}

#[test]
fn elements_without_size_and_elements_that_own_memory_work() {
    let pool = ThreadPool::new(2).unwrap();
    let mut units = [(); 100];
    let shared = SharedSlice::new(&mut units);
    let counts = pool.collect(|team| shared.part(team).len());
    assert_eq!(counts, [50, 50]);
    let mut strings = vec![String::new(); 10];
    let shared = SharedSlice::new(&mut strings);
    pool.run(|team| {
        for (i, text) in shared.range(team).zip(shared.part(team)) {
            *text = i.to_string();
        }
        team.barrier();
        assert_eq!(shared.read(team).concat(), "0123456789");
    });
}

#[test]
fn shares_of_a_beginning_cover_it_and_leave_the_rest_alone() {
    let pool = ThreadPool::new(3).unwrap();
    for (len, block) in [(0, 4), (4, 4), (20, 4), (32, 4), (9, 1)] {
        let mut data = vec![0; 32];
        let shared = SharedSlice::in_blocks(&mut data, block);
        pool.run(|team| {
            let range = shared.range_of(team, len);
            for (place, element) in range.zip(shared.part_of(team, len)) {
                *element += place + 1;
            }
        });
        let right: Vec<_> = (0..32).map(|i| if i < len { i + 1 } else { 0 }).collect();
        assert_eq!(data, right, "{len} in blocks of {block}");
    }
}

#[test]
fn two_lengths_in_one_phase_are_refused() {
    let pool = ThreadPool::new(2).unwrap();
    let mut data = [0; 32];
    let shared = SharedSlice::new(&mut data);
    for whole in [false, true] {
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run(|team| {
                if team.index() == 0 {
                    shared.part_of(team, 16).fill(1);
                } else if whole {
                    shared.part(team).fill(2);
                } else {
                    shared.part_of(team, 32).fill(2);
                }
            });
        }));
        assert!(result.is_err(), "whole: {whole}");
    }
}

#[test]
fn a_length_that_does_not_fit_is_refused() {
    let mut data = [0; 32];
    for len in [33, 3, usize::MAX] {
        let shared = SharedSlice::in_blocks(&mut data, 4);
        let result = catch_unwind(AssertUnwindSafe(|| {
            ck_threadpool::solo(|team| shared.part_of(team, len).len())
        }));
        assert!(result.is_err(), "{len}");
    }
}

#[test]
fn slices_dealt_one_after_the_other_give_every_member_as_much() {
    for size in 1..=5 {
        let pool = ThreadPool::new(size).unwrap();
        let lens = [56, 8, 8, 3, 1, 0, 7];
        let mut data = lens.map(|len| vec![0u8; len * 16]);
        let mut before = 0;
        let slices: Vec<_> = data
            .iter_mut()
            .map(|data| {
                let blocks = data.len() / 16;
                let slice = SharedSlice::in_blocks(data, 16).dealt_after(before);
                before += blocks;
                slice
            })
            .collect();
        let totals = pool.collect(|team| {
            let mine = slices.iter().map(|slice| {
                let part = slice.part(team);
                part.fill(1);
                part.len() / 16
            });
            mine.sum::<usize>()
        });
        drop(slices);
        let (most, least) = (totals.iter().max().unwrap(), totals.iter().min().unwrap());
        assert!(most - least <= 1, "{totals:?}");
        assert_eq!(totals.iter().sum::<usize>(), before);
        assert!(data.iter().flatten().all(|element| *element == 1), "size {size}");
    }
}

#[test]
fn a_planned_slice_is_used_as_planned_and_in_no_other_way() {
    let pool = ThreadPool::new(2).unwrap();
    let uses = [Planned::Part, Planned::Read, Planned::Unused, Planned::Own];
    let fits: [UseSlice; 4] = [
        |slice, team| slice.part(team).fill(1),
        |slice, team| assert_eq!(slice.read(team).len(), 2),
        |_, _| (),
        |slice, team| *slice.own(team) += 1,
    ];
    let others: [UseSlice; 6] = [
        |slice, team| slice.part(team).fill(1),
        |slice, team| _ = slice.read(team),
        |slice, team| *slice.own(team) = 1,
        |slice, team| slice.whole(team).fill(1),
        |slice, team| _ = slice.next_block(team),
        |slice, team| slice.part_of(team, 1).fill(1),
    ];
    let mut data = [0; 2];
    let plan = Plan::new();
    let slice = SharedSlice::new(&mut data).planned(&plan, &uses);
    pool.run(|team| {
        for fits in fits {
            fits(&slice, team);
            team.barrier();
        }
    });
    assert_eq!(data, [2, 2]);

    let allowed = [Some(0), Some(1), None, Some(2), None];
    for (phase, allowed) in allowed.into_iter().enumerate() {
        for (number, other) in others.iter().enumerate() {
            let plan = Plan::new();
            let slice = SharedSlice::new(&mut data).planned(&plan, &uses);
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.run(|team| {
                    for _ in 0..phase {
                        team.barrier();
                    }
                    other(&slice, team);
                });
            }));
            assert_eq!(result.is_ok(), allowed == Some(number), "use {number} in phase {phase}");
        }
    }
}

#[test]
fn a_plan_serves_one_dispatch() {
    let pool = ThreadPool::new(2).unwrap();
    let mut data = [[0; 4]; 2];
    let [first, second] = &mut data;
    let plan = Plan::new();
    let first = SharedSlice::new(first).planned(&plan, &[Planned::Part]);
    let second = SharedSlice::new(second).planned(&plan, &[Planned::Part]);
    pool.run(|team| first.part(team).fill(1));
    for slice in [&first, &second] {
        let again = catch_unwind(AssertUnwindSafe(|| pool.run(|team| slice.part(team).fill(2))));
        assert!(again.is_err());
    }
}
