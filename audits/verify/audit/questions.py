"""Four questions that an auditor asks of a log: who signed what, which plans were in force before an outcome could be
seen, who saw what and what for, and which decisions this program computes again."""

from formats.limits import show
from events.kinds import KINDS

# What the rules compute again of a decision; of the others they judge the form, the references and the order.
COMPUTED = {
    "family.closed": "which claims hold, from the last looks",
    "gate.decided": "the outcome, from the last look",
    "gate.evaluated": "the verdict from its figures; not the figures",
    "gate.looked": "the test, from the values observed",
    "gate.observed": "each value, from the recorded scores",
    "order.drawn": "the order, from its checkpoint",
    "promotion.issued": "the grade",
}
# Decisions that another role than the arbiter signs, and kinds that a rule holds and nobody computes (schema/REPLAY.md).
OF_OTHER_ROLES = frozenset(("battery.evaluated", "confirm.unsealed", "gate.continued", "guardrail.checked",
                            "judge.drift_checked", "scores.recomputed", "synth.returned"))
HELD = frozenset(("gate.observed", "plan.revealed", "plan.sealed", "regime.selected", "sgd.batch_drawn",
                  "sgd.checkpoint_selected", "sgd.gradient_requested", "sgd.loss_computed", "sgd.patch_rejected",
                  "sgd.reverted", "sgd.step_committed", "sgd.stop_triggered", "sgd.stopped", "sgd.test_read"))
# Fields of an event that lets somebody see an outcome: whose outcome, and who was given it.
PEEKS = {
    "confirm.looked": ("iteration", None),
    "confirm.unsealed": ("iteration", None),
    "data.read": ("class", "reader"),
    "dev.objective_queried": ("iteration", "requester"),
    "exposure.opened": ("digest", None),
    "gate.looked": ("gate", None),
    "label.revealed": ("design", None),
}
# Kinds that put a row or a label on record.
ROWS = frozenset(("data.ingested", "label.recorded", "label.sealed", "score.recorded"))
# Roles whose entries decide something: what is computed, approved, committed or deployed.
DECIDING = frozenset(("approver", "arbiter", "releaser"))
QUESTIONS = ("signers", "plans", "peeks", "decisions")


def role_of(kind):
    """The role that a kind asks for."""
    roles = next((of.roles for (name, _), of in KINDS.items() if name == kind), frozenset())
    if roles:
        return " ".join(sorted(roles))
    spent = dict.fromkeys(("budget.charged", "budget.reserved", "budget.settled"), "spender")
    return {"ledger.created": "owner", **spent}.get(kind, "any")


class Tally:
    """Events that count as one: how many, the first and the last."""

    def __init__(self, seq):
        self.events, self.first, self.last = 0, seq, seq
        self.add(seq)

    def add(self, seq):
        self.events, self.last = self.events + 1, seq

    def fields(self):
        return {"events": self.events, "first_seq": self.first, "last_seq": self.last}


