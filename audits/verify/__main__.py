#!/usr/bin/env python3
"""Verify a Clover ledger with nothing but the Python standard library (3.9 or newer).

    python3 verify LEDGER [--checkpoint FILE] [--against CHECKPOINT]
                   [--log-key VKEY] [--blobs DIR] [--ask QUESTION] [--summary [--full]] [--json]

This program shares no code with Clover: it was written from the byte-format pages in `schema/`, so that a
ledger need not be believed because the program that wrote it says so (the project's tests hold the two to each
other, over the samples beside this folder and over random ledgers). It hashes every line into the RFC 6962
tree, checks every signature strictly, replays keys, roles, budgets, seals and references, and compares the
tree with the signed checkpoints it is given.

  LEDGER         the export: ledger.jsonl, one entry line per event, the leaves of the tree; or the folder of an export,
                 whose ledger.jsonl and checkpoint are then read; or a bundle, a folder or one file
  --checkpoint   the signed note that came with the ledger
  --against      a checkpoint kept elsewhere (a pin, a witness's copy); older or newer than the ledger
  --log-key      the log's verifier key, learnt from somewhere else than the ledger
  --blobs        a folder with the referenced blobs, each file named by its BLAKE3 digest in hex
  --ask          a question beside the verdict: signers (who signed what), plans (was each in force before an
                 outcome could be seen), peeks (who saw what and what for), decisions (which are computed again)
  --summary      the verdict and all four on one page; with --full every row of them
  --json         one JSON object with every finding, in place of text

Exit: 0 verified, 3 findings, 4 not a ledger, 5 a file is missing, 2 wrong usage.
What it cannot see without the database (kept checkpoints, columns, read models) it says it did not check.

# The order of reading

A module imports only from those above it. In a hurry, read `rules/registry.py`, which has every rule once, then
`audit/walk.py`, which asks them, then the rules of what you came for.

  formats/limits.py           limits of the format; what is raised for input that is refused
  formats/canonical.py        canonical JSON (RFC 8785)
  formats/ed25519.py          strict Ed25519
  formats/tree.py             SHA-256 and the RFC 6962 tree
  formats/blake3.py           BLAKE3, which names blobs
  formats/characters.py       Unicode 13.0, and names that look alike
  formats/fields.py           types of fields: ids, times, keys, lists, closed objects
  formats/plain_yaml.py       the YAML of rubrics and patches

  events/shapes.py            objects that several kinds of events share
  events/kinds.py             the registry of kinds: data, signers, what may occur once
  events/commitments.py       digests that are signed, or committed to
  events/entry.py             one line: the envelope, then the signed body

  history/rulebooks.py        which rulebook asks which question
  history/records.py          what is kept of a key, an account, a manifest, a gate
  history/environments.py     environments that failed, their regimes, and what stands inside one
  history/looks.py            looks at an order of policies that are on record
  history/newest.py           the newest entries of each kind, and who signed them
  history/state.py            all that a rule may look at beside the entry
  history/labels.py           which seal a reveal opens, and what it shows
  history/iteration_folds.py  what rubrics, iterations, patches, releases and deployments change in the state
  history/model_folds.py      what endpoints, prices and runs of judges behind HTTP change in it
  history/synth_folds.py      what runs of optimizers change in it
  history/asked_folds.py      what runs that ask a model for something else than scores change in it
  history/sgd_folds.py        what runs that lower the loss of a prompt change in it
  history/repair_folds.py     what runs that repair a workflow change in it
  history/evidence_folds.py   what keys, budgets, labels, splits, fits and waivers change in it
  history/gate_folds.py       what families, manifests, units and gates change in it
  history/folds.py            the list of folds by kind

  rules/entries.py            place, clock, kind, signature, numbers, references, blobs
  rules/custody.py            keys, roles, experiments, budgets
  rules/newest_entries.py     through which entry an arbiter reads, and on whose entries a claim rests
  rules/labels.py             labels, seals, splits, scores
  rules/betting.py            the test of a gate, computed again
  rules/manifests.py          a manifest by itself, and what an amendment changes
  rules/plans.py              registration, countersignature, exposure, sealed plans
  rules/assumptions.py        releases to readers, protocols, waivers, conflicts
  rules/missing_prompts.py    which prompts the sides of a comparison have scores of
  rules/standing_plans.py     which plan stands, and what it says of estimates
  rules/obstacles.py          why an audit passes nothing, whatever its numbers are
  rules/earlier_looks.py      which look at an order came before a comparison
  rules/estimates.py          calibrators, estimates, comparisons, audits of transport
  rules/drift.py              drift of judges, and gates that it makes stale
  rules/rubrics.py            rubrics: grammar, hash, code length
  rules/patches.py            patches: grammar, effect, what they may change
  rules/verdicts.py           P0 to P10 from their figures
  rules/iterations.py         iterations, and steps before candidates are sealed
  rules/sealing.py            sealed candidates, and confirm labels that are shown
  rules/acceptance.py         what is accepted, and how an iteration ends
  rules/releases.py           approvals and commits
  rules/prompt_judges.py      judges that are told what a patch changes
  rules/deployments.py        deployments, recalibrations, guardrails, rollbacks
  rules/generators.py         generators that learn from a frozen judge
  rules/endpoints.py          endpoints of models, and where texts may go
  rules/runs.py               runs of judges behind HTTP: what is held, asked, answered and paid
  rules/noise.py              answers of such a judge that are asked for again
  rules/asked.py              runs that ask a model for something else than scores
  rules/synths.py             runs of optimizers: what they were shown, what they returned, what was proposed
  rules/sgd_lexicon.py        how strongly sentences of a prompt bind its judge
  rules/sgd_patch.py          whether a step may take a patch of a prompt
  rules/sgd_called.py         gradients and patches of such a run that a model wrote
  rules/sgd_prompts.py        the prompts that the steps of such a run left
  rules/sgd_numbers.py        losses, batches and stops of runs that lower the loss of a prompt
  rules/sgd_gate.py           the gate that holds the checkpoint of such a run against its first prompt
  rules/sgd_asked.py          scores of such a run whose judge is behind HTTP
  rules/sgd.py                those runs: what is due, who says it, and what follows from the record
  rules/repair_workflows.py   edits of a workflow: patches, and how much they touch
  rules/repair_feedback.py    feedback and scores of a workflow
  rules/repair_cells.py       plans of repairs in sixteen cells: the order and the tasks of their runs
  rules/repair_learning.py    updates of what repairs begin from
  rules/repair_claims.py      what such a plan predicts, and what becomes of it
  rules/repairs.py            runs that repair a workflow: what is due, who says it, and what follows from the record
  rules/batteries.py          batteries of attacks, and exploits
  rules/reports.py            reports, whole or with reasons
  rules/gates.py              orders that are drawn, gates that are opened or continued
  rules/observations.py       a gate's values, each the recorded one
  rules/grades.py             grades of gates, and promotions
  rules/looks.py              looks and decisions, computed again
  rules/families.py           families of gates, and claims that hold together
  rules/registry.py           every rule once, in order

  audit/blobs.py              blobs in a folder or a bundle
  audit/archive.py            the one form of ZIP archive that is read
  audit/checkpoints.py        signed notes against the tree
  audit/bundle.py             a bundle: a folder or an archive, and what its files say of the log
  audit/walk.py               each line is read, judged, folded, and made a leaf
  audit/questions.py          who signed what, plans, peeks, decisions
  audit/report.py             findings, what was not checked, the verdict
  audit/command_line.py       arguments, files, exit codes
"""

import os
import sys

sys.dont_write_bytecode = True
if __package__:                       # started with -m: the folders beside this file are found as without it
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from audit.command_line import main


def without_compiled_copy():
    """Python compiles this one file before its first line runs; a checkout stays as it was all the same."""
    compiled = getattr(__spec__, "cached", None)
    try:
        if compiled:
            os.remove(compiled)
            os.rmdir(os.path.dirname(compiled))
    except OSError:                   # nothing was written, or something else is there too
        pass


if __name__ == "__main__":
    without_compiled_copy()
    sys.exit(main(sys.argv[1:]))
