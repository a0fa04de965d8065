"""The gate of a run: of which run it is, what a cluster of confirm is worth, and what a promotion rests on."""

from bisect import bisect_left, bisect_right

from events.commitments import length_prefixed
from formats.fields import b64
from formats.tree import Tree, sha256

METRIC, ONE = "agreement", 10 ** 6


def confirm_root(run):
    """The root over the clusters that a run keeps for confirm."""
    tree = Tree()
    for item in dict.fromkeys(row["item"] for row in run.rows["confirm"]):
        tree.append(sha256(b"\0", length_prefixed(item)))
    return b64(tree.root(tree.size))


def metric_digest(run):
    """The digest that stands for the judge in the plan of a run's gate; None before its checkpoint was chosen."""
    if run.checkpoint is None:
        return None
    parts = (run.data["seed"], run.data["prompt_digest"], run.checkpoint["prompt_digest"])
    return sha256(b"clover/sgd/gate/v1\0", *(bytes.fromhex(part) for part in parts)).hex()


def run_of_plan(state, manifest):
    metric = manifest.get("metric")
    if not metric or metric["metric"] != METRIC:
        return None
    return next((run for _, run in sorted(state.descents.items()) if metric_digest(run) == metric["judge_digest"]), None)


def rounded(total, by):
    """A quotient of two numbers that are not negative, to the nearest, half up."""
    return (2 * total + by) // (2 * by)


class Items:
    """The items of rows, which ascend, as `bisect` reads them."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        return self.rows[at]["item"]


def agreement(run, prompt, unit):
    """1 less the mean over its rows of the distance of mean score and target, in millionths; None before all were scored."""
    rows, scores = run.rows["confirm"], run.confirm.get(prompt)
    if scores is None or len(scores) != run.count("confirm"):
        return None
    # What could not be read is as far as can be under the checkpoint, and at its target under prompt 0.
    none = 0 if prompt == run.data["prompt_digest"] else ONE
    # Rows ascend by item: those of a cluster are neighbours.
    own = slice(bisect_left(Items(rows), unit), bisect_right(Items(rows), unit))
    found = [min(ONE, rounded(abs(sum(of) - len(of) * row["target_micro"]), len(of)) if of else none)
             for row, of in zip(rows[own], scores[own])]
    return ONE - rounded(sum(found), len(found)) if found else None


def agreement_problem(state, e):
    """A score that a gate of a run reads is what the scores of confirm give."""
    if not state.descents:
        return None
    for name, record_ in sorted(state.manifests.items()):
        gate = state.gates_by_id.get(name)
        if record_.experiment != e.experiment or gate is None:
            continue
        if not any(source.get("judge") == e.data["judge"] for source in gate.sources):
            continue
        bound = record_.bound()
        run = bound and run_of_plan(state, bound.manifest)
        arm = run and next((of for of in bound.manifest.get("arms", []) if of["id"] == e.data["policy"]), None)
        if not arm:
            continue
        value = agreement(run, arm["artifact_digest"], e.data["item"])
        if value is None:
            return "sgd.scored of confirm of %s under %s" % (run.data["run"], arm["artifact_digest"]), "none"
        if e.data["score_micro"] != value:
            return "%s %d of %s, as %s scored it" % (METRIC, value, e.data["item"], run.data["run"]), str(e.data["score_micro"])
    return None


def confirm_problem(state, run, data):
    """Confirm is scored after the end, under prompt 0 and the checkpoint, while a gate of the run is open."""
    name = run.data["run"]
    if run.end != "completed" or run.checkpoint is None:
        return "the end of %s, completed, before confirm is scored" % name, "none"
    if data["prompt_digest"] not in (run.data["prompt_digest"], run.checkpoint["prompt_digest"]):
        return "confirm under prompt 0 or the checkpoint", data["prompt_digest"]
    for gate, record_ in state.manifests.items():
        opened, bound = state.gates_by_id.get(gate), record_.bound()
        if opened is None or opened.decided or bound is None or run_of_plan(state, bound.manifest) is not run:
            continue
        of = bound.manifest.get("data")
        if of and of["confirm_root"] == confirm_root(run) and record_.units >= of["n_units"]:
            return None
    return "an undecided gate of %s with every cluster of confirm exposed before" % name, "none"


def claim_problem(state, run, gate, manifest):
    """A gate on which a prompt of a run is promoted claims that it agrees more with the labels, by the run's metric."""
    name, metric = run.data["run"], manifest.get("metric")
    if not metric or metric["metric"] != METRIC or metric["judge_digest"] != metric_digest(run):
        return "metric %s of %s, judge_digest %s" % (METRIC, name, metric_digest(run)), "another"
    if (metric["scale_lo_micro"], metric["scale_hi_micro"], metric["repeats"], metric["direction"]) != (0, ONE, 1, "increase"):
        return "one value of a cluster from 0 to 1, more is better", "another scale"
    margin = manifest.get("test", {}).get("null_margin_micro", -1)
    if manifest["hypothesis"]["kind"] != "promote" or margin < 0:
        return "a claim to promote with a margin of 0 or more", gate
    candidate = next((arm["artifact_digest"] for arm in manifest.get("arms", []) if arm["role"] == "candidate"), None)
    if candidate != run.checkpoint["prompt_digest"]:
        return "the checkpoint of %s as candidate" % name, gate
    opened = state.gates_by_id.get(gate)
    if opened is None or not opened.sources or "judge" not in opened.sources[0]:
        return "values that follow from scores of %s" % name, "labels"
    return None
