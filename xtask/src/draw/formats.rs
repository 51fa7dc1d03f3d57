//! How the bytes of the formats lie: a block as in a file, and a block of a panel as in a packed matrix.

use super::picture::{Align, Fill, Picture, Rect, Style};

const LEFT: i32 = 20;
const WIDTH: i32 = 896;

pub(super) fn q5_0() -> Picture {
    let mut picture = Picture::new(WIDTH + 2 * LEFT, 764, "Q5_0");
    heading(&mut picture, 62, "A block in a file: 22 bytes, 32 elements");
    let parts = [
        (2, Fill::Orange, "scale", "f16"),
        (4, Fill::Violet, "high bits", "bytes 2 to 5"),
        (16, Fill::Blue, "low bits", "bytes 6 to 21, two elements each"),
    ];
    let [_, high, low] = bytes(&mut picture, 72, parts);

    let word = Rect::new(LEFT, 150, WIDTH, 26);
    picture.magnified(high, word);
    for element in 0..32 {
        let cell = Rect::new(LEFT + 28 * element, word.y, 28, word.height);
        picture.labelled(cell, Fill::Violet, &[(Style::SMALL, &element.to_string())]);
    }
    let words = "bit j: the fifth bit of element j";
    picture.text((LEFT, 194), Align::Left, Style::QUIET, words);

    let byte = Rect::new(LEFT + 328, 240, 560, 34);
    let sixth = Rect::new(low.x, low.y, low.width / 16, low.height);
    picture.magnified(Rect::new(sixth.x, word.bottom(), sixth.width, 4), byte);
    bits(
        &mut picture,
        byte,
        &[
            (4, Fill::Blue, "element j + 16, bits 3 to 0"),
            (4, Fill::Green, "element j, bits 3 to 0"),
        ],
    );
    picture.text((LEFT, 262), Align::Left, Style::QUIET, "byte 6 + j, high bit first");

    heading(&mut picture, 322, "A block of a panel: 16 rows, 32 columns, five lines of 64 bytes");
    let lines: [(&str, Fill); 5] = [
        ("line 0: all of group 0, upper bits of group 4", Fill::Blue),
        ("line 1: all of group 1, upper bits of group 5", Fill::Blue),
        ("line 2: all of group 2, upper bits of group 6", Fill::Blue),
        ("line 3: all of group 3, upper bits of group 7", Fill::Blue),
        ("line 4: lower bits of groups 4 to 7", Fill::Green),
    ];
    panel_lines(&mut picture, 334, &lines);
    let one = row_cells(&mut picture, 484);

    picture.text((LEFT, 580), Align::Left, Style::QUIET, "a byte of line p, high bit first");
    let byte = Rect::new(LEFT + 248, 562, 640, 34);
    picture.magnified(one, byte);
    bits(
        &mut picture,
        byte,
        &[(3, Fill::Violet, "group 4 + p, bits 4 to 2"), (5, Fill::Blue, "group p, bits 4 to 0")],
    );
    picture.text((LEFT, 640), Align::Left, Style::QUIET, "a byte of line 4, high bit first");
    let byte = Rect::new(byte.x, 622, byte.width, byte.height);
    let two = |name| (2, Fill::Green, name);
    bits(
        &mut picture,
        byte,
        &[
            two("group 7, bits 1, 0"),
            two("group 6, bits 1, 0"),
            two("group 5, bits 1, 0"),
            two("group 4, bits 1, 0"),
        ],
    );
    let notes = [
        "Group g is columns 4g to 4g + 3. Bits are those of the stored number, 0 to 31; an element is scale * (stored - 16).",
        "Groups 0 to 3 are one AND away; groups 4 to 7, shifted together, come out as eight times the stored number.",
        "The 16 scales of the panel's block, f16, lie behind the quants of all panels.",
    ];
    notes_at(&mut picture, 690, &notes);
    picture
}

pub(super) fn q8_0() -> Picture {
    let mut picture = Picture::new(WIDTH + 2 * LEFT, 500, "Q8_0");
    heading(&mut picture, 62, "A block in a file: 34 bytes, 32 elements");
    let parts = [
        (2, Fill::Orange, "scale", "f16"),
        (32, Fill::Blue, "quants", "bytes 2 to 33: signed, element j in byte 2 + j"),
    ];
    bytes(&mut picture, 72, parts);
    heading(&mut picture, 166, "A block of a panel: 16 rows, 32 columns, eight lines of 64 bytes");
    let names: Vec<String> =
        (0..8).map(|g| format!("line {g}: columns {} to {}", 4 * g, 4 * g + 3)).collect();
    let lines: Vec<(&str, Fill)> = names.iter().map(|name| (&name[..], Fill::Blue)).collect();
    panel_lines(&mut picture, 178, &lines);
    row_cells(&mut picture, 388);
    let notes = [
        "A byte is the quant with its sign bit flipped: quant + 128, from 0 to 255.",
        "The 16 scales of the panel's block, f16, lie behind the quants of all panels.",
    ];
    notes_at(&mut picture, 452, &notes);
    picture
}

fn heading(picture: &mut Picture, y: i32, text: &str) {
    picture.text((LEFT, y), Align::Left, Style::NAME, text);
}

fn notes_at(picture: &mut Picture, y: i32, notes: &[&str]) {
    for (index, note) in notes.iter().enumerate() {
        let at = (LEFT, y + index as i32 * (Style::PLAIN.line() + 4));
        picture.text(at, Align::Left, Style::PLAIN, note);
    }
}

/// Parts of a block over the whole width, each as wide as its bytes, with marks between these.
fn bytes<const N: usize>(
    picture: &mut Picture,
    y: i32,
    parts: [(i32, Fill, &str, &str); N],
) -> [Rect; N] {
    let all: i32 = parts.iter().map(|(bytes, ..)| bytes).sum();
    let mut from = 0;
    parts.map(|(bytes, fill, name, more)| {
        let (x, end) = (LEFT + WIDTH * from / all, LEFT + WIDTH * (from + bytes) / all);
        from += bytes;
        let rect = Rect::new(x, y, end - x, 44);
        picture.labelled(rect, fill, &[(Style::PLAIN, name), (Style::SMALL, more)]);
        rect
    })
}

/// The bits of a byte, highest first.
fn bits(picture: &mut Picture, byte: Rect, parts: &[(i32, Fill, &str)]) {
    let bit = byte.width / 8;
    let mut x = byte.x;
    for (bits, fill, name) in parts {
        let rect = Rect::new(x, byte.y, bit * bits, byte.height);
        picture.labelled(rect, *fill, &[(Style::PLAIN, name)]);
        x = rect.right();
    }
}

/// The lines of a panel's block, one below the other.
fn panel_lines(picture: &mut Picture, y: i32, lines: &[(&str, Fill)]) {
    for (index, (name, fill)) in lines.iter().enumerate() {
        let rect = Rect::new(LEFT, y + 22 * index as i32, WIDTH, 22);
        picture.labelled(rect, *fill, &[(Style::PLAIN, name)]);
    }
}

/// One line of a panel's block, row by row: returns the place of its first byte.
fn row_cells(picture: &mut Picture, y: i32) -> Rect {
    let words =
        "every line: 16 rows of four bytes; byte 4 * row + i belongs to column i of the group";
    picture.text((LEFT, y - 10), Align::Left, Style::QUIET, words);
    for row in 0..16 {
        let rect = Rect::new(LEFT + 56 * row, y, 56, 30);
        picture.labelled(rect, Fill::White, &[(Style::SMALL, &format!("row {row}"))]);
    }
    Rect::new(LEFT, y, 14, 30)
}
