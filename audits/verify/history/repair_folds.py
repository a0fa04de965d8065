"""Folds of runs that repair a workflow, and of the outer loop around them, into the state (`schema/REPAIR.md`)."""

PARTS = ("calls", "ms", "tokens_in", "tokens_out", "usd_micro")


class Candidate:
    """A workflow that a run knows."""

    def __init__(self, ir, iteration=1, parent=None, locality=None):
        self.ir, self.iteration, self.parent, self.locality = ir, iteration, parent, locality
        self.executions, self.feedback, self.scored, self.worth = [], None, None, None

    def cost(self):
        return {part: sum(of["cost"][part] for of in self.executions) for part in PARTS}

    def score(self):
        return self.scored.get("score_micro") if self.scored else None

    def passes(self):
        return bool(self.scored and self.scored["passes"])


class RepairRun:
    """A run: its candidates, calls, turns, and what is due."""

    def __init__(self, entry, data, templates):
        self.experiment, self.data = entry.experiment, data
        self.candidates = {data["program_digest"]: Candidate(data["program"])}
        for digest in data["templates"]:
            self.candidates.setdefault(digest, Candidate(templates.get(digest)))
        self.order = list(self.candidates)
        self.turns, self.closed, self.pairs, self.pending, self.tries, self.rejected = [], [], [], [], [], []
        self.calls, self.proposals = 0, 0
        self.spent = dict.fromkeys(PARTS, 0)
        self.end = self.truth = None

    def turn(self):
        return len(self.closed) + 1

    def each(self):
        return self.data["terms"]["reruns"] + 1

    def executions(self):
        return len(self.data["items"]) * self.each()

    def is_spent(self):
        spent, budget = self.spent, self.data["terms"]["budget"]
        tokens = spent["tokens_in"] + spent["tokens_out"]
        return (spent["calls"] >= budget["calls"] or tokens >= budget["tokens"]
                or spent["usd_micro"] > budget["usd_micro"])

    def rank(self, digest):
        """By what candidates are ordered: the better is less."""
        of = self.candidates[digest]
        cost, score = of.cost(), of.score()
        tokens = cost["tokens_in"] + cost["tokens_out"]
        return (score is None, 0 if score is None else -score, cost["usd_micro"], tokens, cost["calls"], digest)

    def new(self):
        turn = self.turn()
        return sorted(digest for digest, of in self.candidates.items() if of.iteration == turn)

    def pruned(self):
        """What the turn keeps, and what it drops."""
        turn = self.turn()
        kept = list(self.turns[turn - 2]["kept"]) if turn >= 2 and turn - 2 < len(self.turns) else []
        both = kept + [digest for digest in self.new() if self.candidates[digest].scored]
        both = sorted((digest for digest in both if digest in self.candidates), key=self.rank)
        beam = self.data["terms"]["beam"]
        return both[:beam], both[beam:]

    def progress(self):
        """The best score of the turns, and how many in a row were without progress."""
        best, without, gain = None, 0, self.data["terms"]["least_gain_micro"]
        for turn in self.turns:
            first = self.candidates.get(turn["kept"][0]) if turn["kept"] else None
            score = first.score() if first else None
            gains = score is not None and (best is None or score >= best + gain)
            without = 0 if gains else without + 1
            if score is not None and (best is None or score > best):
                best = score
        return best, without

    def end_of_turn(self):
        terms = self.data["terms"]
        kept = [self.candidates[digest] for digest in self.turns[-1]["kept"] if digest in self.candidates]
        best, without = self.progress()
        if any(of.passes() for of in kept):
            return "pass"
        if without >= terms["stagnation"]:
            return "crash_out" if best is None else "stagnation"
        return "budget" if len(self.turns) >= terms["iterations"] or self.is_spent() else None

    def winner(self):
        judged = sorted((digest for digest, of in self.candidates.items() if of.scored), key=self.rank)
        passing = [digest for digest in judged if self.candidates[digest].passes()]
        return (passing or judged or [None])[0]

    def next_of(self, digest):
        of = self.candidates.get(digest)
        if of is None or len(of.executions) >= self.executions():
            return None
        done = len(of.executions)
        return "execution", digest, done // self.each(), done % self.each()

    def due(self):
        """What is due, in the words of `schema/REPAIR.md`."""
        if self.end:
            arms = [arm["candidate"] for pair in self.pairs for arm in (pair["targeted"], pair["control"])]
            return next((due for due in map(self.next_of, arms) if due), ("worth",))
        if len(self.turns) > len(self.closed):
            reason = self.end_of_turn()
            return ("stop", reason) if reason else ("proposals",)
        new = self.new()
        waiting = [digest for digest in new if not self.candidates[digest].scored]
        if not waiting:
            return ("prune",) if new else ("stop", "stagnation")
        of = self.candidates[waiting[0]]
        if of.feedback:
            return "score", waiting[0]
        due = self.next_of(waiting[0])
        if due is None:
            return "feedback", waiting[0]
        return ("stop", "budget") if not self.pending and self.is_spent() else due

    def closing(self):
        """What closes the turn."""
        turn, terms, spent = self.turn(), self.data["terms"], self.spent
        added = [of for of in self.candidates.values() if of.iteration == turn + 1]
        best, tokens = self.progress()[0], spent["tokens_in"] + spent["tokens_out"]
        used = {"calls": spent["calls"], "tokens": tokens, "usd_micro": spent["usd_micro"]}
        closing = {
            "added": len(added), "iteration": turn, "run": self.data["run"],
            "left": {part: max(0, terms["budget"][part] - used[part]) for part in used},
            "locality": {part: sum(of.locality[part] for of in added) for part in terms["edits"]},
            "rejected": sum(1 for of in self.rejected if of["iteration"] == turn)}
        return closing if best is None else dict(closing, best_micro=best)

    def stopping(self, reason):
        """What ends the run, for a reason."""
        winner = self.winner()
        stopping = {
            "candidates": len(self.candidates), "iterations": len(self.turns), "reason": reason,
            "passed": bool(winner and self.candidates[winner].passes()), "run": self.data["run"],
            "spent": dict(self.spent)}
        return dict(stopping, winner=winner) if winner else stopping

    def unworthed(self):
        """Candidates that were executed on every item and have no worth yet."""
        return [digest for digest in self.order if self.candidates[digest].worth is None
                and len(self.candidates[digest].executions) >= self.executions()]

    def is_known(self):
        return bool(self.end) and not self.unworthed()

    def mean_worth(self, digest):
        of = self.candidates.get(digest)
        return sum(of.worth) // len(of.worth) if of and of.worth else None

    def succeeds(self, useful):
        worth = self.mean_worth(self.end.get("winner"))
        return worth is not None and worth >= useful

    def tried(self, parent):
        self.proposals += 1
        if self.tries and self.tries[-1][0] == parent:
            self.tries[-1][1] += 1
        else:
            self.tries.append([parent, 1])


