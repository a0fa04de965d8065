//! What was put on a cassette, and what one holds.

use serde::Serialize;

use crate::session::judge::tape::MissingCall;
use crate::view::Exit;
use crate::view::View;
use crate::view::text::thousands;

/// Calls that are shown of those that are missing.
const SHOWN: usize = 12;

/// A cassette that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CassetteWritten {
    /// The run.
    pub run: String,
    /// Its calls.
    pub calls: u64,
    /// The file.
    pub file: String,
    /// Whether it says the order of asks: then the holds of the run can be computed again from it.
    pub ordered: bool,
}

/// A call that cannot be read here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MissingCallFacts {
    /// Where it stands.
    pub seq: u64,
    /// The key of its ask.
    pub ask: String,
    /// What is missing.
    pub why: String,
}

/// A cassette that was not written, since calls cannot be read here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CassetteIncomplete {
    /// The run.
    pub run: String,
    /// What is missing.
    pub missing: Vec<MissingCallFacts>,
}

/// What a cassette holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CassetteContent {
    /// The file.
    pub file: String,
    /// Asks, each once.
    pub asks: u64,
    /// Calls, a line each.
    pub calls: u64,
    /// Calls with the body of an answer.
    pub answers: u64,
}

/// A cassette was written.
pub fn written(run: String, calls: u64, (file, ordered): (String, bool)) -> View {
    let facts = CassetteWritten {
        run,
        calls,
        file,
        ordered,
    };
    let mut view = View::of(&facts);
    let CassetteWritten {
        run, calls, file, ..
    } = &facts;
    view.line(format!("{} calls of {run} in {file}", thousands(*calls)));
    view.sentence(
        "it holds the texts that were judged and the answers: keep it as private as they are",
    );
    if !ordered {
        view.sentence("the order of asks is not known here: --rows PATH names the file that was judged, and holds are computed again too");
    }
    view.with_next(format!(
        "clover replay {run} --cassette {}",
        crate::ground::shell::word(file)
    ))
}

/// Nothing was written.
pub fn incomplete(run: String, missing: &[MissingCall]) -> View {
    let each = missing.iter().map(|of| MissingCallFacts {
        seq: of.seq,
        ask: of.ask.to_hex(),
        why: of.why.clone(),
    });
    let facts = CassetteIncomplete {
        run,
        missing: each.collect(),
    };
    let mut view = View::of(&facts);
    for of in facts.missing.iter().take(SHOWN) {
        view.sentence(format!("seq {}  {}", of.seq, of.why));
    }
    if facts.missing.len() > SHOWN {
        let more = facts.missing.len() - SHOWN;
        view.line(format!("and {more} more: --json names them"));
    }
    view.gap();
    view.sentence(format!(
        "nothing was written: {} calls of {} cannot be read here",
        facts.missing.len(),
        facts.run
    ));
    (view.verdict, view.exit) = ("incomplete", Exit::Inconclusive);
    view.with_next(
        "the same command with --rows PATH, the file that was judged, where rows were missed",
    )
}

/// What a cassette holds, where all of it has the form.
pub fn content(facts: &CassetteContent) -> View {
    let mut view = View::of(facts);
    view.line(format!(
        "{}: {} asks, {} calls, {} with an answer",
        facts.file,
        thousands(facts.asks),
        thousands(facts.calls),
        thousands(facts.answers)
    ));
    view.sentence("every line has the form and the key of its ask; whether a ledger has it, clover replay RUN --cassette says");
    view
}