class Questions:
    """What is kept of each entry that could be read and that its author signed; those that broke another rule are kept
    too."""

    def __init__(self):
        self.signed, self.peeks, self.charges, self.first_rows = {}, [], {}, {}

    def take(self, state, entry):
        place = (entry.author, entry.kind)
        if place in self.signed:
            self.signed[place].add(entry.position)
        else:
            self.signed[place] = Tally(entry.position)
        if entry.kind in ROWS and entry.experiment is not None:
            self.first_rows.setdefault(entry.experiment, entry.position)
        if entry.kind == "budget.charged":
            self.charges[entry.id.hex()] = (entry.data["account"], entry.data["for"])
        if entry.kind in PEEKS:
            self.peek(state, entry)

    def peek(self, state, entry):
        whose, reader = PEEKS[entry.kind]
        of = entry.data[whose]
        if whose == "digest":
            named = [name for name, record in state.manifests.items() if record.version(of)]
            of = named[0] if named else of
        account, purpose = self.charges.get(entry.data.get("charge"), (None, None))
        paid = entry.data.get("charge") if account else None
        seen = {"kind": entry.kind, "of": of, "by": entry.author, "reader": entry.data[reader] if reader else None,
                "purpose": entry.data.get("purpose", purpose), "account": account, "charge": paid,
                "given": entry.data.get("outcome", "allowed") == "allowed"}
        if self.peeks and self.peeks[-1][0] == seen:
            self.peeks[-1][1].add(entry.position)
        else:
            self.peeks.append((seen, Tally(entry.position)))

    def signers(self, state):
        return [{"key": author, "holder": holder_of(state, author), "role": role_of(kind), "kind": kind,
                 **tally.fields()} for (author, kind), tally in sorted(self.signed.items())]

    def plans(self, state):
        return [plan(state, name, record, self.first_rows.get(record.experiment))
                for name, record in sorted(state.manifests.items())]

    def seen(self, state):
        return [{**seen, "holder": holder_of(state, seen["by"]), "reader_holder": holder_of(state, seen["reader"]),
                 **tally.fields()} for seen, tally in self.peeks]

    def decisions(self, _state):
        kinds = {}
        for (_, kind), tally in self.signed.items():
            kinds.setdefault(kind, []).append(tally)
        decided = []
        for kind, tallies in sorted(kinds.items()):
            if kind in HELD or kind in OF_OTHER_ROLES or role_of(kind) in DECIDING:
                decided.append({"kind": kind, "events": sum(tally.events for tally in tallies),
                                "first_seq": min(tally.first for tally in tallies),
                                "last_seq": max(tally.last for tally in tallies),
                                "check": check_of(kind), "computed_again": COMPUTED.get(kind)})
        return decided

    def answers(self, state, asked):
        """The answers to the questions that were asked, by name."""
        ask = {"signers": self.signers, "plans": self.plans, "peeks": self.seen, "decisions": self.decisions}
        return {name: ask[name](state) for name in asked}


def check_of(kind):
    """What is done with a decision: a rule judges it, nobody can but those who said it, or it is computed again."""
    if kind in HELD:
        return "rule"
    return "said" if kind not in OF_OTHER_ROLES and role_of(kind) in ("approver", "releaser") else "again"


def holder_of(state, author):
    key = state.keys.get(author)
    return key.holder if key else None


def first_seen(state, record):
    """When an outcome of a plan could first be seen: of one that says how policies are compared, or how overlap is judged, the
    first score or label; of one of drift, the first anchor set."""
    said = [(version.manifest, version.manifest.get("diagnostics", {})) for version in record.versions]
    compares = any("estimates" in manifest or "overlap" in numbers for manifest, numbers in said)
    outcome = state.first_outcome.get(record.experiment) if compares else None
    checks = any("drift" in numbers for _, numbers in said)
    anchors = state.first_anchors.get(record.experiment) if checks else None
    all_ = (record.first_look, record.first_probe, outcome, anchors)
    return min((seq for seq in all_ if seq is not None), default=None)


def plan(state, name, record, row):
    """When a plan came into force, when its first row came, and when an outcome of it could first be seen."""
    standing = [version for version in record.versions if version.countersigned or not version.needs]
    look = first_seen(state, record)
    if look is None:
        timing = "unseen"
    else:
        timing = "before" if any(version.since < look for version in standing) else "after"
    later = [] if look is None else [version for version in record.versions[1:] if version.seq > look]
    since = standing[0].since if standing else None
    row_timing = "unseen" if row is None else "before" if since is not None and since < row else "after"
    return {"manifest": name, "experiment": record.experiment, "versions": len(record.versions),
            "in_force_seq": since, "first_row_seq": row, "row_timing": row_timing, "first_look_seq": look, "timing": timing,
            "amended_after": len(later), "deviations": len(record.deviations)}


HEADS = {
    "signers": ("Who signed what, in which role", ("holder", "key", "role", "kind", "events", "first_seq", "last_seq")),
    "plans": ("Was each plan in force before its first row, and before its first outcome?",
              ("manifest", "versions", "in_force_seq", "first_row_seq", "row_timing", "first_look_seq", "timing", "amended_after",
               "deviations")),
    "peeks": ("Every peek, and what for", ("first_seq", "last_seq", "kind", "of", "events", "reader_holder",
                                           "holder", "given", "purpose", "account")),
    "decisions": ("Which decisions this program computes again; `clover replay --all` computes the others",
                  ("kind", "events", "first_seq", "last_seq", "computed_again")),
}


