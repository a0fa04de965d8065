"""Looks at an order of policies that are on record: differences between checked policies, and checked values."""

from history.records import row_of_draw

CHECKED_CLAIMS = ("borrowed_checked", "own_labels")


class ContrastLook:
    """Differences of one family that were recorded on the same terms."""

    def __init__(self, entry, counted, labels):
        data = entry.data
        self.seq, self.experiment, self.counted, self.labels = entry.position, entry.experiment, counted, labels
        self.terms, self.correction, self.family = whole(data), data.get("correction"), frozenset(data["family"])
        self.judge, self.roots = data["terms"]["judge"], roots_of(data)
        self.claimed = "exploratory_since" not in data              # a difference of it named no earlier look

    def within(self, data):
        """Whether a difference may stand beside it: of as large a family or a larger one, of the same rows on the same terms."""
        return self.terms == whole(data) and self.correction == data.get("correction") and \
            self.family <= set(data["family"]) and \
            all(self.roots.get(policy, root) == root for policy, root in roots_of(data).items())

    def same(self, experiment, data):
        return self.experiment == experiment and self.family == set(data["family"]) and self.within(data)


class ValueLook:
    """A checked value."""

    def __init__(self, entry, labels):
        data = entry.data
        self.seq, self.experiment, self.labels = entry.position, entry.experiment, labels
        self.basis, self.policy, self.root = basis(data), data["policy"], data["rows_root"]
        self.claimed = False                                        # a value says nothing of an order

    def within(self, data):
        """Whether a difference rests on it."""
        return self.basis == basis(data) and self.policy in data["family"] and \
            roots_of(data).get(self.policy, self.root) == self.root


class Looks:
    """All of them."""

    def __init__(self):
        self.contrasts, self.values, self.labels = [], [], {}       # labels for calibration by experiment
        self.rows = {}                                              # (experiment, policy) -> row -> entries of such labels

    def take(self, state, entry):
        """Folds one accepted entry."""
        data, experiment = entry.data, entry.experiment
        labels = self.labels.get(experiment, 0)
        if experiment is None:
            return
        if entry.kind == "label.recorded" and data["purpose"] == "calibrate":
            self.labels[experiment] = labels + 1
            rows = self.rows.setdefault((experiment, data["policy"]), {})
            rows.setdefault(row_of_draw(data["policy"], data["item"], data["draw"]), []).append(entry.position)
        elif entry.kind == "contrast.recorded" and data.get("reading") in ("told_apart", "not_told_apart"):
            same = next((look for look in reversed(self.contrasts) if look.same(experiment, data)), None)
            if same:
                same.roots.update(roots_of(data))
                same.claimed = same.claimed or "exploratory_since" not in data
            else:
                self.contrasts.append(ContrastLook(entry, state.asks("earlier_looks"), labels))
        elif entry.kind == "estimate.recorded" and data["claim"] in CHECKED_CLAIMS and state.asks("earlier_looks"):
            look = ValueLook(entry, labels)
            known = ((of.experiment, of.policy, of.basis, of.root) for of in self.values)
            if (look.experiment, look.policy, look.basis, look.root) not in known:
                self.values.append(look)

    def own_labels(self, scored, experiment, policies):
        """The entries by which rows of these policies that a judge had scored got their first label for calibration since, in
        order; `scored` has the entry of each score by row."""
        rows = [pair for policy in set(policies) for pair in self.rows.get((experiment, policy), {}).items()]
        since = [[seq for seq in labels if seq > scored[row]] for row, labels in rows if row in scored]
        return sorted(labels[0] for labels in since if labels)


def whole(data):
    """What a difference was computed through, beside its rows."""
    return data["terms"], data.get("calibrator")


def basis(data):
    """The same without level and bootstrap, which move intervals alone."""
    terms = {name: value for name, value in data["terms"].items() if name not in ("alpha_micro", "bootstrap")}
    return terms, data.get("calibrator")


def roots_of(data):
    return {data["first"]: data["first_root"], data["second"]: data["second_root"]} if "first" in data else {}
