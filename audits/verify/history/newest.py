"""The newest entries of each kind that estimates read, and who signed them; rows and clusters in the order of the log."""

from history.environments import scope_key
from history.records import draw_of_row

ROWS_HELD = 4096                                              # rows of a policy of which the items are held, for each judge

class Entries:
    """What one experiment has."""

    def __init__(self):
        self.scores, self.labels, self.fits = {}, {}, {}      # judge -> policy -> signers; policy -> signers; likewise
        self.drifts = {}                                      # judge -> newest check
        self.audits, self.logged, self.imports = {}, {}, 0    # judge -> newest; policy -> newest; newest
        self.items = {}                                       # (policy, judge) -> items of its first rows
        self.confirm, self.confirmed = [], {}                 # clusters; (policy, design) -> how many stood then
        self.formed, self.labelled = 0, False                 # how many of formed splits; whether a label could be read
        self.passed, self.probes = {}, {}                     # judge -> audits; design -> policy -> signers

    def newest_score(self, judge):
        return max((seq for signers in self.scores.get(judge, {}).values() for seq in signers.values()), default=0)

    def newest_label(self):
        return max((seq for signers in self.labels.values() for seq in signers.values()), default=0)

    def kept_for_confirm(self, policy, design, judge, rows, formed):
        """How many of a policy's first rows are in clusters that were kept for confirm when its first probe was named; of
        more than ROWS_HELD, as many as the share of those first ones says, rounded down. Where they have to be formed, their
        split was formed before the first label could be read."""
        listed = self.confirmed.get((policy, design), len(self.confirm))
        kept = set(self.confirm[:min(listed, self.formed) if formed else listed])
        held = self.items.get((policy, judge), [])[:rows]
        found = sum(item in kept for item in held)
        return found if rows <= len(held) or not held else found * rows // len(held)

    def named(self, policy, design):
        self.confirmed.setdefault((policy, design), len(self.confirm))

    def tainted(self, state, judge, policy, calibrator):
        """The first key whose entries from its compromise on an estimate rests on, or None."""
        def bad(key, seq):
            return compromised(state, key, seq)
        signers = list(self.labels.values())
        signers += [of for name, of in self.scores.get(judge, {}).items() if name == policy or name in self.labels]
        found = next((key for of in signers for key, seq in of.items() if bad(key, seq)), None)
        fits = self.fits.get(calibrator, {})
        all_bad = fits and all(bad(key, seq) for key, seq in fits.items())
        return found or (max(fits) if all_bad else None)

    def tainted_judges(self, state, judges):
        """The first key whose labels, or scores by either judge of a labelled policy, came after its compromise, or None."""
        signers = list(self.labels.values())
        signers += [of for judge in judges for name, of in self.scores.get(judge, {}).items() if name in self.labels]
        return next((key for of in signers for key, seq in of.items() if compromised(state, key, seq)), None)

    def tainted_audit(self, state, judge, policy, scope):
        """The first audit that passed for a policy on entries of a compromised key, as (seq, key), or None. A later pass of the
        same by as many prompts, on sound entries, takes its place."""
        passed = self.passed.get(judge, ())
        for at, (same, prompts, *entry) in enumerate(passed):
            if same[0] == "policy" and same[1:] != (policy, scope):
                continue
            key = self.audit_key(state, same, *entry)
            later = (of for of in passed[at + 1:] if of[0] == same and of[1] >= prompts)
            if key and not any(self.audit_key(state, *of[:1], *of[2:]) is None for of in later):
                return entry[2], key

    def audit_key(self, state, same, author, design, seq):
        """The first key that signed an audit, or one of its probes, from its compromise on, or None."""
        if compromised(state, author, seq):
            return author
        policies = self.probes.get(design, {})
        signers = [of for name, of in policies.items() if same[0] == "family" or same[1] == name]
        return next((key for of in signers for key, seq in of.items() if compromised(state, key, seq)), None)


def compromised(state, key, seq):
    return key in state.compromised and state.compromised[key] <= seq


def take(state, entry, data):
    """Folds one accepted entry."""
    if entry.experiment is None:
        return
    of, kind, seq = state.entries(entry.experiment), entry.kind, entry.position
    if kind == "score.recorded":
        of.scores.setdefault(data["judge"], {}).setdefault(data["policy"], {})[entry.author] = seq
        items = of.items.setdefault((data["policy"], data["judge"]), [])
        if len(items) < ROWS_HELD:
            items.append(data["item"])
    elif kind == "label.recorded" and data["purpose"] == "calibrate":
        of.labels.setdefault(data["policy"], {})[entry.author] = seq
    elif kind == "label.recorded":
        of.named(data["policy"], data["design"])
        of.probes.setdefault(data["design"], {}).setdefault(data["policy"], {})[entry.author] = seq
    elif kind in ("label.sealed", "label.revealed"):
        draw = draw_of_row(data["row"])
        if draw is not None:
            of.probes.setdefault(data["design"], {}).setdefault(draw[0], {})[entry.author] = seq
            if kind == "label.sealed" and state.designs.get((entry.experiment, data["design"])) == "audit":
                of.named(draw[0], data["design"])
    elif kind == "splits.listed" and data["part"] == "confirm":
        of.confirm += data["clusters"]
    elif kind == "splits.formed" and not of.labelled:
        of.formed = len(of.confirm)
    elif kind == "calibrator.fitted":
        of.fits.setdefault(data["calibrator"], {})[entry.author] = seq
    elif kind in ("environments.tested", "transport.tested"):
        of.audits[data["terms"]["judge"]] = seq
        passes = [data["state"]] if kind == "transport.tested" else [one["verdict"] for one in data["environments"]]
        if "pass" in passes:
            scope = scope_key(data["terms"].get("environment"))
            family = kind == "environments.tested"
            same = ("family", data["family"]) if family else ("policy", data["policy"], scope)
            prompts = data["probes" if family else "clusters"]
            of.passed.setdefault(data["terms"]["judge"], []).append((same, prompts, entry.author, data["design"], seq))
    elif kind == "judge.drift_checked":
        of.drifts[data["judge"]] = seq
    elif kind == "regime.selected":
        of.audits[data["judge"]] = seq
    elif kind == "data.ingested":
        of.imports = seq
    elif kind in ("logprob.recorded", "logprobs.checked"):
        of.logged[data["policy"]] = seq
    of.labelled = of.labelled or kind in ("label.recorded", "label.revealed")
