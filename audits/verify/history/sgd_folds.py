"""Folds of runs that lower the loss of a judge's prompt into the state (`schema/SGD.md`)."""

from formats.fields import b64
from formats.tree import sha256

LISTED = ("train", "val", "test", "confirm")
ATTEMPTS_MAX = 3


class SgdRun:
    """A run: its rows, what it scored, its steps, and what is due."""

    def __init__(self, entry, data):
        self.experiment, self.seq, self.data = entry.experiment, entry.position, data
        self.rows = {split: [] for split in LISTED}
        self.base, self.train, self.best_scores, self.steps, self.test = [], [], [], [], {}
        self.confirm, self.test_asked = {}, False
        self.base_loss = self.val_loss = self.stop = self.checkpoint = self.test_read = self.end = None

    def count(self, split):
        return self.data["splits"][split]["count"]

    def taken(self):
        return sum(1 for step in self.steps if step.committed)

    def going(self):
        return self.steps[-1] if self.steps and not self.steps[-1].committed else None

    def digest(self):
        for step in reversed(self.steps):
            if step.reverted:
                return step.reverted["to_digest"]
            if step.committed:
                return step.committed["new_digest"]
        return self.data["prompt_digest"]

    def digest_at(self, place):
        return self.steps[place - 1].committed["new_digest"] if place else self.data["prompt_digest"]

    def val_at(self, place):
        return self.steps[place - 1].committed["val"] if place else self.val_loss

    def best(self):
        return next((step.committed["best"] for step in reversed(self.steps) if step.committed), 0)

    def last_step(self):
        most = self.data["terms"]["steps"]
        return min(most, self.stop["step"] + 1 + self.stop["extra"]) if self.stop else most

    def due(self):
        """What is due, in the words of `schema/SGD.md`; None after the end."""
        if self.end:
            return None
        for split in LISTED:
            if len(self.rows[split]) < self.count(split):
                return "rows", split
        if len(self.base) < self.count("train"):
            return "scores", "base"
        if self.base_loss is None:
            return "loss", "base"
        if not self.steps and len(self.best_scores) < self.count("val"):
            return "scores", "val"
        if self.val_loss is None:
            return "loss", "val"
        step = self.going()
        return self.due_in(step) if step else self.due_between()

    def awaited(self):
        """(place, digest) of the ask of a model that waits: the request for a gradient, or the gradient that patches answer."""
        due, step = self.due(), self.going()
        if "asked" not in self.data or due is None or step is None:
            return None
        first = self.taken() * (1 + ATTEMPTS_MAX)
        if due[0] == "gradient":
            return first, step.request["request_digest"]
        if due[0] == "proposal":
            return first + 1 + len(step.proposed), sha256(step.gradient["gradient"].encode("utf-8")).hex()
        return None

    def due_between(self):
        if self.taken() < self.last_step():
            return "batch", None
        if self.checkpoint is None:
            return "checkpoint", None
        return ("test", None) if self.test_read is None else ("end", None)

    def due_in(self, step):
        if len(step.scores) < len(step.batch["rows"]):
            return "scores", "batch"
        if step.train is None:
            return "loss", "batch"
        if step.request is None:
            return "request", None
        if step.gradient is None:
            return "gradient", None
        if step.standing() is None:
            return ("proposal" if len(step.rejected) < ATTEMPTS_MAX else "commit"), None
        if not step.val_scores:
            return "judgement", None
        if len(step.val_scores) < self.count("val"):
            return "scores", "val"
        return ("loss", "val") if step.val is None else ("commit", None)


class SgdStep:
    """A step as far as it went."""

    def __init__(self, batch):
        self.batch, self.scores, self.val_scores, self.proposed, self.rejected, self.words = batch, [], [], [], [], {}
        self.train = self.val = self.request = self.gradient = self.committed = self.reverted = None

    def standing(self):
        return self.proposed[len(self.rejected)] if len(self.proposed) > len(self.rejected) else None


def beacon_above(state, experiment, seen):
    """The first checkpoint above the newest label of an experiment; where none is named yet, an entry that names `seen` does."""
    newest, named = state.label_beacons.get(experiment, (None, None))
    if named is None and newest is not None and seen and seen[0] > newest:
        named = {"root": b64(seen[1]), "size": seen[0]}
    return named


