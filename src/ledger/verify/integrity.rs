//! What `SQLite` and the schema say of the whole file.

use clover_store::Fault;
use clover_store::Part;
use clover_store::StoreError;

use crate::rule_names::RuleName;
use crate::verify::checker::Checker;

/// The rule that a part of the file breaks.
fn rule_of(part: Part) -> RuleName {
    match part {
        Part::Sqlite => RuleName::Sqlite,
        Part::Schema => RuleName::SchemaSql,
        Part::Entries => RuleName::Seq,
        Part::Checkpoints => RuleName::Checkpoint,
    }
}

/// Takes what `SQLite` itself, and the schema, say of the file.
pub(super) fn take_integrity(checker: &mut Checker<'_>, found: Result<Vec<Fault>, StoreError>) {
    let position = checker.position();
    match found {
        Ok(all) => {
            for (part, expected, found) in all {
                let rule = rule_of(part);
                checker.findings.add(position, rule, expected, found);
            }
        }
        Err(error) => {
            let (rule, expected) = (RuleName::Sqlite, "integrity_check: ok");
            checker
                .findings
                .add(position, rule, expected, error.to_string());
        }
    }
}
