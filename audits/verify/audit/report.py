"""What was found, what was not checked, and the verdict, as text or as JSON."""

import json

from formats.limits import CLOCK_AHEAD, FINDINGS_SHOWN, show
from formats.fields import b64
from history.rulebooks import questions_not_asked, rulebooks_in_words
from rules.registry import RANK
from audit.checkpoints import judge_identity
from audit.questions import as_page, as_tables


class Report:
    """Findings by place and rule, and what else is said beside the verdict."""

    def __init__(self):
        self.findings, self.notes, self.not_checked, self.tainted = [], [], [], []

    def add(self, seq, rule, expected, found):
        self.findings.append((seq, RANK[rule], rule, show(expected), show(found)))


def conclude(state, report, options, checkpoints):
    """Notes, tainted events and what was not checked, once the walk is over."""
    for key_id, since in sorted(state.compromised.items()):
        report.tainted += [seq for seq in state.seqs_of.get(key_id, ()) if seq >= since]
    report.tainted.sort()
    judge_identity(state, report, options.log_key, checkpoints, options.against)
    report.not_checked += [] if options.blobs else ["blobs"]
    if not options.checkpoint:
        report.not_checked.append("checkpoint")
    elif checkpoints[0].size is not None and checkpoints[0].size < state.tree.size:
        report.not_checked.append("checkpoint after seq %d" % (checkpoints[0].size - 1))
    if state.format == 1:
        report.not_checked += ["possession (format 1)", "experiment (format 1)"]
    if state.unread:
        report.not_checked.append("documents beyond plain YAML at seq %s" % ", ".join(map(str, state.unread)))
    if state.newer:
        report.not_checked.append("the normal form of ids newer than Unicode 13.0 at seq %s"
                                  % ", ".join(map(str, state.newer)))
    report.not_checked += ["kept checkpoints", "database", "recompute"]
    if state.origin is not None:
        report.notes.append("policy %s" % ("strict" if state.strict else "solo: every derived claim is self-governed"))
    end = state.last_recorded[0] if state.last_recorded else 0
    late = sorted(seal.seq for seals in state.seals.values() for seal in seals
                  if not seal.revealed and seal.reveal_by < end)
    if late:
        report.notes.append("%d sealed labels not revealed by their deadline, first at seq %d" % (len(late), late[0]))
    for name, (seq, what, role) in sorted(state.taints.items()):
        report.notes.append("%s is tainted: at seq %d %s was released to a key in role %s" % (name, seq, what, role))
    for name, of in sorted(state.deploys.items(), key=lambda pair: pair[0]):
        if of.checked and of.checked[1]:
            report.notes.append("%s runs on after the breach at seq %d: its rollback is not on record" % (name, of.checked[2]))
    steps = [seq for seq in range(1, len(state.times)) if state.times[seq] - state.times[seq - 1] > CLOCK_AHEAD]
    if steps:
        report.notes.append("recorded_at steps ahead by more than 400 days %d times, first at seq %d: no later entry "
                            "may be earlier" % (len(steps), steps[0]))
    for seq, size, root in state.attestations:
        if size > state.tree.size or b64(state.tree.root(size)) != root:
            report.notes.append("audit.attested at seq %d names a root that this tree does not have at size %d"
                                % (seq, size))
    report.findings.sort(key=lambda finding: finding[:2])


def as_json(state, report, answers):
    """The report for programs: every finding, and answers to what was asked."""
    findings = [dict(zip(("seq", "rule", "expected", "found"), (seq, rule, expected, found)))
                for seq, _, rule, expected, found in report.findings]
    first = {name: findings[0][name] for name in ("seq", "rule")} if findings else None
    return json.dumps({"verdict": "fail" if findings else "pass", "events": state.tree.size,
                       "root": b64(state.tree.root(state.tree.size)), "findings": findings, "first": first,
                       "rulebooks": state.rulebooks, "not_asked": questions_not_asked(state),
                       "not_checked": report.not_checked, "tainted": report.tainted, "notes": report.notes,
                       **({"answers": answers} if answers else {})})


def not_claimed(state, report):
    """What nobody may read out of the page."""
    return ["that what was recorded is true or complete", "what anybody saw in private"] + (
        [] if state.strict else ["that roles were kept apart: one person may hold all (solo)"]) + [
        "NOT CHECKED: " + ", ".join(report.not_checked)]


def as_text(state, report, answers, page=False):
    """The report for people; its last line is the verdict, the first one of a page."""
    if page:
        lines = verdict_and_findings(state, report)
        return "\n".join([lines[-1], ""] + as_page(answers, not_claimed(state, report)) + lines[:-1])
    return "\n".join(as_tables(answers) + verdict_and_findings(state, report))


def verdict_and_findings(state, report):
    """Findings and notes; the last line is the verdict."""
    lines = ["seq %d  %s  expected: %s  found: %s" % (seq, rule, expected, found)
             for seq, _, rule, expected, found in report.findings[:FINDINGS_SHOWN]]
    if len(report.findings) > FINDINGS_SHOWN:
        lines.append("... and %d more findings (--json shows all)" % (len(report.findings) - FINDINGS_SHOWN))
    if report.tainted:
        more = " and %d more" % (len(report.tainted) - 50) if len(report.tainted) > 50 else ""
        lines.append("tainted (events of a compromised key): seq %s%s"
                     % (", ".join(map(str, report.tainted[:50])), more))
    lines += ["note: " + note for note in report.notes]
    for name, reason in (("identity", "a forged ledger with its own keys agrees with itself; give --log-key with "
                          "--checkpoint, or --against"), ("blobs", "give --blobs DIR")):
        if name in report.not_checked:
            lines.append("%s NOT CHECKED: %s" % (name, reason))
    unchecked = " \u00b7 " + rulebooks_in_words(state) + " \u00b7 NOT CHECKED: " + ", ".join(report.not_checked)
    if report.findings:
        seq, _, rule = report.findings[0][:3]
        count = "%d finding%s" % (len(report.findings), "" if len(report.findings) == 1 else "s")
        lines.append("FAILED  %s, first at seq %d (%s)%s" % (count, seq, rule, unchecked))
    else:
        root = b64(state.tree.root(state.tree.size))
        lines.append("VERIFIED  %d events \u00b7 %d signers \u00b7 root %s%s"
                     % (state.tree.size, len(state.signers), root, unchecked))
    return lines
