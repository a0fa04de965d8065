"""Rules of runs of judges behind HTTP: what is held, asked, answered and paid (`schema/ENDPOINTS.md`)."""

from history.model_folds import asked_about, texts_of

TOKENS_MAX = 10_000_000
PARTS = ("input", "cache_read", "cache_write", "output")
MAYBE_BILLED = ("cut", "failed", "foreign", "late", "oversize")


def judge_of(state, experiment, name):
    return state.judges.get(experiment, {}).get(name, (None, 0))[0]


def open_problem(state, e, name):
    """Why there is no open run of this name, of the experiment of the header where it has one."""
    run = state.runs.get(name)
    if run is None:
        return "judge_run.opened of %s" % name, "none"
    if run.end is not None:
        return "a run that is open, as %s is not" % name, run.end
    if e.experiment is not None and run.experiment != e.experiment:
        return "the experiment of %s, %s" % (name, run.experiment), e.experiment
    return None


def rule_run(state, e):
    if e.kind == "judge_run.opened":
        return opening_problem(state, e, e.data)
    if e.kind == "judge_run.resumed":
        run = state.runs.get(e.data["run"])
        problem = open_problem(state, e, e.data["run"])
        if problem:
            return problem
        if e.data["epoch"] != run.epoch + 1:
            return "epoch %d" % (run.epoch + 1), str(e.data["epoch"])
        if run.hold:
            return "a run whose hold was settled before", "an open hold"
        wanted = "a call of each ask that was held for, lost where nobody knows more"
        return (wanted, "%d without" % run.uncalled) if run.uncalled else None
    if e.kind == "judge_run.closed":
        return open_problem(state, e, e.data["run"]) or closing_problem(state.runs[e.data["run"]], e.data)
    if e.kind == "call.recorded":
        return call_problem(state, e, e.data)
    return None


def opening_problem(state, e, data):
    if e.experiment is None:
        return "an experiment", "none"
    judge = judge_of(state, e.experiment, data["judge"])
    if judge is None:
        return "judge %s, registered before" % data["judge"], "none"
    if "asked" not in judge:
        return "a judge that is asked at an endpoint, as %s is not" % data["judge"], "none"
    if judge["asked"]["endpoint"] != data["endpoint"]:
        return "the endpoint of %s, %s" % (data["judge"], judge["asked"]["endpoint"]), data["endpoint"]
    for name, run in state.runs.items():
        if run.end is None and run.experiment == e.experiment and run.data["judge"] == data["judge"]:
            return "no other open run of %s" % data["judge"], name
    if data["asks"] == 0:
        return "at least one ask", "none"
    return ("a name without a slash", data["run"]) if "/" in data["run"] else None


def closing_problem(run, data):
    if run.hold:
        return "a run whose holds were settled", "an open hold"
    if run.is_losing:
        return "a run that went on after asks were lost", "its end"
    if run.unnamed:
        return "a score or a miss of each call", "%d calls that nothing names" % len(run.unnamed)
    if {item["outcome"]: item["calls"] for item in data["by_outcome"]} != run.by_outcome:
        return "the outcomes of its %d calls" % sum(run.by_outcome.values()), "others"
    if data["left"] != run.left():
        return "%d asks left" % run.left(), str(data["left"])
    if data["cost_usd_micro"] != run.cost:
        return "%d for its calls" % run.cost, str(data["cost_usd_micro"])
    if data["settled_usd_micro"] != run.settled:
        return "%d charged" % run.settled, str(data["settled_usd_micro"])
    if data["end"] == "completed" and run.left():
        return "a run that completed to have no ask left", str(run.left())
    return None


def call_problem(state, e, data):
    if e.experiment is None:
        return "an experiment", "none"
    problem = open_problem(state, e, data["run"])
    if problem:
        return problem
    run = state.runs[data["run"]]
    if data["judge"] != run.data["judge"]:
        return "the judge of %s, %s" % (data["run"], run.data["judge"]), data["judge"]
    if data["epoch"] != run.epoch:
        return "epoch %d" % run.epoch, str(data["epoch"])
    if run.left() <= 0:
        return "at most %d asks" % run.data["asks"], "one more"
    if run.is_losing and data["outcome"] != "lost":
        return "a run that goes on after asks were lost, before it asks again", data["outcome"]
    return None