def as_tables(answers):
    """The answers for people."""
    lines = []
    for name, rows in answers.items():
        title, columns = HEADS[name]
        lines += [title] + ([] if rows else ["  none"])
        cells = [[column.replace("_", " ") for column in columns]] if rows else []
        cells += [[cell(row, column) for column in columns] for row in rows]
        widths = [max(len(row[place]) for row in cells) for place in range(len(columns))] if cells else []
        lines += [("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths))).rstrip() for row in cells]
        lines.append("")
    return lines


# What a decision is held to where this program does not compute it again, by how `clover audit decisions` checks it.
ELSEWHERE = {"again": "not here, by clover replay", "rule": "judged by a rule", "said": "no"}


def cell(row, column):
    value = row[column]
    if value is None:
        return ELSEWHERE[row["check"]] if column == "computed_again" else "-"
    if isinstance(value, bool):
        return "yes" if value else "refused"
    text = show(str(value))
    return text[:8] if column == "key" else text


def count(number, one, several):
    return "%d %s" % (number, one if number == 1 else several)


def few(names):
    names = [show(name) for name in names]
    return ", ".join(names[:5]) + (" and %d more" % (len(names) - 5) if len(names) > 5 else "")


def signed_in_words(rows):
    holders = {}
    for row in rows:
        events, roles = holders.get(show(row["holder"] or "unknown"), (0, set()))
        holders[show(row["holder"] or "unknown")] = (events + row["events"], roles | {row["role"]})
    return "; ".join("%s %s as %s" % (holder, count(events, "event", "events"), ", ".join(sorted(roles)))
                     for holder, (events, roles) in sorted(holders.items()))


def plans_in_words(rows):
    if not rows:
        return "none was registered"
    by = {timing: [row["manifest"] for row in rows if row["timing"] == timing]
          for timing in ("before", "unseen", "after")}
    before_rows = sum(row["row_timing"] == "before" for row in rows)
    return "%s: %d in force before the first row, %d before the first outcome, %d with nothing seen yet%s; %s after it, %s" % (
        count(len(rows), "plan", "plans"), before_rows, len(by["before"]), len(by["unseen"]),
        ", NOT in force before it: %s" % few(by["after"]) if by["after"] else "",
        count(sum(row["amended_after"] for row in rows), "amendment", "amendments"),
        count(sum(row["deviations"] for row in rows), "deviation", "deviations"))


def peeks_in_words(rows):
    if not rows:
        return "nobody saw an outcome that was kept back"
    given = [row["kind"] for row in rows if row["given"]]
    kinds = ["%d %s" % (given.count(kind), kind) for kind in sorted(set(given))]
    refused = len(rows) - len(given)
    # One charge may open labels of several policies, at several places of the log; accounts count charges.
    charges = len({row["charge"] for row in rows if row["charge"] is not None})
    return "%s (what accounts count), by which outcomes were seen %s: %s%s" % (
        count(charges, "charge", "charges"), count(len(given), "time", "times"), few(kinds),
        "; %d refused" % refused if refused else "")


def decisions_in_words(rows):
    if not rows:
        return "nothing was decided yet"
    again = sum(row["events"] for row in rows if row["check"] == "again")
    here = sum(row["events"] for row in rows if row["computed_again"] and row["check"] == "again")
    rule = sum(row["events"] for row in rows if row["check"] == "rule")
    said = [row for row in rows if row["check"] == "said"]
    taken = ", %d taken as said: %s" % (sum(row["events"] for row in said), few([row["kind"] for row in said])) if said else ""
    return "%d of kinds that can be computed again (%d were, here; `clover replay --all` computes all), %d judged by rules%s" % (
        again, here, rule, taken)


def as_page(answers, not_claimed):
    """The answers for people, on one page: `--full` lists each key, plan, peek and kind of decision."""
    rows = (("signed", signed_in_words(answers["signers"])), ("plans", plans_in_words(answers["plans"])),
            ("peeks", peeks_in_words(answers["peeks"])), ("decisions", decisions_in_words(answers["decisions"])),
            ("not claimed", "; ".join(not_claimed)))
    return ["%-11s  %s" % row for row in rows]
