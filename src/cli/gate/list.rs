//! `clover gate list`: every gate and how it stands.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::outcome_of;
use crate::cli::home;
use crate::cli::ui;
use crate::projection::drifts;
use crate::projection::gates::Gates;
use crate::view::View;

pub(super) fn run(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let gates = &state.fold::<Gates>().by_id;
    let rows: Vec<_> = gates
        .iter()
        .map(|(id, gate)| {
            let look = gate.look.as_ref();
            let (word, _) = outcome_of(gate);
            let decided = gate.decided.map(|one| format!("{:?}", one.outcome));
            vec![
                id.to_string(),
                gate.n.to_string(),
                gate.looks.to_string(),
                look.map_or("-".to_owned(), |look| format!("{:.3}", look.log_e.value())),
                decided.unwrap_or_else(|| match drifts::stale_gate(state, id) {
                    Some(_) => "stale".to_owned(),
                    None => "open".to_owned(),
                }),
                word.to_owned(),
            ]
        })
        .collect();
    let head = ["gate", "units", "looks", "log e", "decided", "outcome"];
    let data = json!({"gates": gates});
    if rows.is_empty() {
        return Ok(View::untyped("no gates\n", data).with_next("clover prereg new --template gate"));
    }
    Ok(View::untyped(ui::table(&head, rows), data).with_next("clover gate show ID"))
}