def rule_ask(state, e):
    if e.kind != "call.recorded" or call_problem(state, e, e.data):
        return None
    data = e.data
    again = state.again.get(data["ask"])
    nth = again[0] + 1 if again else 0
    if data["nth"] != nth:
        return "call %d of the ask" % nth, str(data["nth"])
    if again and not again[2] and again[1] == data["run"]:
        return "another run than %s, in which the ask came to nothing" % data["run"], data["run"]
    answered = data["outcome"] == "answered"
    if answered != ("score_micro" in data):
        return "a score of an ask that was answered, and of no other", data["outcome"]
    if (not data["attempts"]) != (data["outcome"] == "lost"):
        return "attempts of a call, and of one that was lost none", str(len(data["attempts"]))
    judge = judge_of(state, e.experiment, data["judge"])
    if judge is None:
        return "judge %s, registered before" % data["judge"], "none"
    if "asked" not in judge:
        return "a judge that is asked at an endpoint, as %s is not" % data["judge"], "none"
    pin = judge["asked"]["pin"]
    if answered and data.get("model_returned") != pin:
        return "an answer of %s, which is pinned" % pin, data.get("model_returned", "nobody")
    return masses_problem(data, judge["asked"].get("weighed_levels"))


def masses_problem(data, levels):
    """A judge whose levels are weighed scores by their masses, and by nothing else; any other judge has none."""
    masses = data.get("masses")
    if levels is None:
        return ("masses of a judge whose levels are weighed, and of no other", "some") if masses is not None else None
    if (data["outcome"] in ("answered", "uncovered")) != (masses is not None):
        return "masses of an answer that was read, and of no other call", data["outcome"]
    if masses is None:
        return None
    outcome, score = mean_level(masses, levels)
    if data["outcome"] != outcome:
        return "an outcome that its masses give, %s" % outcome, data["outcome"]
    if data.get("score_micro") != score:
        return "the score that its masses give, %s" % score, str(data.get("score_micro", ""))
    return None


def mass(logprob):
    """e^(logprob / 10^6) in units of 10^-18, by whole numbers alone (`schema/ENDPOINTS.md`)."""
    whole, rest = divmod(-logprob, 10 ** 6)
    out, term, k = 0, 10 ** 18, 0
    while term:
        out += -term if k % 2 else term
        k += 1
        term = term * rest // (k * 10 ** 6)
    for _ in range(whole):
        out = out * 367879441171442321 // 10 ** 18
    return out


def mean_level(masses, levels):
    """(outcome, score in millionths): the mean level, each by its probability."""
    steps = levels - 1
    if steps < 1 or any(of["level"] > steps or not -10 ** 8 <= of["logprob_micro"] <= 0 for of in masses):
        return "unparsed", None
    weights = [mass(of["logprob_micro"]) for of in masses]
    total = sum(weights)
    if total * 1000 > 1001 * 10 ** 18:
        return "unparsed", None
    if total * 100 < 95 * 10 ** 18:
        return "uncovered", None
    down, rest = divmod(10 ** 6 * sum(w * of["level"] for w, of in zip(weights, masses)), total * steps)
    up = 2 * rest > total * steps or 2 * rest == total * steps and down % 2 == 1
    return "answered", down + up


def rule_one_ask(state, e):
    """The first call of an ask is about texts that its judge was not asked about, a further one about the same as before."""
    if e.kind != "call.recorded" or e.experiment is None or not state.asks("one_ask"):
        return None
    known = state.asked.get(asked_about(e.experiment, e.data), ())
    if e.data["nth"] == 0 and known:
        return "texts that %s was not asked about before" % e.data["judge"], "an ask of another key, or the same again"
    both = set(known) | set(state.asked.get((e.experiment, e.data["judge"], *texts_of(e.data)), ()))
    if e.data["nth"] > 0 and e.data["ask"] not in both:
        return "an ask of %s about these texts before" % e.data["judge"], "none"
    return None


def rule_same_text(state, e):
    """A row that was missed is missed again, and scored, with the same text."""
    if e.kind not in ("score.missed", "score.recorded") or "call" not in e.data or not state.asks("same_text"):
        return None
    row = e.experiment, e.data["judge"], e.data["policy"], e.data["item"], e.data["draw"]
    known = state.missed_with.get(row) if e.experiment is not None else None
    if known and texts_of(e.data["call"]) not in known:
        return "the text with which the row was missed", "another"
    return None


def price_row(state, run, judge):
    """(problem, row of prices): no row where calls are free."""
    place, table = state.endpoints.get(run["endpoint"]), run.get("prices")
    if place is None:
        return ("endpoint %s, registered before" % run["endpoint"], "none"), None
    if place["free"]:
        return None, None
    if table is None:
        return ("prices, where calls cost something", "none"), None
    if table not in state.prices:
        return ("prices %s, registered before" % table, "none"), None
    key = place["provider"], judge.get("asked", {"pin": ""})["pin"], "live"
    for row in state.prices[table]["rows"]:
        if (row["provider"], row["model"], row["mode"]) == key:
            return None, row
    return ("a price of %s at %s in %s" % (key[1], key[0], table), "none"), None


