//! Prompt files: YAML, and which reader reads which file.
//!
//! ```text
//! judge_prompt:
//!   prompt_id: helpful            optional: else the name of the file
//!   score: {lo: 0, hi: 10}        optional: else 0 and 1
//!   axes: [accuracy, clarity]     optional: else the ids of the sections of kind axis
//!   sections:
//!     - section_id: tone
//!       title: Tone               optional: else none
//!       kind: policy              goal | axis | anti_bias | scale | output_spec | example | policy
//!       editable: true            optional: else false
//!       max_chars: 600            optional: else 600 more than its text has
//!       ord: 20                   optional: else ten times its place from 1
//!       text: |
//!         Judge the content.
//! ```

use clover_ground::digest::Digest;
use clover_ground::yaml::Document;
use clover_ground::yaml::YamlError;
use clover_num::Micro;
use serde::Deserialize;

use crate::markdown;
use crate::model::FILE_MAX;
use crate::model::JudgePrompt;
use crate::model::PromptFault;
use crate::model::PromptParts;
use crate::model::PromptSection;
use crate::model::SECTION_CHARS_MAX;
use crate::model::SectionKind;
use crate::model::is_id;
use crate::normal;

/// Characters that a section may grow by where its file does not say.
const ROOM: u64 = 600;

/// Why a file is no judge prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {field}: {message}")]
pub struct FileFault {
    /// Line of the file, from 1; 0 for all of it.
    pub line: usize,
    /// The field, such as `sections[2].text`.
    pub field: String,
    /// What was expected, and what was found.
    pub message: String,
}

/// A fault of a file.
pub(crate) fn fault(
    line: usize,
    field: impl Into<String>,
    message: impl Into<String>,
) -> FileFault {
    FileFault {
        line,
        field: field.into(),
        message: message.into(),
    }
}

/// What a file says of a prompt, without what follows from it.
pub(crate) struct Draft {
    pub(crate) prompt_id: String,
    pub(crate) score: (Micro, Micro),
    /// `None` for the ids of the sections of kind axis.
    pub(crate) axes: Option<Vec<String>>,
    pub(crate) sections: Vec<PromptSection>,
}

/// The scores where a file says none: 0 and 1.
pub(crate) fn unit() -> (Micro, Micro) {
    (Micro::default(), Micro::new(1_000_000).unwrap_or_default())
}

/// Most characters of a section whose file does not say.
pub(crate) fn room(text: &str) -> u32 {
    let most = normal::scalars(text) + ROOM;
    u32::try_from(most)
        .unwrap_or(u32::MAX)
        .min(SECTION_CHARS_MAX)
}

/// An id made of a text: its letters and digits of ASCII, with `-` for all else.
pub(crate) fn slug(text: &str, otherwise: &str) -> String {
    let mut out = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            _ if c.is_ascii_alphanumeric() => out.push(c),
            _ if out.is_empty() || out.ends_with('-') => {}
            _ => out.push('-'),
        }
    }
    let start = out.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    let cut: String = start.chars().take(24).collect();
    let cut = cut.trim_end_matches('-');
    if is_id(cut) {
        cut.to_owned()
    } else {
        otherwise.to_owned()
    }
}

