//! Steps that run in order, as boxes with arrows: what each needs, and which are run again.

use crate::forest::escaped;

/// Height of a box with the gap below it.
const ROW: usize = 64;
/// Left edge and width of a box.
const LEFT: usize = 150;
const BOX: usize = 330;
/// How far an arrow stands from the boxes, at least, and how much more for each step that it passes.
const BEND: usize = 18;
const BEND_MORE: usize = 10;
/// Characters of a box's second line.
const NOTE_MAX: usize = 46;

/// Steps as a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepsDrawing {
    /// What stands above it.
    pub title: String,
    /// The steps, in order.
    pub boxes: Vec<StepBox>,
    /// The arrows, by places of boxes.
    pub arrows: Vec<StepArrow>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepBox {
    /// Its name.
    pub label: String,
    /// What it is, in a word.
    pub kind: String,
    /// What else is to be known.
    pub note: String,
}

/// An arrow between two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepArrow {
    /// The step that it leaves.
    pub from: usize,
    /// The step that it reaches.
    pub to: usize,
    /// Whether it says that the step is run again; else that what it writes is read.
    pub is_again: bool,
}

impl StepsDrawing {
    /// As SVG.
    pub fn svg(&self) -> String {
        let (top, width) = (56, 2 * LEFT + BOX);
        let height = top + ROW * self.boxes.len() + 24;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\">\n\
             <title>{0}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"600\">{0}</text>\n",
            escaped(&self.title),
        );
        for arrow in &self.arrows {
            out.push_str(&arrow.svg(top));
        }
        for (at, step) in self.boxes.iter().enumerate() {
            out.push_str(&step.svg(top + at * ROW));
        }
        out.push_str("</svg>\n");
        out
    }
}

impl StepBox {
    fn svg(&self, y: usize) -> String {
        let note: String = match self.note.char_indices().nth(NOTE_MAX) {
            Some((end, _)) => format!("{}…", &self.note[..end]),
            None => self.note.clone(),
        };
        format!(
            "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{BOX}\" height=\"46\" rx=\"6\" fill=\"none\" stroke=\"#1f5fa8\"/>\
             <text x=\"{0}\" y=\"{1}\" font-weight=\"600\">{2}</text>\
             <text x=\"{3}\" y=\"{1}\" text-anchor=\"end\" fill=\"#5b6470\">{4}</text>\
             <text x=\"{0}\" y=\"{5}\" fill=\"#5b6470\">{6}</text>\n",
            LEFT + 12,
            y + 19,
            escaped(&self.label),
            LEFT + BOX - 12,
            escaped(&self.kind),
            y + 37,
            escaped(&note),
        )
    }
}

impl StepArrow {
    /// Values flow on the right, what is run again stands on the left, in dashes.
    fn svg(self, top: usize) -> String {
        let (from, to) = (top + self.from * ROW, top + self.to * ROW);
        let passed = self.from.abs_diff(self.to);
        let bend = (BEND + BEND_MORE * passed).min(LEFT - 12);
        let (x, out, end, dashes) = if self.is_again {
            (LEFT, LEFT - bend, LEFT - 1, " stroke-dasharray=\"4 3\"")
        } else {
            (LEFT + BOX, LEFT + BOX + bend, LEFT + BOX + 1, "")
        };
        let (start, finish) = (from + 30, to + 16);
        // The head points at the box.
        let head = if self.is_again { end - 7 } else { end + 7 };
        format!(
            "<path d=\"M{x} {start} C{out} {start} {out} {finish} {end} {finish}\" fill=\"none\" \
             stroke=\"#5b6470\"{dashes}/>\
             <path d=\"M{end} {finish} L{head} {0} L{head} {1} Z\" fill=\"#5b6470\"/>\n",
            finish - 4,
            finish + 4,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_escaped() {
        let step = |label: &str| StepBox {
            label: label.to_owned(),
            kind: "llm".to_owned(),
            note: "é".repeat(100),
        };
        let drawing = StepsDrawing {
            title: "<script>".to_owned(),
            boxes: vec![step("a&b"), step("c")],
            arrows: vec![
                StepArrow {
                    from: 0,
                    to: 1,
                    is_again: false,
                },
                StepArrow {
                    from: 1,
                    to: 0,
                    is_again: true,
                },
            ],
        };
        let svg = drawing.svg();
        assert!(
            svg.contains("&lt;script&gt;") && svg.contains("a&amp;b"),
            "{svg}"
        );
        assert!(!svg.contains("<script>") && svg.matches("<path").count() == 4);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
