"""Environments in which a calibrator was tested, and what stands inside one (`schema/TRANSPORT.md`)."""


def scope_key(scope):
    """What a scope is known under; empty for all rows."""
    window = (scope or {}).get("window", {})
    return () if scope is None else (scope["family"], scope["environment"], window.get("from"), window.get("to"))


def scope_words(scope):
    """A scope for people."""
    if scope is None:
        return ""
    words, window = "%s=%s" % (scope["family"], scope["environment"]), scope.get("window")
    return words + (" from %s to %s" % (window["from"], window["to"]) if window else "")


class Environment:
    """What tests found of one environment under one judge, and the regime that was selected last."""

    def __init__(self, seq, scope):
        self.scope = scope
        self.failed = None                        # the failed test that stands
        self.has_failed, self.newest = False, seq
        self.required, self.regime, self.calibrator = False, None, None

    def take(self, outcome, seq):
        if outcome["verdict"] == "not_checked":
            return
        self.newest, self.required = seq, outcome["required"]
        if outcome["verdict"] == "fail":
            self.failed, self.has_failed = seq, True
        elif outcome["verdict"] == "pass":
            self.failed = None

    def withholds(self):
        """Whether its rows may be in no level of all rows: a claim needs it, or a narrower regime was selected."""
        return self.failed is not None and (self.required or self.regime in ("1", "2"))


def apart(one, other):
    """Whether no row can be in both: other values of one field, or windows that do not meet."""
    if "window" in one and "window" in other:
        return one["window"]["to"] <= other["window"]["from"] or other["window"]["to"] <= one["window"]["from"]
    same = "window" not in one and "window" not in other and one["family"] == other["family"]
    return same and one["environment"] != other["environment"]


def withholding(environments, scope=None):
    """The failed environment that withholds every level, or those inside a scope that may share rows with it.

    Of several it is the one that failed first."""
    seqs = [of.failed for of in environments.values() if of.withholds()
            and (scope is None or (of.scope != scope and not apart(of.scope, scope)))]
    return {"seq": min(seqs), "state": "fail"} if seqs else None


def inside(environment, calibrator, own):
    """What stands inside an environment: its failed test, unless its local calibrator passed an audit of its own."""
    if environment is None or environment.failed is None:
        return own
    local = environment.regime == "2" and environment.calibrator is not None
    if local and environment.calibrator == calibrator and own and own["state"] == "pass":
        return own
    return {"seq": environment.failed, "state": "fail"}


def environments_tested(state, entry, data):
    state.probes.pop((entry.experiment, data["design"]), None)
    if entry.experiment is not None:
        state.families_tested.add((entry.experiment, data["design"], data["family"]))
        known = state.environments.setdefault((entry.experiment, data["terms"]["judge"]), {})
        for outcome in data["environments"]:
            new = Environment(entry.position, outcome["scope"])
            known.setdefault(scope_key(outcome["scope"]), new).take(outcome, entry.position)


def regime_selected(state, entry, data):
    known = state.environments.get((entry.experiment, data["judge"]), {})
    of = known.get(scope_key(data["scope"]))
    if of is not None:
        of.regime, of.calibrator = data["regime"], data.get("calibrator")
