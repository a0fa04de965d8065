//! Prompts as Markdown: every heading begins a section, and a comment after it says what the section is.
//!
//! ```text
//! <!-- clover-prompt: id=helpful score=0..10 axes=accuracy,clarity -->     first line, optional
//! Text before the first heading is a section of kind goal, without a title.
//!
//! ## Tone
//! <!-- clover: kind=policy editable max=600 id=tone -->                    the line after a heading, optional
//! Judge the content.
//! ```
//!
//! A section without a comment is frozen; words of its title say its kind: output, format and answer (`output_spec`),
//! scale and range (`scale`), axis, axes, criteria and dimension (`axis`), bias (`anti_bias`), example (`example`), goal,
//! task and role (`goal`); in Chinese 输出, 格式, 分值, 维度, 偏见, 偏差, 示例, 目标, 任务, 角色; else `policy`. Headings are lines of
//! one to six `#` and a space, outside of code fences. The judge is told each heading as `## title`, and no comment.

use clover_num::Micro;

use crate::model::JudgePrompt;
use crate::model::PromptSection;
use crate::model::SECTIONS_MAX;
use crate::model::SectionKind;
use crate::normal;
use crate::written::Draft;
use crate::written::FileFault;
use crate::written::fault;
use crate::written::room;
use crate::written::slug;
use crate::written::unit;

/// Words of titles and the kinds they say; the first that stands in the title counts.
const WORDS: &[(&str, SectionKind)] = &[
    ("output", SectionKind::OutputSpec),
    ("format", SectionKind::OutputSpec),
    ("answer with", SectionKind::OutputSpec),
    ("输出", SectionKind::OutputSpec),
    ("格式", SectionKind::OutputSpec),
    ("bias", SectionKind::AntiBias),
    ("偏见", SectionKind::AntiBias),
    ("偏差", SectionKind::AntiBias),
    ("scale", SectionKind::Scale),
    ("score range", SectionKind::Scale),
    ("分值", SectionKind::Scale),
    ("axis", SectionKind::Axis),
    ("axes", SectionKind::Axis),
    ("criteria", SectionKind::Axis),
    ("dimension", SectionKind::Axis),
    ("维度", SectionKind::Axis),
    ("example", SectionKind::Example),
    ("示例", SectionKind::Example),
    ("goal", SectionKind::Goal),
    ("task", SectionKind::Goal),
    ("role", SectionKind::Goal),
    ("目标", SectionKind::Goal),
    ("任务", SectionKind::Goal),
    ("角色", SectionKind::Goal),
];

/// The kind that a title says.
fn kind_of(title: &str) -> SectionKind {
    let title = title.to_lowercase();
    let found = WORDS.iter().find(|(word, _)| title.contains(word));
    found.map_or(SectionKind::Policy, |(_, kind)| *kind)
}

/// The title of a heading.
fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let marks = line.len() - rest.len();
    if !(1..=6).contains(&marks) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let title = rest.trim();
    let closed = title.trim_end_matches('#');
    Some(if closed.is_empty() || closed.ends_with([' ', '\t']) {
        closed.trim_end()
    } else {
        title
    })
}

/// What a comment of a name says.
fn comment<'t>(line: &'t str, name: &str) -> Option<&'t str> {
    let inner = line
        .trim()
        .strip_prefix("<!--")?
        .strip_suffix("-->")?
        .trim();
    inner.strip_prefix(name)?.strip_prefix(':')
}

/// A section as it stands in a file.
struct Written {
    line: usize,
    title: String,
    said: Option<(usize, String)>,
    lines: Vec<String>,
}

/// Sections in order; text before the first heading has a `line` of 0.
fn sections(text: &str) -> (Option<(usize, String)>, Vec<Written>) {
    let (mut head, mut fence) = (None, None::<&str>);
    let new = |line, title: &str| Written {
        line,
        title: title.to_owned(),
        said: None,
        lines: Vec::new(),
    };
    let mut found = vec![new(0, "")];
    for (at, line) in text.split('\n').enumerate() {
        let marks = ["```", "~~~"]
            .into_iter()
            .find(|mark| line.trim_start().starts_with(mark));
        match (fence, marks) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        if let (None, None, Some(title)) = (fence, marks, heading(line)) {
            found.push(new(at + 1, title));
            continue;
        }
        if let (0, Some(said)) = (at, comment(line, "clover-prompt")) {
            head = Some((at + 1, said.to_owned()));
            continue;
        }
        if let Some(last) = found.last_mut() {
            match comment(line, "clover") {
                Some(said)
                    if last.said.is_none()
                        && last.lines.iter().all(|line| line.trim().is_empty()) =>
                {
                    last.said = Some((at + 1, said.to_owned()));
                }
                _ => last.lines.push(line.to_owned()),
            }
        }
    }
    (head, found)
}

