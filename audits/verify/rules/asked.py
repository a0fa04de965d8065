"""Rules of runs that ask a model for something else than scores: what is held, asked, answered and paid (`schema/SYNTHESIS.md`)."""

from history.asked_folds import ENDED, FINAL, OPENED, awaited
from rules.runs import PARTS, TOKENS_MAX, cost_of, newest_prices, room_problem

OUTPUT_MAX = 131_072
CLASS_OF = {"descend": "aggregates", "propose": "aggregates"}               # which texts go out, by purpose


def open_problem(state, e, name):
    """Why there is no open run of this name, of the experiment of the header where it has one."""
    run = state.asked_runs.get(name)
    if run is None:
        return "a run %s that asks a model, opened before" % name, "none"
    if run.is_over:
        return "a run that is open, as %s is not" % name, "its end"
    if e.experiment is not None and run.experiment != e.experiment:
        return "the experiment of %s, %s" % (name, run.experiment), e.experiment
    return None


def rule_run(state, e):
    if e.kind in OPENED and "asked" in e.data:
        if "/" in e.data["run"]:
            return "a name without a slash", e.data["run"]
        if e.data["run"] in state.runs or e.data["run"] in state.asked_runs:
            return "a name that no run had", e.data["run"]
        output = e.data["asked"]["max_output_tokens"]
        return None if 1 <= output <= OUTPUT_MAX else ("max_output_tokens from 1 to %d" % OUTPUT_MAX, str(output))
    if e.kind == "judge_run.opened" and e.data["run"] in state.asked_runs:
        return "a name that no run had", e.data["run"]
    return call_problem(state, e, e.data) if e.kind == "model_call.recorded" else None


def rule_place(state, e):
    """Texts go only to an endpoint that is registered for their class."""
    if e.kind not in OPENED or "asked" not in e.data:
        return None
    asked = e.data["asked"]
    name, place = asked["endpoint"], state.endpoints.get(asked["endpoint"])
    if place is None:
        return "endpoint %s, registered before" % name, "none"
    if CLASS_OF[OPENED[e.kind]] not in place["classes"]:
        return "an endpoint where aggregates may go, as %s is not" % name, "none of its classes"
    if place.get("model", asked["model"]) != asked["model"]:
        return "the model that %s is registered for" % name, asked["model"]
    return None


def call_problem(state, e, data):
    if e.experiment is None:
        return "an experiment", "none"
    problem = open_problem(state, e, data["run"])
    if problem:
        return problem
    run = state.asked_runs[data["run"]]
    if e.author != run.key:
        return "the key of %s, %s" % (data["run"], run.key), e.author
    due = awaited(state, data["run"])
    if due is None:
        return "something that was shown and is not answered yet", "none"
    if data["place"] != due[0]:
        return "ask %d of %s" % (due[0], data["run"]), str(data["place"])
    if data["shown"] != due[1]:
        return "the digest of what was shown, %s" % due[1], data["shown"]
    return None


def rule_ask(state, e):
    """An ask is answered once, and asked again only where its last call came to nothing that its model said."""
    if e.kind != "model_call.recorded" or call_problem(state, e, e.data):
        return None
    data, run = e.data, state.asked_runs[e.data["run"]]
    last = run.last_of(data["place"])
    if last and last["outcome"] in FINAL:
        return "no further call of ask %d of %s" % (data["place"], data["run"]), last["outcome"]
    if last and last["ask"] != data["ask"]:
        return "the ask of the call before, %s" % last["ask"], data["ask"]
    nth = last["nth"] + 1 if last else 0
    if data["nth"] != nth:
        return "call %d of the ask" % nth, str(data["nth"])
    if (not data["attempts"]) != (data["outcome"] == "lost"):
        return "attempts of a call, and of one that was lost none", str(len(data["attempts"]))
    if data["outcome"] == "uncovered":
        return "an outcome of an ask that no judge answers", "uncovered"
    answered = data["outcome"] == "answered"
    if answered != ("text" in data):
        return "the text of an answer, and of no other call", data["outcome"]
    if answered and "response" not in data:
        return "the body of an answer", "none"
    pin = run.data["pin"]
    if answered and data.get("model_returned") != pin:
        return "an answer of %s, which is pinned" % pin, data.get("model_returned", "nobody")
    return None


def price_row(state, asked):
    """(problem, row of prices): no row where calls are free."""
    place, table = state.endpoints.get(asked["endpoint"]), asked.get("prices")
    if place is None:
        return ("endpoint %s, registered before" % asked["endpoint"], "none"), None
    if place["free"]:
        return None, None
    if table is None:
        return ("prices, where calls cost something", "none"), None
    if table not in state.prices:
        return ("prices %s, registered before" % table, "none"), None
    key = place["provider"], asked["pin"], "live"
    for row in state.prices[table]["rows"]:
        if (row["provider"], row["model"], row["mode"]) == key:
            return None, row
    return ("a price of %s at %s in %s" % (key[1], key[0], table), "none"), None


def rule_price(state, e):
    if e.kind in OPENED and "asked" in e.data:
        return priced_problem(state, e.data["asked"])
    if e.kind != "model_call.recorded" or call_problem(state, e, e.data):
        return None
    data = e.data
    problem, row = price_row(state, state.asked_runs[data["run"]].data)
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
    return ("suspect usage of more than 10,000,000 tokens", "ok") if many and data["usage"] == "ok" else None