def take(state, entry, data):
    kind = entry.kind
    if entry.seen:
        for of in state.label_beacons.values():
            if of[1] is None and of[0] < entry.seen[0] <= entry.position:
                of[1] = {"root": b64(entry.seen[1]), "size": entry.seen[0]}
    if kind == "experiment.registered":
        state.registrations.setdefault(entry.experiment, entry.id.hex())
    elif kind == "label.recorded" and data["purpose"] == "calibrate":
        state.calibrating[entry.experiment] = entry.position
        state.label_beacons[entry.experiment] = [entry.position, None]
    elif kind in ("judge.registered", "judge_run.opened", "score.missed", "score.recorded"):
        asked(state, entry, data)
    elif kind == "sgd.opened" and entry.experiment is not None:
        state.descents.setdefault(data["run"], SgdRun(entry, data))
    elif kind.startswith("sgd."):
        if kind == "sgd.scored":
            state.judged.add(entry.author)
        run = state.descents.get(data["run"])
        if run:
            told(run, kind, data)


def asked(state, entry, data):
    """What judges behind HTTP that are told the prompts of runs come to."""
    if entry.kind == "judge.registered":
        if "of" in data and data["port"] == "endpoint" and entry.experiment is not None:
            state.told.setdefault(entry.experiment, {}).setdefault(data["judge"], {})
        return
    if entry.kind == "judge_run.opened":
        run = state.descents.get(data.get("sgd", {}).get("run"))
        if run and data["sgd"]["part"] == "test":
            run.test_asked = True
        return
    rows = state.told.get(entry.experiment, {}).get(data["judge"])
    if rows is None:
        return
    row = rows.setdefault((data["item"], data["policy"], data["draw"]), [None, 0, None])
    if entry.kind == "score.recorded":
        row[0] = data["score_micro"]
    else:
        row[1], row[2] = row[1] + 1, data["reason"]


def told(run, kind, data):
    step = run.steps[-1] if run.steps else None
    if kind == "sgd.rows_listed":
        run.rows[data["split"]] += data["rows"]
    elif kind == "sgd.scored":
        scored(run, step, data)
    elif kind == "sgd.loss_computed":
        part = data["part"]
        if part == "base":
            run.base_loss = data["loss"]
        elif part == "batch" and step:
            step.train = data["loss"]
        elif part == "val" and step:
            step.val = data["loss"]
        elif part == "val":
            run.val_loss = data["loss"]
    elif kind == "sgd.batch_drawn":
        run.steps.append(SgdStep(data))
    elif kind == "sgd.step_committed":
        committed(run, data)
    elif kind == "sgd.stop_triggered":
        run.stop = run.stop or data
    elif kind == "sgd.checkpoint_selected":
        run.checkpoint = run.checkpoint or data
    elif kind == "sgd.test_read":
        run.test_read = run.test_read or data
    elif kind == "sgd.stopped":
        run.end = run.end or data["reason"]
    elif step:
        step_told(step, kind, data)


def step_told(step, kind, data):
    if kind == "sgd.gradient_requested":
        step.request = data
    elif kind == "sgd.gradient_returned":
        step.gradient = data
    elif kind == "sgd.patch_proposed":
        step.proposed.append(data)
    elif kind == "sgd.patch_rejected":
        step.rejected.append(data)
    elif kind == "sgd.patch_approved":
        step.words.setdefault(data["attempt"], data)
    elif kind == "sgd.reverted":
        step.reverted = data


def scored(run, step, data):
    part, scores = data["part"], data["scores"]
    if part == "base":
        run.base += scores
        run.train += scores
    elif part == "batch" and step:
        places = step.batch["rows"][len(step.scores):]
        step.scores += scores
        for place, of in zip(places, scores):
            if place < len(run.train):
                run.train[place] = of
    elif part == "confirm":
        run.confirm.setdefault(data["prompt_digest"], []).extend(scores)
    elif part == "test":
        run.test.setdefault(data["prompt_digest"], []).extend(scores)
    elif part == "val":
        (step.val_scores if step else run.best_scores).extend(scores)


def committed(run, data):
    if data["step"] < len(run.steps):
        step = run.steps[data["step"]]
        step.committed, step.scores = data, []
        if data["best"] == data["step"] + 1 and step.val_scores:
            run.best_scores = list(step.val_scores)
