"""Folds of endpoints, prices, and runs of judges behind HTTP into the state."""

from history.records import JudgeNoise, ModelRun

AGAIN = ("exhausted", "lost", "mismatched", "rejected")   # what an ask came to that may be asked again


def endpoint_registered(state, _entry, data):
    state.endpoints.setdefault(data["endpoint"], data)


def price_table_registered(state, _entry, data):
    state.prices.setdefault(data["prices"], data)


def judge_run_opened(state, entry, data):
    if entry.experiment is not None:
        run = state.runs.setdefault(data["run"], ModelRun(entry.experiment, data))
        run.opened = entry.position if run.opened is None else run.opened
        if "rescore" in data:
            noise = noise_of(state, entry.experiment, data["judge"])
            noise.runs += 1
            noise.unmeasured = noise.unmeasured or data["run"]


def judge_run_resumed(state, _entry, data):
    run = state.runs.get(data["run"])
    if run:
        run.epoch, run.holds, run.epoch_cost, run.epoch_settled = data["epoch"], 0, 0, 0
        run.is_losing, run.uncalled = False, 0


def judge_run_closed(state, _entry, data):
    run = state.runs.get(data["run"])
    if run:
        run.end = run.end or data["end"]


def budget_reserved(state, entry, data):
    account, run = state.accounts.get(data["account"]), state.runs.get(data["run"])
    if account:
        period = account.period_of(entry.recorded_text)
        account.held[period] = account.held.get(period, 0) + data["amount"]
        state.holds[data["hold"]] = data["account"], period, data["amount"]
    if run:
        run.holds += 1
        run.uncalled = 0
        run.hold = [data["hold"], data["amount"], data["asks"], 0]


def budget_settled(state, _entry, data):
    held, run = state.holds.pop(data["hold"], None), state.runs.get(data["run"])
    account = held and state.accounts.get(held[0])
    if account:
        account.held[held[1]] -= held[2]
        account.spent[held[1]] = account.spent.get(held[1], 0) + data["amount"]
    if run:
        run.settled += data["amount"]
        run.epoch_settled += data["amount"]
        run.uncalled = run.hold[2] if run.hold else 0
        run.hold = None


def texts_of(data):
    return data["texts"]["x_hash"], data["texts"]["a_hash"]


def asked_about(experiment, data):
    """The texts that a judge was asked about; where it is asked again, in which run."""
    return (experiment, data["judge"], *texts_of(data)) + ((data["run"],) if "first" in data else ())


def noise_of(state, experiment, judge):
    return state.noise.setdefault((experiment, judge), JudgeNoise())


def noise_measured(state, entry, data):
    run = state.runs.get(data["run"])
    if run and run.rescored is not None:
        noise_of(state, run.experiment, run.data["judge"]).add(run)
    if entry.experiment is not None and "sd_max_micro" not in data and data["figures"]["differing"]:
        state.contradictions.setdefault(entry.experiment, (entry.kind, entry.position))


def call_recorded(state, entry, data):
    if data["outcome"] in AGAIN:
        state.again[data["ask"]] = data["nth"], data["run"], data["outcome"] == "lost"
    else:
        state.again.pop(data["ask"], None)
    run = state.runs.get(data["run"])
    if "first" not in data:                                    # what is asked again gives no score: the first answer stays
        state.calls[entry.id.hex()] = (entry.experiment, data["judge"], data["outcome"], data["texts"],
                                       data.get("score_micro"))
        if entry.experiment is not None and data["outcome"] == "answered":
            noise_of(state, entry.experiment, data["judge"]).scored[entry.position] = entry.id.hex()
    elif run and run.rescored is not None and data["outcome"] != "lost":
        run.rescored.take(data)
    if entry.experiment is not None:
        state.asked.setdefault(asked_about(entry.experiment, data), set()).add(data["ask"])
    if run:
        lost = data["outcome"] == "lost"                       # asked again, so it is still left
        run.is_losing = run.is_losing or lost
        run.ended += not lost
        if not lost and "first" not in data:
            run.unnamed.add(entry.id.hex())
        run.by_outcome[data["outcome"]] = run.by_outcome.get(data["outcome"], 0) + 1
        run.cost += data["cost_usd_micro"]
        run.epoch_cost += data["cost_usd_micro"]
        if run.hold:
            run.hold[2] = max(0, run.hold[2] - 1)
            run.hold[3] += data["bound_usd_micro"]


def call_named(state, call):
    for run in state.runs.values():
        run.unnamed.discard(call)


def score_missed(state, entry, data):
    call_named(state, data["call"]["call"])
    row = entry.experiment, data["judge"], data["policy"], data["item"], data["draw"]
    state.missed[row] = state.missed.get(row, 0) + 1
    if entry.experiment is not None:
        state.missed_with.setdefault(row, set()).add(texts_of(data["call"]))
