"""Rules of a generator that learns from a frozen judge (`schema/GENERATOR.md`)."""

from formats.limits import show
from history.records import Deploys
from rules.verdicts import held_under, judge_p6, judge_p7, pass_if, worst
from rules.iterations import thresholds_of
from rules.releases import told_plan


def unless(name, expected, found):
    return None if expected == found else ("%s %s" % (name, show(expected)), show(found))


def rule_generator(state, e):
    if not e.kind.startswith("generator.") or e.experiment is None:
        return None
    data, of = e.data, state.deploys.get(e.experiment, Deploys())
    if e.kind == "generator.run_opened":
        return generator_opening(state, of, e, data)
    run = of.runs.get(data["run"])
    if run is None:
        return "a generator.run_opened of %s" % e.experiment, data["run"]
    if e.kind == "generator.rolled_back":
        validation = run.validated[0] if run.validated else None
        return unless("restored", run.data["old"], data["restored"]) or unless(
            "validation", validation, data.get("validation"))
    if run.state() != "open":
        return "a run that is open", "%s, %s" % (data["run"], run.state())
    if of.active != run.data["deployment"]:
        return "the frozen deployment, %s, to run" % run.data["deployment"], show(of.active)
    problem = protocol_problem(state, e, of.get(of.active))
    if problem:
        return problem
    if e.kind == "generator.objective_queried":
        if run.used >= run.data["steps"]:
            return "a step left of %s" % data["run"], "%d of %d asked" % (run.used, run.data["steps"])
        if data["policy"] == run.data["old"]:
            return "outputs of another policy than the old", data["policy"]
        return unless("step", run.used + 1, data["step"]) or unless("frozen", run.data["frozen"], data["frozen"])
    return generator_validation(state, of, e, data, run)


def protocol_problem(state, e, running):
    force = state.sdp_in_force(e.recorded_at)
    return force and unless("a deployment by protocol", force[0], running[1]["versions"]["sdp_version"])


def generator_opening(state, of, e, data):
    running = of.get(of.active)
    if running is None or running[0] != data["deployment"]:
        return "the running deployment of %s" % e.experiment, data["deployment"]
    problem = unless("rubric_hash", running[1]["rubric_hash"], data["rubric_hash"]) or unless(
        "calibrator", running[1]["versions"]["calibrator"], data["calibrator"]) or unless(
        "frozen", data["calibrator"], data["frozen"]) or protocol_problem(state, e, running)
    if problem:
        return problem
    if data["new"] == data["old"]:
        return "two policies", "%s twice" % data["new"]
    if not 1 <= data["steps"] <= 10000:
        return "1 to 10000 steps", str(data["steps"])
    if not 0 <= data["stakes_micro"] <= 1000000:
        return "stakes from 0 to 1", str(data["stakes_micro"])
    for name, run in of.runs.items():
        if run.state() not in ("validated", "rolled back"):
            return "every run before to be validated or rolled back", "%s, %s" % (name, run.state())


def generator_validation(state, of, e, data, run):
    """Fresh labels, and verdicts that follow from the numbers; an unchecked battery counts under a waiver of ADV."""
    running = of.get(run.data["deployment"])
    plan = (e.experiment, running[1]["commit"]) in state.rubric_ids and told_plan(
        state, e.experiment, running[1]["commit"])
    if not plan:
        return "a rubric with the plan of an iteration", "none"
    if data["thresholds"] != {**thresholds_of(plan), "profile": "recommended", "shift_metric": "either"}:
        return "the thresholds of the plan", "others"
    problem = unless("frozen", run.data["frozen"], data["frozen"]) or unless("steps", run.used, data["steps"])
    if problem:
        return problem
    compared, design = data["compared"], (e.experiment, data["design"])
    labels = compared["new"]["rows"] + compared["old"]["rows"]
    given = state.open_of.get(design, 0) + state.revealed_of.get(design, 0)
    if state.design_seqs.get(design, -1) <= run.seq or state.designs.get(design) != "audit":
        given = 0
    if given < labels:
        return ("%d open labels of %s, for audits and registered after seq %d" % (labels, data["design"], run.seq),
                str(given))
    held = held_under(data["thresholds"], "recommended")
    enough = "lower" in compared and min(compared["new"]["rows"], compared["old"]["rows"]) >= 40
    verdicts = {
        "battery": judge_p7(data["battery"], held) if "battery" in data else "not_checked",
        "gain": pass_if(compared["lower"] > 0) if enough else "inconclusive",
        "transport": judge_p6(data["transport"], held)}
    for name in sorted(verdicts):
        if verdicts[name] != data["verdicts"][name]:
            return "%s %s" % (name, verdicts[name]), data["verdicts"][name]
    seq, end = state.granted.get((e.experiment, "ADV"), (-1, 0))
    if verdicts["battery"] == "not_checked" and e.recorded_at < end and run.data["stakes_micro"] < 700000:
        verdicts["battery"] = "pass"
    return unless("verdict", worst(list(verdicts.values())), data["verdict"])