impl Draft {
    /// Version 0 of the prompt that a file says.
    pub(crate) fn prompt(self) -> Result<JudgePrompt, PromptFault> {
        let of = |kind| {
            self.sections
                .iter()
                .filter(move |section| section.kind == kind)
        };
        let axes = of(SectionKind::Axis).map(|section| section.section_id.clone());
        let axes = self.axes.clone().unwrap_or_else(|| axes.collect());
        let answers: Vec<&str> = of(SectionKind::OutputSpec)
            .map(|section| section.text.as_str())
            .collect();
        JudgePrompt::new(PromptParts {
            axes,
            output_schema_digest: Digest::sha256(answers.join("\n\n").as_bytes()),
            parent_digest: None,
            prompt_id: self.prompt_id,
            score_hi: self.score.1,
            score_lo: self.score.0,
            sections: self.sections,
            version: 0,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct YamlFile {
    judge_prompt: YamlPrompt,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct YamlPrompt {
    #[serde(default)]
    axes: Option<Vec<String>>,
    #[serde(default)]
    prompt_id: Option<String>,
    #[serde(default)]
    score: Option<YamlScore>,
    sections: Vec<YamlSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct YamlScore {
    hi: serde_json::Number,
    lo: serde_json::Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct YamlSection {
    #[serde(default)]
    editable: bool,
    kind: SectionKind,
    #[serde(default)]
    max_chars: Option<u32>,
    #[serde(default)]
    ord: Option<u32>,
    section_id: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    title: String,
}

fn from_yaml(bytes: &[u8], name: &str) -> Result<JudgePrompt, FileFault> {
    let refused = |error: YamlError| fault(error.place.line, error.place.path, error.message);
    let document = Document::parse(bytes).map_err(refused)?;
    let file: YamlFile = document.decode().map_err(refused)?;
    let body = file.judge_prompt;
    let line = |path: &str| document.place(path).map_or(1, |place| place.line);
    let score = match &body.score {
        None => unit(),
        Some(score) => {
            let read = |field: &str, of: &serde_json::Number| {
                let path = format!("judge_prompt.score.{field}");
                let read = Micro::parse(&of.to_string());
                read.map(|(value, _)| value)
                    .map_err(|error| fault(line(&path), path, error.to_string()))
            };
            (read("lo", &score.lo)?, read("hi", &score.hi)?)
        }
    };
    let sections = (0_u32..).zip(body.sections).map(|(at, of)| {
        let text = normal::normal_form(&of.text);
        PromptSection {
            editable: of.editable,
            kind: of.kind,
            max_chars: of.max_chars.unwrap_or_else(|| room(&text)),
            ord: of.ord.unwrap_or((at + 1).saturating_mul(10)),
            section_id: of.section_id,
            text,
            title: of.title,
        }
    });
    let draft = Draft {
        prompt_id: body.prompt_id.unwrap_or_else(|| name.to_owned()),
        score,
        axes: body.axes,
        sections: sections.collect(),
    };
    draft.prompt().map_err(|error| {
        let path = format!("judge_prompt.{}", error.path);
        fault(line(&path), path, error.message)
    })
}

impl JudgePrompt {
    /// Reads a prompt file: YAML by the end `.yaml` or `.yml`, JSON by `.json`, else Markdown (see [`markdown`]).
    ///
    /// # Errors
    /// [`FileFault`] with the line and the field of the first thing that is wrong.
    pub fn from_file(file_name: &str, bytes: &[u8]) -> Result<Self, FileFault> {
        if bytes.len() > FILE_MAX {
            return Err(fault(
                0,
                "file",
                format!("expected at most {FILE_MAX} bytes, found {}", bytes.len()),
            ));
        }
        let (stem, end) = file_name.rsplit_once('.').unwrap_or((file_name, ""));
        let stem = stem.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = slug(stem, "prompt");
        match end {
            "yaml" | "yml" => from_yaml(bytes, &name),
            "json" => Self::from_json(bytes).map_err(|error| fault(1, error.path, error.message)),
            _ => markdown::read(bytes, &name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "judge_prompt:\n  score: {lo: 1, hi: 5.5}\n  sections:\n    - section_id: goal\n      kind: goal\n      \
                        text: Judge.\n    - section_id: tone\n      kind: policy\n      editable: true\n      text: |\n        \
                        Be kind.\n        Be brief.\n";

    #[test]
    fn a_yaml_file_is_a_prompt() {
        let prompt = JudgePrompt::from_file("dir/My Judge.yaml", FILE.as_bytes()).unwrap();
        assert_eq!(prompt.parts().prompt_id, "my-judge");
        assert_eq!(prompt.parts().score_hi.value(), 5_500_000);
        assert_eq!(prompt.render(), "Judge.\n\nBe kind.\nBe brief.");
        assert_eq!(
            prompt.section("tone").map(|of| (of.ord, of.is_open())),
            Some((20, true))
        );
        let again = JudgePrompt::from_file("x.json", &prompt.to_json()).unwrap();
        assert_eq!(again, prompt);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let fault = |from: &str, to: &str| {
            let error =
                JudgePrompt::from_file("a.yaml", FILE.replace(from, to).as_bytes()).unwrap_err();
            (error.line, error.field)
        };
        assert_eq!(
            fault("kind: policy", "kind: tune"),
            (8, "judge_prompt.sections[1].kind".to_owned())
        );
        assert_eq!(
            fault("id: tone", "id: goal"),
            (7, "judge_prompt.sections[1].section_id".to_owned())
        );
        assert_eq!(
            fault("kind: policy", "kind: scale").1,
            "judge_prompt.sections[1].editable"
        );
        assert_eq!(fault("lo: 1", "lo: 9").0, 1);
        assert_eq!(
            fault("Be kind.", "Be\u{200b}kind.").1,
            "judge_prompt.sections[1].text"
        );
        let large = vec![b' '; FILE_MAX + 1];
        assert_eq!(JudgePrompt::from_file("a.md", &large).unwrap_err().line, 0);
    }
}
