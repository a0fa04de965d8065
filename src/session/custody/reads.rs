//! Reads as events: who read which class, what for, and which rows.

use clover_event::id::ClassId;
use clover_event::id::Root;
use clover_event::id::Text;
use clover_event::payload::Role;
use clover_event::payload::record::DataRead;
use clover_event::payload::record::ReadOutcome;
use clover_ground::sign::KeyId;

/// The class of private texts.
pub const PRIVATE: &str = "private";

/// A read as an event; `class` is a literal.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn read(
    class: &'static str,
    outcome: ReadOutcome,
    purpose: Text,
    (reader, role): (KeyId, Option<Role>),
    rows_root: Option<Root>,
) -> DataRead {
    let class = ClassId::new(class).expect("BUG: classes here are literals");
    DataRead {
        class,
        outcome,
        purpose,
        reader,
        role,
        rows_root,
    }
}