def priced_problem(state, asked):
    problem, row = price_row(state, asked)
    if problem:
        return problem
    if row is None:
        named = [name for name in ("account", "prices", "cap_usd_micro") if name in asked]
        return ("no account, prices or cap at a free endpoint", named[0]) if named else None
    newest = newest_prices(state, state.endpoints[asked["endpoint"]]["provider"], asked["pin"])
    if asked["prices"] != newest:
        return "the newest prices of %s, %s" % (asked["pin"], newest), asked["prices"]
    if "account" not in asked:
        return "an account, where calls cost something", "none"
    account = state.accounts.get(asked["account"])
    if account is None:
        return "account %s, opened before" % asked["account"], "none"
    return None if account.unit == "usd_micro" else ("an account that counts usd_micro", account.unit)


def rule_hold(state, e):
    if e.kind in ENDED:
        run = state.asked_runs.get(e.data["run"])
        holds = run and run.hold and run.purpose == ENDED[e.kind]
        return ("a run whose hold was settled", "an open hold") if holds else None
    if e.kind in ("budget.reserved", "budget.settled"):
        if e.data["run"] not in state.asked_runs:
            return None
        return (reserved_problem if e.kind == "budget.reserved" else settled_problem)(state, e, e.data)
    if e.kind != "model_call.recorded" or call_problem(state, e, e.data):
        return None
    run, named = state.asked_runs[e.data["run"]], e.data.get("hold")
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
        return "one call, which %s holds for" % run.hold[0], "one more"
    if e.data["bound_usd_micro"] > run.hold[1]:
        return "a bound of at most %d, which %s holds" % (run.hold[1], run.hold[0]), str(e.data["bound_usd_micro"])
    return None


def reserved_problem(state, e, data):
    problem = open_problem(state, e, data["run"])
    if problem:
        return problem
    run, name = state.asked_runs[data["run"]], data["run"]
    if e.author != run.key:
        return "the key of %s, %s" % (name, run.key), e.author
    if run.data.get("account") != data["account"]:
        return "the account of %s" % name, data["account"]
    if run.hold:
        return "no other open hold of the run", "one"
    if data["hold"] != run.next_hold(name):
        return "the hold %s" % run.next_hold(name), data["hold"]
    if data["asks"] != 1:
        return "one ask", str(data["asks"])
    due = awaited(state, name)
    if due is None:
        return "something that was shown and is not answered yet", "none"
    last = run.last_of(due[0])
    if last and last["outcome"] in FINAL:
        return "an ask without an answer, as ask %d of %s is not" % (due[0], name), "its answer"
    return room_problem(state, e, run.settled, run.data.get("cap_usd_micro"))


def settled_problem(state, e, data):
    problem = open_problem(state, e, data["run"])
    if problem:
        return problem
    run = state.asked_runs[data["run"]]
    if run.hold is None:
        return "an open hold of %s" % data["run"], "none"
    name, amount, left = run.hold
    if data["hold"] != name:
        return "the open hold, %s" % name, data["hold"]
    if data["amount"] < run.unpaid():
        return "at least %d, what calls of %s cost and nobody paid yet" % (run.unpaid(), data["run"]), str(data["amount"])
    if data["unknown"] > data["amount"]:
        return "no more unknown than charged", str(data["unknown"])
    if data["overrun"] != (data["amount"] > amount):
        return "overrun where more than %d is charged, and nowhere else" % amount, str(data["overrun"]).lower()
    if left > 0 and data["amount"] < amount:
        return "at least %d, the whole of a hold that has no call" % amount, str(data["amount"])
    return None


def called_problem(state, e, data):
    """An answer of a model behind HTTP names the call that gave it, and is its text; an answer of anybody else names none."""
    run = state.asked_runs.get(data["run"])
    if run is None or run.purpose != "propose":
        return ("no call in a run that asks no model", "one") if "call" in data else None
    last = run.last_of(data["round"])
    if last is None or last["outcome"] not in FINAL:
        return "a call of round %d that came to its end" % data["round"], "none"
    if "call" not in data:
        return "the call that gave the answer", "none"
    if data["call"] != last["call"]:
        return "the call of round %d, %s" % (data["round"], last["call"]), data["call"]
    if data["call"] not in e.refs:
        return "the call %s among its references" % data["call"], "none"
    if data.get("answer") != last.get("text"):
        return "the text of its call as the answer, byte for byte", "another" if "answer" in data else "none"
    if last["outcome"] == "answered":
        return None
    oversize = last["outcome"] == "unparsed" and last.get("detail") == "oversize"
    state_due = "oversize" if oversize else "unreadable"
    if data["state"] != state_due:
        return "%s of a call that is %s" % (state_due, last["outcome"]), data["state"]
    return None


def model_problem(data, who="optimizer", what="candidates"):
    """What a run says of a model that is asked: its name is the pinned model and the endpoint."""
    if ("asked" in data) != (data[who] == "endpoint"):
        return "a model that is asked, exactly where one behind HTTP writes %s" % what, data[who]
    if "asked" not in data:
        return None
    name = "%s at %s" % (data["asked"]["pin"], data["asked"]["endpoint"])
    return None if data["model"] == name else ("the model and its endpoint, %s" % name, data["model"])
