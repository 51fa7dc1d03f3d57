//! A picture of boxes, words and arrows, as SVG.
//!
//! Coordinates are whole numbers of pixels, so that the text of a file is the same everywhere. A picture has a
//! background of its own, and is legible on a page of any color.

use std::fmt::Write;

/// A rectangle.
#[derive(Clone, Copy)]
pub(super) struct Rect {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: i32,
    pub(super) height: i32,
}

impl Rect {
    pub(super) const fn new(x: i32, y: i32, width: i32, height: i32) -> Self {
        Self { x, y, width, height }
    }

    pub(super) const fn bottom(self) -> i32 {
        self.y + self.height
    }

    pub(super) const fn right(self) -> i32 {
        self.x + self.width
    }

    pub(super) const fn middle(self) -> i32 {
        self.x + self.width / 2
    }
}

/// What a box is filled with.
#[derive(Clone, Copy)]
pub(super) enum Fill {
    Blue,
    Green,
    Orange,
    Violet,
    Grey,
    White,
}

impl Fill {
    /// The colors of the area and of its border.
    const fn colors(self) -> [&'static str; 2] {
        match self {
            Self::Blue => ["#d7e7f5", "#1b6ca8"],
            Self::Green => ["#dcefdc", "#2e7d32"],
            Self::Orange => ["#fbe3cd", "#b8560a"],
            Self::Violet => ["#e8dff2", "#6b3fa0"],
            Self::Grey => ["#e9ecef", "#6c757d"],
            Self::White => ["#ffffff", "#6c757d"],
        }
    }
}

/// How words look.
#[derive(Clone, Copy)]
pub(super) struct Style {
    size: i32,
    bold: bool,
    quiet: bool,
}

impl Style {
    pub(super) const TITLE: Self = Self { size: 17, bold: true, quiet: false };
    pub(super) const NAME: Self = Self { size: 14, bold: true, quiet: false };
    pub(super) const PLAIN: Self = Self { size: 12, bold: false, quiet: false };
    pub(super) const QUIET: Self = Self { size: 12, bold: false, quiet: true };
    pub(super) const SMALL: Self = Self { size: 10, bold: false, quiet: false };

    /// The height of a line.
    pub(super) const fn line(self) -> i32 {
        self.size + 4
    }

    /// How wide `text` is in a wide font, at most in most others.
    pub(super) fn width(self, text: &str) -> i32 {
        let tenths = if self.bold { 68 } else { 60 };
        self.size * text.chars().count() as i32 * tenths / 100 + 1
    }
}

/// Where words are, relative to their point.
#[derive(Clone, Copy)]
pub(super) enum Align {
    Left,
    Center,
}

/// A picture.
pub(super) struct Picture {
    size: (i32, i32),
    body: String,
    /// Words that are wider than what they stand in.
    too_wide: Vec<String>,
}

const INK: &str = "#1f2933";
const QUIET_INK: &str = "#52606d";

impl Picture {
    /// A picture with its title at the top left.
    pub(super) fn new(width: i32, height: i32, title: &str) -> Self {
        let mut picture = Self { size: (width, height), body: String::new(), too_wide: Vec::new() };
        picture.text((20, 32), Align::Left, Style::TITLE, title);
        picture
    }

    /// Words that do not fit where they stand.
    pub(super) fn too_wide(&self) -> &[String] {
        &self.too_wide
    }

    /// A box.
    pub(super) fn area(&mut self, rect: Rect, fill: Fill) {
        let [area, border] = fill.colors();
        let Rect { x, y, width, height } = rect;
        self.add(format_args!(
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" fill="{area}" stroke="{border}"/>"#
        ));
    }