def newest_prices(state, provider, model):
    """The table that was registered last of those with a live price of a model."""
    key = provider, model, "live"
    return [name for name, table in state.prices.items()
            if any((row["provider"], row["model"], row["mode"]) == key for row in table["rows"])][-1]


def rule_price(state, e):
    if e.kind == "judge_run.opened":
        return priced_problem(state, e, e.data)
    if e.kind != "call.recorded" or call_problem(state, e, e.data):
        return None
    data, run = e.data, state.runs[e.data["run"]]
    judge = judge_of(state, e.experiment, data["judge"])
    if judge is None:
        return "judge %s, registered before" % data["judge"], "none"
    problem, row = price_row(state, run.data, judge)
    if problem:
        return problem
    bound = data["bound_usd_micro"]
    free = row is None or not any(row[part] for part in PARTS)
    if row is None and bound or not free and not bound:
        return "a bound where calls cost something, and none where they are free", str(bound)
    expected = 0 if row is None else cost_of(row, data)
    if data["cost_usd_micro"] != expected:
        return "a cost of %d" % expected, str(data["cost_usd_micro"])
    many = any(data.get("tokens", {}).get(part, 0) > TOKENS_MAX for part in PARTS)
    if many and data["usage"] == "ok":
        return "suspect usage of more than 10,000,000 tokens", "ok"
    return None


