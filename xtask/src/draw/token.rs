//! One token on its way through the phases of a layer: who reads what, who writes what.

use super::picture::{Align, Fill, Picture, Rect, Style};

/// A phase of the call, from top to bottom.
struct Phase {
    name: &'static str,
    does: [&'static str; 2],
    who: &'static str,
    /// What is read that no member writes during the call.
    reads: &'static [&'static str],
    /// What the phase leaves for the next one, and whose it is.
    writes: [&'static str; 2],
    /// Whether all members must have finished the phase before.
    barrier: bool,
}

const PHASES: [Phase; 6] = [
    Phase {
        name: "norm",
        does: ["RMSNorm", "rounded to Q8_0"],
        who: "every member, all of it",
        reads: &["hidden state", "gamma"],
        writes: ["activations", "each member's own"],
        barrier: false,
    },
    Phase {
        name: "project",
        does: ["rows of Q, K and V", "plus bias"],
        who: "shared out in panels of 16 rows",
        reads: &["W_Q, W_K (Q5_0), W_V (Q8_0)", "biases"],
        writes: ["Q, K, V", "shared"],
        barrier: false,
    },
    Phase {
        name: "attend",
        does: ["Q and K rotated, new row rounded to the", "cache's type; scores, softmax, values"],
        who: "shared out: a head, 256 positions",
        reads: &["RoPE table", "KV cache, rows 0 to len - 1"],
        writes: ["partial results", "shared; the new row: each member's own"],
        barrier: true,
    },
    Phase {
        name: "merge",
        does: ["the chunks of a head,", "in their order"],
        who: "shared out by heads",
        reads: &[],
        writes: ["results of the heads", "shared"],
        barrier: true,
    },
    Phase {
        name: "output",
        does: ["results rounded to Q8_0 (every member);", "rows of O, plus bias, plus residual"],
        who: "shared out in panels of 16 rows",
        reads: &["W_O (Q5_0), bias", "residual: the hidden state"],
        writes: ["output", "shared"],
        barrier: true,
    },
    Phase {
        name: "commit",
        does: ["first change that the caller can see;", "nothing can fail any more"],
        who: "the caller alone",
        reads: &[],
        writes: ["KV cache, row len", "and the next hidden state"],
        barrier: true,
    },
];

const PITCH: i32 = 116;
const HEIGHT: i32 = 84;
const TOP: i32 = 84;
/// Left edge and width of the three columns.
const READ: (i32, i32) = (20, 236);
const WORK: (i32, i32) = (310, 310);
const WRITTEN: (i32, i32) = (674, 300);

pub(super) fn draw() -> Picture {
    let height = TOP + PITCH * PHASES.len() as i32;
    let mut picture = Picture::new(994, height, "One token through one layer (strategy barrier)");
    let heads = [
        (READ, "read by all, written by nobody"),
        (WORK, "phases, run by every member of the team"),
        (WRITTEN, "written, and read by the next phase"),
    ];
    for ((x, width), words) in heads {
        picture.text((x + width / 2, TOP - 18), Align::Center, Style::QUIET, words);
    }
    for (index, phase) in PHASES.iter().enumerate() {
        row(&mut picture, phase, TOP + PITCH * index as i32, index + 1 == PHASES.len());
    }
    picture
}

fn row(picture: &mut Picture, phase: &Phase, y: i32, last: bool) {
    let work = Rect::new(WORK.0, y, WORK.1, HEIGHT);
    if phase.barrier {
        let line = y - (PITCH - HEIGHT) / 2;
        picture.dashed(line, WORK.0 - 10, WORK.0 + WORK.1 + 10);
        let words = if last { "end of the dispatch" } else { "barrier" };
        picture.text((WORK.0 - 76, line + 4), Align::Center, Style::SMALL, words);
    }
    let [does, more] = phase.does;
    let lines = [
        (Style::NAME, phase.name),
        (Style::PLAIN, does),
        (Style::PLAIN, more),
        (Style::QUIET, phase.who),
    ];
    picture.labelled(work, if last { Fill::Orange } else { Fill::Blue }, &lines);
    if !phase.reads.is_empty() {
        let read = Rect::new(READ.0, y + 16, READ.1, HEIGHT - 32);
        let lines: Vec<_> = phase.reads.iter().map(|text| (Style::PLAIN, *text)).collect();
        picture.labelled(read, Fill::Green, &lines);
        picture.arrow_across(y + HEIGHT / 2, read.right(), work.x);
    }
    let written = Rect::new(WRITTEN.0, y + 16, WRITTEN.1, HEIGHT - 32);
    let [what, whose] = phase.writes;
    let fill = if last { Fill::Green } else { Fill::Violet };
    picture.labelled(written, fill, &[(Style::PLAIN, what), (Style::QUIET, whose)]);
    picture.arrow_across(y + HEIGHT / 2, work.right(), written.x);
    if !last {
        picture
            .arrow_down_left((written.middle(), written.bottom()), (work.right(), y + PITCH + 14));
    }
}