    /// A box with lines of words in its middle.
    pub(super) fn labelled(&mut self, rect: Rect, fill: Fill, lines: &[(Style, &str)]) {
        self.area(rect, fill);
        let height: i32 = lines.iter().map(|(style, _)| style.line()).sum();
        let mut y = rect.y + (rect.height - height) / 2;
        for (style, text) in lines {
            if style.width(text) > rect.width - 6 {
                self.too_wide.push((*text).to_owned());
            }
            self.text((rect.middle(), y + style.size), Align::Center, *style, text);
            y += style.line();
        }
    }

    /// Words on a base line.
    pub(super) fn text(&mut self, (x, y): (i32, i32), align: Align, style: Style, text: &str) {
        let (anchor, width) = match align {
            Align::Left => ("start", style.width(text)),
            Align::Center => ("middle", style.width(text) / 2),
        };
        if x + width > self.size.0 {
            self.too_wide.push(text.to_owned());
        }
        let weight = if style.bold { r#" font-weight="bold""# } else { "" };
        let (size, color) = (style.size, if style.quiet { QUIET_INK } else { INK });
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.add(format_args!(
            r#"<text x="{x}" y="{y}" font-size="{size}" fill="{color}" text-anchor="{anchor}"{weight}>{text}</text>"#
        ));
    }

    /// A smooth line through points, leaving and reaching each of them vertically, with a head at the end.
    pub(super) fn arrow_down(&mut self, points: &[(i32, i32)]) {
        let mut path = String::new();
        for (index, pair) in points.windows(2).enumerate() {
            let [(x, y), (to_x, to_y)] = [pair[0], pair[1]];
            let half = (to_y - y) / 2;
            if index == 0 {
                path += &format!("M{x} {y}");
            }
            path += &format!(" C{x} {} {to_x} {} {to_x} {to_y}", y + half, to_y - half);
        }
        self.arrow(&path);
    }

    /// A straight line from left to right, or from right to left, with a head at the end.
    pub(super) fn arrow_across(&mut self, y: i32, from: i32, to: i32) {
        self.arrow(&format!("M{from} {y} H{to}"));
    }

    /// A line down and then to the left, with a head at the end.
    pub(super) fn arrow_down_left(&mut self, (x, y): (i32, i32), (to_x, to_y): (i32, i32)) {
        self.arrow(&format!("M{x} {y} V{} Q{x} {to_y} {} {to_y} H{to_x}", to_y - 10, x - 10));
    }

    fn arrow(&mut self, path: &str) {
        self.add(format_args!(
            r#"<path d="{path}" fill="none" stroke="{QUIET_INK}" stroke-width="1.5" marker-end="url(#head)"/>"#
        ));
    }

    /// A dashed line from left to right.
    pub(super) fn dashed(&mut self, y: i32, from: i32, to: i32) {
        self.add(format_args!(
            r##"<path d="M{from} {y} H{to}" stroke="#b8560a" stroke-width="2" stroke-dasharray="7 5"/>"##
        ));
    }

    /// The two sides of a part that is drawn larger below: from the part's ends to those of the larger drawing.
    pub(super) fn magnified(&mut self, part: Rect, larger: Rect) {
        let ends = [(part.x, larger.x), (part.right(), larger.right())];
        for (from, to) in ends {
            self.add(format_args!(
                r#"<path d="M{from} {} L{to} {}" stroke="{QUIET_INK}" stroke-dasharray="2 3"/>"#,
                part.bottom(),
                larger.y
            ));
        }
    }

    /// The file.
    pub(super) fn svg(&self) -> String {
        let (width, height) = self.size;
        let head = r##"<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#52606d"/></marker>"##;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Verdana, 'DejaVu Sans', sans-serif\">\n\
             <!-- Drawn by `cargo xtask draw`. -->\n<defs>{head}</defs>\n\
             <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#fbfaf7\"/>\n{}</svg>\n",
            self.body
        )
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// Breaks `text` into lines that are not wider than `width`, where its words allow.
pub(super) fn wrap(text: &str, style: Style, width: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if style.width(line) + style.width(" ") + style.width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