def cost_of(row, data):
    """What a call costs by what is on record of it."""
    bound = data["bound_usd_micro"]
    maybe = bound * sum(attempt["class"] in MAYBE_BILLED for attempt in data["attempts"])
    was_answered = bool(data["attempts"]) and data["attempts"][-1]["class"] == "ok"
    if data["outcome"] in ("lost", "mismatched"):
        return maybe + bound
    if not was_answered:
        return maybe
    if "tokens" in data and data["usage"] == "ok":
        return maybe - (-sum(data["tokens"][part] * row[part] for part in PARTS) // 10 ** 6)
    return maybe + bound


def priced_problem(state, e, data):
    judge = judge_of(state, e.experiment, data["judge"])
    if judge is None or "asked" not in judge:
        return None
    problem, row = price_row(state, data, judge)
    if problem:
        return problem
    if row is None:
        named = [name for name in ("account", "prices", "cap_usd_micro") if name in data]
        return ("no account, prices or cap at a free endpoint", named[0]) if named else None
    newest = newest_prices(state, state.endpoints[data["endpoint"]]["provider"], judge["asked"]["pin"])
    if data["prices"] != newest:
        return "the newest prices of %s, %s" % (judge["asked"]["pin"], newest), data["prices"]
    if "account" not in data:
        return "an account, where calls cost something", "none"
    account = state.accounts.get(data["account"])
    if account is None:
        return "account %s, opened before" % data["account"], "none"
    return None if account.unit == "usd_micro" else ("an account that counts usd_micro", account.unit)


def rule_hold(state, e):
    if e.kind in ("budget.reserved", "budget.settled") and e.data["run"] in state.asked_runs:
        return None
    if e.kind == "budget.reserved":
        return reserved_problem(state, e, e.data)
    if e.kind == "budget.settled":
        return settled_problem(state, e, e.data)
    if e.kind != "call.recorded" or call_problem(state, e, e.data):
        return None
    run, named = state.runs[e.data["run"]], e.data.get("hold")
    if "account" not in run.data:
        if named is not None:
            return "no hold at a free endpoint", named
        wanted = "asks that are lost only where something was held for them"
        return (wanted, "a free endpoint") if e.data["outcome"] == "lost" else None
    if run.hold is None:
        return "an open hold of %s" % e.data["run"], "none"
    if named != run.hold[0]:
        return "the open hold, %s" % run.hold[0], named or "none"
    if run.hold[2] <= 0:
        return "as many calls as %s holds for" % run.hold[0], "one more"
    bounds = run.hold[3] + e.data["bound_usd_micro"]
    if state.asks("held_bounds") and bounds > run.hold[1]:
        return "bounds of at most %d, which %s holds" % (run.hold[1], run.hold[0]), str(bounds)
    return None


def reserved_problem(state, e, data):
    problem = open_problem(state, e, data["run"])
    if problem:
        return problem
    run = state.runs[data["run"]]
    if run.data.get("account") != data["account"]:
        return "the account of %s" % data["run"], data["account"]
    if run.hold:
        return "no other open hold of the run", "one"
    if run.is_losing:
        return "a run that goes on after asks were lost, before more is held", "a hold"
    if data["hold"] != run.next_hold():
        return "the hold %s" % run.next_hold(), data["hold"]
    least = max(1, run.uncalled)
    if not least <= data["asks"] <= run.left():
        return ("%d to %d asks: those that are open, and what is left at most" % (least, run.left()),
                str(data["asks"]))
    return room_problem(state, e, run.settled, run.data.get("cap_usd_micro"))


def room_problem(state, e, settled, cap):
    """A hold fits what its run may still cost, and what is left in its account."""
    amount, of = e.data["amount"], e.data["account"]
    if cap is not None and settled + amount > cap:
        return "at most %d left of the cap" % max(0, cap - settled), str(amount)
    account = state.accounts.get(of)
    if account is None:
        return "account %s, opened before" % of, "none"
    left = max(0, account.left(account.period_of(e.recorded_text)))
    return None if amount <= left else ("at most %d left in %s" % (left, of), str(amount))


def settled_problem(state, e, data):
    problem = open_problem(state, e, data["run"])
    if problem:
        return problem
    run = state.runs[data["run"]]
    if run.hold is None:
        return "an open hold of %s" % data["run"], "none"
    if data["hold"] != run.hold[0]:
        return "the open hold, %s" % run.hold[0], data["hold"]
    if data["amount"] < run.unpaid():
        return "at least %d, what calls of %s cost and nobody paid yet" % (run.unpaid(), data["run"]), str(data["amount"])
    if data["unknown"] > data["amount"]:
        return "no more unknown than charged", str(data["unknown"])
    if data["overrun"] != (data["amount"] > run.hold[1]):
        return "overrun where more than %d is charged, and nowhere else" % run.hold[1], str(data["overrun"]).lower()
    return None


def rule_place(state, e):
    """Rows go only to an endpoint that is registered for them."""
    if e.kind != "judge_run.opened":
        return None
    place = state.endpoints.get(e.data["endpoint"])
    if place is None:
        return "endpoint %s, registered before" % e.data["endpoint"], "none"
    if "rows" not in place["classes"]:
        return "an endpoint where rows may go, as %s is not" % e.data["endpoint"], "none of its classes"
    return None


def rule_source(state, e):
    if e.experiment is None:
        return None
    if e.kind == "judge.registered":
        return judge_problem(state, e.data)
    if e.kind == "score.recorded":
        judge = judge_of(state, e.experiment, e.data["judge"])
        called = judge is not None and judge["port"] == "endpoint"
        if called != ("call" in e.data):
            return "a call of a score by a judge behind HTTP, and of no other", "one" if "call" in e.data else "none"
        return source_problem(state, e, "answered", e.data["score_micro"]) if called else None
    if e.kind == "score.missed":
        return missed_problem(state, e, e.data)
    return None


def judge_problem(state, data):
    if (data["port"] == "endpoint") != ("asked" in data):
        return "an endpoint and a plan of a judge behind HTTP, and of no other", data["port"]
    if "asked" not in data:
        return None
    name = data["asked"]["endpoint"]
    place = state.endpoints.get(name)
    if place is None:
        return "endpoint %s, registered before" % name, "none"
    if "rows" not in place["classes"]:
        return "an endpoint where rows may go, as %s is not" % name, "none of its classes"
    if place.get("model", data["model"]) != data["model"]:
        return "the model that %s is registered for" % name, data["model"]
    return None


def source_problem(state, e, outcome, score):
    of = e.data["call"]
    if of["call"] not in e.refs:
        return "the call %s among its references" % of["call"], "none"
    expected = (e.experiment, e.data["judge"], outcome, of["texts"], score)
    if state.calls.get(of["call"]) != expected:
        return "a call of %s about these texts that gives this" % e.data["judge"], of["call"]
    return None


def missed_problem(state, e, data):
    judge = judge_of(state, e.experiment, data["judge"])
    if judge is None or judge["port"] != "endpoint":
        return "a judge behind HTTP", data["judge"]
    if data["reason"] in ("answered", "lost"):
        return "an outcome that is no answer, and after which nobody asks at once", data["reason"]
    row = e.experiment, data["judge"], data["policy"], data["item"], data["draw"]
    if data["nth"] != state.missed.get(row, 0):
        return "miss %d of the row" % state.missed.get(row, 0), str(data["nth"])
    return source_problem(state, e, data["reason"], None)
