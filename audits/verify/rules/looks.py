"""Rules of looks and decisions of a gate, which are computed again (`schema/GATES.md`)."""

from formats.tree import sha256
from formats.fields import b64, decode_base64
from rules.betting import NEAR, is_near, terms
from rules.manifests import family_of
from rules.gates import acting
from rules.grades import RANKS, grade_of, is_late


def rule_look(state, e):
    if e.kind != "gate.looked":
        return None
    problem, gate, record_ = acting(state, e)
    if problem:
        return looked_again(state, e)
    if gate.decided:
        return "a gate that is not decided", "one decided at seq %d (E_AFTER_TERMINAL)" % gate.decided[0]
    if gate.terminal():
        return "gate.decided after the last look", "another look (E_AFTER_TERMINAL)"
    if e.data["n"] != gate.n or gate.n == 0:
        return "n %d, at least 1" % gate.n, "n %d (E_N)" % e.data["n"]
    current = record_.in_force()
    if current is None or "test" not in current.manifest:
        return looked_again(state, e)
    test = current.manifest["test"]
    if "look_at" in test and gate.n not in test["look_at"] and gate.n != test["n_max"]:
        return "a registered look", "n %d (E_N)" % gate.n
    if e.data["alpha_micro"] != test["alpha_micro"]:
        return "test.alpha_micro %d" % test["alpha_micro"], "%d (E_ALPHA)" % e.data["alpha_micro"]
    if not e.data["bettor"] == gate.test["bettor"] == test["bettor"]:
        return "the bettor that the gate was opened with", "another (E_BETTOR)"
    if e.data["state_digest"] != gate.state:
        return "state_digest %s" % gate.state, e.data["state_digest"]
    return looked_again(state, e)


def looked_again(state, e):
    """The values of a look, computed again from the observations."""
    gate, record_ = state.gates_by_id.get(e.data["gate"]), state.manifests.get(e.data["gate"])
    current = record_ and record_.in_force()
    if gate is None or record_ is None or e.data["n"] != gate.n or gate.terminal():
        return None
    if current is None:
        return "a version in force", "none"
    problem, design = terms(current.manifest, gate.test, family_of(state, record_), gate.carried or {})
    if problem:
        return problem
    found, wealth = design.look(gate), e.data["log_wealth"]
    if found["logs"].keys() != wealth.keys() or not all(is_near(found["logs"][name], wealth[name]) for name in wealth):
        return "log wealth %s, computed again" % found["logs"], str(wealth)
    guardrails = e.data.get("guardrails", [])
    if len(guardrails) != len(found["guardrails"]) or not all(map(is_near, found["guardrails"], guardrails)):
        return "log wealth %s of the guardrails" % found["guardrails"], str(guardrails)
    if not is_near(found["log_e"], e.data["log_e"]):
        return "log_e %s, computed again" % found["log_e"], str(e.data["log_e"])
    if abs(found["p"] - e.data["p"]) > NEAR:
        return "p %s" % found["p"], str(e.data["p"])
    stated = e.data["cs_lo_micro"], e.data["cs_hi_micro"]
    if tuple(found["interval"]) != stated:
        return "a confidence interval from %d to %d" % tuple(found["interval"]), "%d to %d" % stated
    return None if found["standing"] == e.data["standing"] else (
        "standing %s" % found["standing"], e.data["standing"])


def beside_problem(state, e):
    """An estimate of the asymptotic class stands beside a decision, by the sample that the next checkpoint drew."""
    problem, gate, record_ = acting(state, e)
    if problem:
        return None
    data, said = e.data, e.data["class"]
    if not gate.decided:
        return "gate.decided before an estimate beside it", "none"
    if said != "asymptotic":
        return "class asymptotic", "class %s" % said
    current = record_.in_force()
    if current is None or current.digest != data["digest"]:
        return "the version in force", "%s (E_STALE_VERSION)" % data["digest"]
    decided, bound = gate.decided[0], record_.bound()
    beacon, order = state.beacons.get(decided), bound and state.drawn.get(bound.digest)
    if beacon is None and e.seen and e.seen[0] > decided:
        beacon = {"root": b64(e.seen[1]), "size": e.seen[0]}
    if beacon is None or not order:
        return "a checkpoint above gate.decided", "none (E_ORDER)"
    seed = sha256(bytes.fromhex(order[1]["seed"]), decode_base64(beacon["root"])).hex()
    if (data["beacon"], data["seed"]) != (beacon, seed):
        return "the checkpoint of size %d, seed %s" % (beacon["size"], seed), "another (E_ORDER)"
    manifest = current.manifest
    if data["alpha_micro"] != manifest["test"]["alpha_micro"]:
        return "test.alpha_micro %d" % manifest["test"]["alpha_micro"], "%d (E_ALPHA)" % data["alpha_micro"]
    policy = manifest.get("data", {}).get("label_policy")
    if policy is None or data["pi_micro"] != policy["pi_min_micro"]:
        return "pi_micro as data.label_policy has it", "%d (E_UNREGISTERED_RULE)" % data["pi_micro"]
    if "judge" not in gate.sources[0]:
        return "a gate on the scores of a judge", "one on labels"
    if not 1 <= data["n"] <= gate.n or not 25 <= data["labels"] <= data["n"]:
        return ("n from 1 to %d, and 25 to n labelled units" % gate.n, "n %(n)d with %(labels)d (E_N)" % data)
    low, high = data["cs_lo_micro"], data["cs_hi_micro"]
    margin, kind = manifest["test"]["null_margin_micro"], manifest["hypothesis"]["kind"]
    shows = {"promote": low > margin, "noninferior": low > margin, "equivalent": -margin < low and high < margin,
             "different": low > margin or high < margin,
             "kill": high < 0, "measure": False}[kind]
    if low > high or data["shows"] != shows:
        return "an interval, and shows %s" % shows, "%d to %d, and %s" % (low, high, data["shows"])
    grade = max("asymptotic", grade_of(state, gate, record_, e.recorded_at), key=RANKS.index)
    return None if data["grade"] == grade else ("grade %s, derived" % grade, data["grade"])


def rule_decision(state, e):
    if e.kind == "gate.estimated":
        return None if acting(state, e)[0] else beside_problem(state, e)
    problem, gate, record_ = acting(state, e) if e.kind == "gate.decided" else (True, None, None)
    if problem:
        return None
    if gate.decided:
        return "a gate that is not decided", "one decided at seq %d (E_AFTER_TERMINAL)" % gate.decided[0]
    if e.data["class"] != "exact":
        return "class exact", "class asymptotic"
    if (e.data["n"], e.data["log_e"]) != (gate.n, gate.log_e()):
        return "n %d and log_e %s, as recorded" % (gate.n, gate.log_e()), "%(n)d and %(log_e)s" % e.data
    if e.data["outcome"] == "superseded":
        return None if record_.superseded_by else ("a manifest that another superseded", "none")
    if e.data["outcome"] == "void":
        return None if is_late(record_, e.recorded_at) else ("a sealed plan past its day", "none")
    current = record_.in_force()
    if current and current.digest != e.data["digest"]:
        return "version %s, in force" % current.digest, "%s (E_STALE_VERSION)" % e.data["digest"]
    if gate.last and gate.last["n"] == gate.n and gate.last["standing"] == e.data["outcome"]:
        return None
    return "what a look after the last observation found", e.data["outcome"]
