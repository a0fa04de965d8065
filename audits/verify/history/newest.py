"""The newest entries of each kind that estimates read, and who signed them; rows and clusters in the order of the log."""

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

    def newest_score(self, judge):
        return max((seq for signers in self.scores.get(judge, {}).values() for seq in signers.values()), default=0)

    def newest_label(self):
        return max((seq for signers in self.labels.values() for seq in signers.values()), default=0)

    def kept_for_confirm(self, policy, design, judge, rows):
        """How many of a policy's first rows are in clusters that were kept for confirm when its first probe was named; of
        more than ROWS_HELD, as many as the share of those first ones says, rounded down."""
        kept = set(self.confirm[:self.confirmed.get((policy, design), len(self.confirm))])
        held = self.items.get((policy, judge), [])[:rows]
        found = sum(item in kept for item in held)
        return found if rows <= len(held) or not held else found * rows // len(held)

    def named(self, policy, design):
        self.confirmed.setdefault((policy, design), len(self.confirm))

    def tainted(self, state, judge, policy, calibrator):
        """The first key whose entries from its compromise on an estimate rests on, or None."""
        def bad(key, seq):
            return key in state.compromised and state.compromised[key] <= seq
        signers = list(self.labels.values())
        signers += [of for name, of in self.scores.get(judge, {}).items() if name == policy or name in self.labels]
        found = next((key for of in signers for key, seq in of.items() if bad(key, seq)), None)
        fits = self.fits.get(calibrator, {})
        all_bad = fits and all(bad(key, seq) for key, seq in fits.items())
        return found or (max(fits) if all_bad else None)


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
    elif kind == "label.sealed" and state.designs.get((entry.experiment, data["design"])) == "audit":
        draw = draw_of_row(data["row"])
        if draw is not None:
            of.named(draw[0], data["design"])
    elif kind == "splits.listed" and data["part"] == "confirm":
        of.confirm += data["clusters"]
    elif kind == "calibrator.fitted":
        of.fits.setdefault(data["calibrator"], {})[entry.author] = seq
    elif kind in ("environments.tested", "transport.tested"):
        of.audits[data["terms"]["judge"]] = seq
    elif kind == "judge.drift_checked":
        of.drifts[data["judge"]] = seq
    elif kind == "regime.selected":
        of.audits[data["judge"]] = seq
    elif kind == "data.ingested":
        of.imports = seq
    elif kind in ("logprob.recorded", "logprobs.checked"):
        of.logged[data["policy"]] = seq
