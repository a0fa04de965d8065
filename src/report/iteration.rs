//! The report of an iteration as a document: its bundle, with a head that answers first. The bundle's bytes are what is
//! signed; this is a rendering of them, with the whole bundle as its appendices.

use clover_event::payload::report::ReportPart;
use clover_projection::bundle::Bundle;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Citation;
use clover_projection::bundle::Gap;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Table;

use crate::document::Chapter;
use crate::document::CitedEntry;
use crate::document::Document;
use crate::document::DocumentHead;
use crate::document::ReportKind;
use crate::lead;
use crate::shown;

/// The document of a bundle. Who did what and what happened since is not in it: that is read beside it.
pub fn document(bundle: &Bundle) -> Document {
    let lead = lead::lead(bundle);
    let head = DocumentHead {
        answer: lead.decided,
        people: None,
        period: lead.people,
        rest: lead.rest,
        separation: Vec::new(),
        since: None,
    };
    let mut out = Document::new(ReportKind::Iteration, bundle.iteration.as_str(), head);
    let experiment = Cell::text(bundle.experiment.as_str());
    let facts = [
        ("experiment", "Experiment", experiment),
        ("bundle", "Bundle", Cell::Digest(bundle.digest())),
    ];
    out.facts = facts.map(fact).to_vec();
    out.ledger.clone_from(&bundle.ledger);
    out.through_seq = bundle.through_seq;
    out.parts = summary(bundle);
    out.appendices = bundle.parts.iter().map(Chapter::from).collect();
    let own = OwnReasons::of(bundle);
    let all = out.parts.iter_mut().chain(&mut out.appendices);
    for gap in all.flat_map(|part| &mut part.missing) {
        if let Some(why) = own.why(gap) {
            why.clone_into(&mut gap.why);
        }
    }
    out.entries = bundle.events.iter().map(CitedEntry::from).collect();
    out
}

fn fact(
    (key, title, value): (&'static str, &'static str, Cell),
) -> clover_projection::bundle::Fact {
    clover_projection::bundle::Fact {
        events: Vec::new(),
        key,
        title,
        value,
    }
}

impl From<&Citation> for CitedEntry {
    fn from(of: &Citation) -> Self {
        Self {
            author: of.author,
            holder: of.holder.clone(),
            id: of.id,
            kind: of.kind,
            leaf: None,
            recorded_at: of.recorded_at,
            seq: of.seq,
        }
    }
}

/// What was decided, the criteria at a glance, and what nothing is shown of: what a reader has before the appendices.
fn summary(bundle: &Bundle) -> Vec<Chapter> {
    let mut decided = Chapter::new(
        "summary",
        "What was decided",
        "How the iteration ended, and each patch in it.",
    );
    if let Some(part) = bundle.part(ReportPart::Decision) {
        let shown = ["outcome", "reason", "confirm"];
        let facts = part.facts.iter().filter(|fact| shown.contains(&fact.key));
        decided.facts = facts.cloned().collect();
        let tables = part.tables.iter().filter(|table| table.key == "candidates");
        decided.tables = tables.map(shown::table).collect();
    }
    let mut criteria = Chapter::new(
        "glance",
        "Criteria at a glance",
        "P0 to P10, which a patch must pass on dev and on confirm. Each leads to its entry.",
    );
    let gates = bundle.part(ReportPart::Gates);
    let tables = gates.into_iter().flat_map(|part| &part.tables);
    let tables = tables.filter(|table| is_matrix(table));
    criteria.tables = tables.map(shown::table).collect();
    let mut lacking = Chapter::new(
        "not-covered",
        "Not covered",
        "What nothing is shown of, by part. The appendices have the rest.",
    );
    for part in &bundle.parts {
        for gap in &part.missing {
            let title = shown::title(part.title);
            let is_all = gap.what.eq_ignore_ascii_case(&title);
            let what = if is_all {
                title
            } else {
                format!("{title}: {}", gap.what)
            };
            lacking.lacks(what, gap.why.clone());
        }
    }
    let all = [decided, criteria, lacking];
    let all = all.into_iter();
    all.filter(|part| part.is_present() || !part.missing.is_empty())
        .collect()
}

/// What a bundle tells about its own iteration, where the reason that it keeps for a gap is one of any iteration.
pub struct OwnReasons {
    /// Some candidate was put to a criterion.
    is_judged: bool,
    /// The plan names no slices of rows.
    is_whole: bool,
}

impl OwnReasons {
    /// Of a bundle.
    pub fn of(bundle: &Bundle) -> Self {
        let part = |of: ReportPart| bundle.part(of);
        let slices = part(ReportPart::Slices);
        Self {
            is_judged: part(ReportPart::Gates).is_some_and(|of| !of.tables.is_empty()),
            is_whole: slices.is_some_and(|of| {
                let mut gaps = of.missing.iter();
                of.tables.is_empty() && gaps.all(|gap| gap.what != "slices before")
            }),
        }
    }

    /// The reason of a gap; `None` where the one on record is it.
    pub fn why(&self, gap: &Gap) -> Option<&'static str> {
        let is_about_slices = gap.what.contains("what candidates change")
            || gap.what.eq_ignore_ascii_case("negative segments");
        match gap.why.as_str() {
            "no candidate was put to a gate" | "no entry of this log says anything of it"
                if self.is_whole && is_about_slices =>
            {
                Some("the plan names no slices of rows")
            }
            "no candidate was put to a gate" if self.is_judged => {
                Some("no criterion that was run reads it")
            }
            "no entry of this log says anything of it" => Some("nothing on record is about it"),
            _ => None,
        }
    }
}

fn is_matrix(table: &Table) -> bool {
    matches!(table.plot, Some(Plot::Matrix { .. }))
}