class Update:
    """An update of the outer loop."""

    def __init__(self, entry, data):
        self.experiment, self.data, self.verdict = entry.experiment, data, None


class Plan:
    """A plan of runs in sixteen cells."""

    def __init__(self, entry, data):
        self.experiment, self.data = entry.experiment, data


def take(state, entry, data):
    kind = entry.kind
    if entry.experiment is None:
        return
    if kind == "wf.run_started":
        templates = dict(state.library)
        update = state.updates.get(data.get("update"))
        if update and update.data["target"] == "library":
            templates.setdefault(update.data["new_digest"], update.data["document"])
        state.repairs.setdefault(data["run"], RepairRun(entry, data, templates))
    elif kind == "meta.triggered":
        state.triggers.setdefault(data["trigger"], data)
    elif kind == "meta.updated":
        state.updates.setdefault(data["update"], Update(entry, data))
    elif kind == "meta.validated":
        update = state.updates.get(data["update"])
        if update:
            update.verdict = update.verdict or data["verdict"]
    elif kind == "meta.planned":
        state.crossed_plans.setdefault(data["plan"], Plan(entry, data))
    elif kind == "lib.template_added":
        state.library.setdefault(data["template_digest"], data["ir"])
    elif kind.startswith("wf.") or kind in ("edit_pair.recorded", "utility.recorded"):
        run = state.repairs.get(data["run"])
        if kind == "utility.recorded":
            state.truth_readers.add(entry.author)
            if run and run.truth is None:
                state.opened_inputs.update(item["input"] for item in run.data["items"])
        if run:
            told(run, kind, data)


def told(run, kind, data):
    of = run.candidates.get(data.get("candidate"))
    if kind == "wf.candidate_added":
        run.tried(data["parent"])
        run.candidates.setdefault(data["candidate"], Candidate(
            data["ir"], data["iteration"] + 1, data["parent"], data["locality"]))
        run.order.append(data["candidate"])
    elif kind == "wf.edit_rejected":
        run.tried(data["parent"])
        run.rejected.append(data)
    elif kind == "wf.called":
        run.calls += 1
        if not run.end:
            run.spent = {part: run.spent[part] + (1 if part == "calls" else data[part]) for part in PARTS}
        run.pending.append(data)
    elif kind == "wf.executed":
        run.pending = []
        if of:
            of.executions.append(data)
    elif kind == "wf.feedback_given" and of:
        of.feedback = of.feedback or data
    elif kind == "wf.scored" and of:
        of.scored = of.scored or data
    elif kind == "wf.pruned":
        run.turns.append(data)
        run.tries = []
    elif kind == "wf.iteration_closed":
        run.closed.append(data)
    elif kind == "wf.stopped":
        run.pending, run.end = [], run.end or data
    elif kind == "edit_pair.recorded":
        for arm in (data["targeted"], data["control"]):
            run.candidates.setdefault(arm["candidate"], Candidate(arm["ir"], 0, data["parent"], arm["locality"]))
            if arm["candidate"] not in run.order:
                run.order.append(arm["candidate"])
        run.pairs.append(data)
    elif kind == "utility.recorded":
        run.truth = run.truth or data
        if of and of.worth is None:
            of.worth = data["utilities_micro"]