/// Words of a comment: `key=value`, or a key alone.
fn pairs(said: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    said.split_whitespace()
        .map(|word| match word.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word, None),
        })
}

/// Reads a section's comment into it.
fn describe(section: &mut PromptSection, line: usize, said: &str) -> Result<(), FileFault> {
    for (key, value) in pairs(said) {
        let wrong = |expected: &str| Err(fault(line, key, format!("expected {expected}")));
        match (key, value) {
            ("kind", Some(word)) => match SectionKind::named(word) {
                Some(kind) => section.kind = kind,
                None => {
                    return wrong("goal, axis, anti_bias, scale, output_spec, example or policy");
                }
            },
            ("editable", None | Some("yes")) => section.editable = true,
            ("editable", Some("no")) => section.editable = false,
            ("editable", Some(_)) => return wrong("yes or no"),
            ("max", Some(value)) => match value.parse() {
                Ok(most) => section.max_chars = most,
                Err(_) => return wrong("a count of characters"),
            },
            ("id", Some(id)) => id.clone_into(&mut section.section_id),
            _ => return wrong("kind=, editable, max= or id="),
        }
    }
    Ok(())
}

/// Reads the comment of the prompt.
fn describe_all(draft: &mut Draft, line: usize, said: &str) -> Result<(), FileFault> {
    for (key, value) in pairs(said) {
        let wrong = |expected: &str| fault(line, key, format!("expected {expected}"));
        match (key, value) {
            ("id", Some(id)) => id.clone_into(&mut draft.prompt_id),
            ("axes", Some(list)) => draft.axes = Some(list.split(',').map(str::to_owned).collect()),
            ("score", Some(range)) => {
                let ends = range.split_once("..").and_then(|(lo, hi)| {
                    let read = |text: &str| Micro::parse(text).ok().map(|(value, _)| value);
                    Some((read(lo)?, read(hi)?))
                });
                draft.score = ends.ok_or_else(|| wrong("two numbers, LO..HI"))?;
            }
            _ => return Err(wrong("id=, score= or axes=")),
        }
    }
    Ok(())
}

/// A section as its heading says it, with an id that none before it has.
fn section_of(of: &Written, text: String, place: usize, before: &[PromptSection]) -> PromptSection {
    let base = if of.line == 0 {
        "goal".to_owned()
    } else {
        slug(&of.title, &format!("section-{place}"))
    };
    let taken = |id: &str| before.iter().any(|section| section.section_id == id);
    let mut ids = std::iter::once(base.clone()).chain((2..).map(|next| format!("{base}-{next}")));
    PromptSection {
        editable: false,
        kind: if of.line == 0 {
            SectionKind::Goal
        } else {
            kind_of(&of.title)
        },
        max_chars: room(&text),
        ord: u32::try_from(10 * place).unwrap_or(u32::MAX),
        section_id: ids.find(|id| !taken(id)).unwrap_or(base),
        text,
        title: normal::normal_form(&of.title),
    }
}

/// Reads a prompt; `name` is its id where the file says none.
pub(crate) fn read(bytes: &[u8], name: &str) -> Result<JudgePrompt, FileFault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        fault(
            before.split(|byte| *byte == b'\n').count(),
            "file",
            "expected UTF-8",
        )
    })?;
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let (head, written) = sections(&text);
    if written.len() > SECTIONS_MAX + 1 {
        let line = written[SECTIONS_MAX + 1].line;
        return Err(fault(
            line,
            "sections",
            format!("expected at most {SECTIONS_MAX}"),
        ));
    }
    let mut draft = Draft {
        prompt_id: name.to_owned(),
        score: unit(),
        axes: None,
        sections: Vec::new(),
    };
    if let Some((line, said)) = &head {
        describe_all(&mut draft, *line, said)?;
    }
    let mut lines = Vec::new();
    for of in written {
        let text = normal::normal_form(&of.lines.join("\n"));
        if of.line == 0 && text.is_empty() && of.said.is_none() {
            continue;
        }
        let mut section = section_of(&of, text, lines.len() + 1, &draft.sections);
        if let Some((line, said)) = &of.said {
            describe(&mut section, *line, said)?;
        }
        lines.push(of.line.max(1));
        draft.sections.push(section);
    }
    draft.prompt().map_err(|error| {
        let place = error
            .path
            .strip_prefix("sections[")
            .and_then(|rest| rest.split(']').next());
        let line = place.and_then(|place| lines.get(place.parse::<usize>().ok()?).copied());
        fault(line.unwrap_or(1), error.path, error.message)
    })
}

/// A prompt as Markdown, with its comments; [`JudgePrompt::from_file`] reads it back, with new places and version 0. Lines of
/// a text that look like a heading or a comment become one.
pub fn write(prompt: &JudgePrompt) -> String {
    let parts = prompt.parts();
    let mut out = format!(
        "<!-- clover-prompt: id={} score={}..{} axes={} -->\n",
        parts.prompt_id,
        parts.score_lo,
        parts.score_hi,
        parts.axes.join(",")
    );
    if parts.axes.is_empty() {
        out = out.replace(" axes= ", " ");
    }
    for (at, section) in prompt.sections().iter().enumerate() {
        if !section.title.is_empty() || at > 0 {
            out.push_str(&format!("\n## {}\n", section.title));
        }
        let editable = if section.editable { " editable" } else { "" };
        let (kind, most, id) = (
            section.kind.as_str(),
            section.max_chars,
            &section.section_id,
        );
        out.push_str(&format!(
            "<!-- clover: kind={kind}{editable} max={most} id={id} -->\n"
        ));
        if !section.text.is_empty() {
            out.push_str(&format!("{}\n", section.text));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = concat!(
        "Judge one answer.\n\n# Scoring Axis: accuracy\nIs it right?\n\n## Anti-Bias\n",
        "<!-- clover: editable max=900 -->\n\nLength is no merit.\n```\n# no heading\n```\n\n",
        "## 输出 #\nThe number alone.\n"
    );

    fn read(text: &str) -> Result<JudgePrompt, FileFault> {
        JudgePrompt::from_file("judge.md", text.as_bytes())
    }

    #[test]
    fn headings_become_sections() {
        let prompt = read(FILE).unwrap();
        let listed: Vec<_> = prompt
            .sections()
            .iter()
            .map(|of| {
                (
                    of.section_id.as_str(),
                    of.kind,
                    of.editable,
                    of.ord,
                    of.title.as_str(),
                )
            })
            .collect();
        assert_eq!(
            listed,
            [
                ("goal", SectionKind::Goal, false, 10, ""),
                (
                    "scoring-axis-accuracy",
                    SectionKind::Axis,
                    false,
                    20,
                    "Scoring Axis: accuracy"
                ),
                ("anti-bias", SectionKind::AntiBias, true, 30, "Anti-Bias"),
                ("section-4", SectionKind::OutputSpec, false, 40, "输出"),
            ]
        );
        assert_eq!(prompt.parts().axes, ["scoring-axis-accuracy"]);
        let open = prompt.section("anti-bias").unwrap();
        assert_eq!(
            (open.max_chars, open.text.as_str()),
            (900, "Length is no merit.\n```\n# no heading\n```")
        );
        assert_eq!(read(&write(&prompt)).unwrap(), prompt);
        assert!(
            prompt
                .render()
                .starts_with("Judge one answer.\n\n## Scoring Axis: accuracy\nIs it right?\n\n")
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let fault = |text: &str| {
            read(text)
                .map_err(|error| (error.line, error.field))
                .unwrap_err()
        };
        assert_eq!(
            fault("# A\n<!-- clover: kind=tone -->\n"),
            (2, "kind".to_owned())
        );
        assert_eq!(
            fault("<!-- clover-prompt: score=1 -->\nx"),
            (1, "score".to_owned())
        );
        assert_eq!(
            fault("x\n# Goal\n<!-- clover: editable -->\n"),
            (2, "sections[1].editable".to_owned())
        );
        assert_eq!(
            fault("x\n# B\na\u{202e}b"),
            (2, "sections[1].text".to_owned())
        );
        assert_eq!(fault(""), (1, "sections".to_owned()));
        assert_eq!(
            JudgePrompt::from_file("a.md", b"a\n\xff").unwrap_err().line,
            2
        );
    }
}
