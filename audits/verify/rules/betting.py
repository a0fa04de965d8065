"""The test of a gate: wealth of bets against a null mean, and the interval it gives (`schema/GATES.md`)."""

import math

from formats.limits import ONE

FRACTIONS, FRACTIONS_MAX, CAP = 20, 100, 500_000
LOG_MAX, NEAR = 1e9, 1e-9
CELLS = 4096                          # distinct differences with a count of their own, and cells for the rest


def scale_of(metric):
    """The most that a difference can be, in millionths."""
    return metric.get("difference_max_micro", metric["scale_hi_micro"] - metric["scale_lo_micro"])


def log_mean_exp(logs):
    """ln of the mean of exponentials."""
    top = max(logs)
    return top if math.isinf(top) else top + math.log(math.fsum(math.exp(log - top) for log in logs) / len(logs))


def log_factors(gain, stake, fractions):
    """ln(1 + f_k (gain/stake - 1)), k = 1..K, from exact integers."""
    out = []
    for k in range(1, fractions + 1):
        gained = k * ((gain - stake) / stake) / (fractions + 1)
        factor = (fractions + 1 - k) + k * (gain / stake)
        out.append(math.log1p(gained) if gained > -0.5 else math.log(factor / (fractions + 1)))
    return out


def strata_of(test):
    """Strata whose improvement was predicted, in order."""
    return [one["stratum"] for one in test.get("control_variate", ())]


class Null:
    """A null mean in ticks; `upper` is tested by large values. `strata` are (predicted improvement, units)."""

    def __init__(self, upper, repeats, scale, margin, strata=()):
        self.upper, self.span, self.mean = upper, 2 * repeats * scale, repeats * (scale + margin)
        self.stake = self.mean if upper else self.span - self.mean
        most, least = max((b for b, _ in strata), default=0), min((b for b, _ in strata), default=0)
        self.offsets = [repeats * (most - b if upper else b - least) for b, _ in strata]
        self.added = sum(offset * units for offset, (_, units) in zip(self.offsets, strata))

    def offset(self, stratum):
        return 0 if stratum is None else self.offsets[stratum]

    def oriented(self, tick):
        return tick if self.upper else self.span - tick


class Design:
    """The terms of a registered test."""

    def __init__(self, manifest, test, family, carried):
        registered, metric = manifest["test"], manifest["metric"]
        self.registered, self.metric, self.carried, self.bettor = registered, metric, carried, test["bettor"]
        self.kind, self.margin = manifest["hypothesis"]["kind"], registered["null_margin_micro"]
        self.scale, self.repeats = scale_of(metric), metric["repeats"]
        self.width = metric["scale_hi_micro"] - metric["scale_lo_micro"]
        self.sign = 1 if metric["direction"] == "increase" else -1
        self.alpha, self.units = registered["alpha_micro"], None
        if registered["without_replacement"]:
            self.units = manifest["data"]["n_units"]
        self.grid = self.bettor["name"] == "grid_kelly"
        self.fractions = self.bettor.get("grid", FRACTIONS) if self.grid else FRACTIONS
        self.cap = self.bettor.get("cap_micro", CAP)
        self.futile = None
        if "beta_futile_micro" in registered and "delta_design_micro" in registered:
            self.futile = registered["beta_futile_micro"], registered["delta_design_micro"]
        self.stop = ONE, self.alpha
        if family and family.method not in ("elond", "spend") and family.most * self.alpha >= family.alpha:
            self.stop = family.most * ONE, family.alpha
        self.guardrails = [one["margin_micro"] for one in metric.get("guardrails", [])]
        self.strata = [(self.sign * one["predicted_micro"], one["units"])
                       for one in registered.get("control_variate", ())]

    def null(self, upper, margin):
        return Null(upper, self.repeats, self.scale, margin, self.strata)

    def guardrail(self, margin):
        return Null(True, self.repeats, self.scale, -margin)

    def tests(self):
        """(name, null) of the claim, harm and futility."""
        shape = {"promote": ((True, self.margin),), "noninferior": ((True, self.margin),),
                 "equivalent": ((True, -self.margin), (False, self.margin)),
                 "different": ((True, self.margin), (False, self.margin)), "kill": ((False, 0),), "measure": ()}
        found = list(zip(("claim", "second"), (self.null(*one) for one in shape[self.kind])))
        if "alpha_kill_micro" in self.registered:
            found.append(("kill", self.null(False, 0)))
        if self.futile:
            found.append(("futile", self.null(False, self.futile[1])))
        return found

    def problem(self):
        """What keeps these terms from being a test."""
        test, margin, scale = self.registered, self.margin, self.scale
        if self.kind == "kill" and margin:
            return "test.null_margin_micro 0 to kill", "%d (E_MARGIN)" % margin
        margin = {"noninferior": -margin, "promote": margin, "equivalent": margin,
                  "different": margin}.get(self.kind, 0)
        looks = test.get("look_at")
        carried = [self.carried.get(name, 0) for name in ("claim", "second", "kill", "futile")]
        levels = [self.alpha, test.get("alpha_kill_micro", 1)] + ([self.futile[0]] if self.futile else [])
        checks = (
            (1 <= scale <= 10 ** 12, "E_SCALE"), (1 <= self.repeats <= 1000, "E_N"),
            (scale * self.repeats <= 10 ** 12, "E_SCALE"),
            (1 <= test["n_max"] <= 10 ** 9, "E_N"), (1 <= test["n_min"] <= test["n_max"], "E_N"),
            (looks is None or 1 <= len(looks) <= 10_000, "E_N"),
            (self.units is None or test["n_max"] <= self.units <= 10 ** 6, "E_N"),
            (all(abs(log) <= 1e9 for log in carried), "E_N"), (all(0 < level < ONE for level in levels), "E_ALPHA"),
            (-scale < margin < scale, "E_MARGIN"),
            (margin > 0 or self.kind not in ("noninferior", "equivalent"), "E_MARGIN"),
            (self.futile is None or self.kind in ("promote", "noninferior", "measure")
             and (self.margin if self.kind != "measure" else 0) < self.futile[1] < scale, "E_MARGIN"),
            (len(self.guardrails) <= 16 and all(0 < one < scale for one in self.guardrails), "E_MARGIN"),
            (self.stop[1] > 0 and self.stop[0] * self.alpha >= self.stop[1] * ONE, "E_FAMILY_BUDGET"),
            (1 <= self.fractions <= FRACTIONS_MAX, "E_BETTOR"), (self.grid or self.units is None, "E_BETTOR"),
            (self.grid or 0 < self.cap, "E_BETTOR"),
            (self.bettor["name"] != "hedged" or self.cap < ONE, "E_BETTOR"),
            (self.bettor["name"] != "agrapa" or all(self.cap * null.stake < ONE * null.span
                                                    for _, null in self.tests()), "E_BETTOR"))
        for good, code in checks:
            if not good:
                return "terms that a test can have", "others (%s)" % code
        bar = math.log(ONE / self.alpha)
        claims = [(name, null) for name, null in self.tests() if name in ("claim", "second")]
        if self.kind == "different":      # each side's wealth counts half
            sides = [self.reaches(null, null.span if null.upper else 0, bar + math.log(2) - self.carried.get(name, 0))
                     for name, null in claims]
            if not any(sides):
                return "test.n_max that the best units could decide within", "%d (E_HORIZON)" % test["n_max"]
            claims = []
        claims += [("guardrail", self.guardrail(one)) for one in self.guardrails]
        for name, null in claims:
            best = null.span if null.upper else 0
            if self.kind == "equivalent" and name != "guardrail" and not self.strata:
                best = null.span // 2
            if not self.reaches(null, best, bar - self.carried.get(name, 0)):
                return "test.n_max that the best units could decide within", "%d (E_HORIZON)" % test["n_max"]

    def reaches(self, null, tick, bar):
        most = self.registered["n_max"]
        if self.grid and self.units is None:
            log = log_mean_exp([most * one for one in log_factors(null.oriented(tick), null.stake, self.fractions)])
            return is_past(most, self.fractions, log, bar)
        order = sorted(range(len(null.offsets)), key=lambda at: -null.offsets[at])   # the best comes first
        strata = (at for at in order for _ in range(self.strata[at][1])) if order else (None for _ in range(most))
        path = self.path(null, (tick for _ in range(most)), strata)
        return any(is_past(n, self.fractions, log, bar) for n, log in enumerate(path, 1))

    def ticks(self, deltas):
        half = self.repeats * self.scale
        return [self.sign * delta + half for delta in deltas]

    def wealth(self, null, ticks, strata):
        """Logarithm of the wealth against a null."""
        if self.grid:
            return grid_kelly(null, ticks, strata, self.fractions, self.units)
        total = 0.0
        for total in self.path(null, ticks, strata):
            pass
        return total

    def path(self, null, ticks, strata):
        """The same after each observation, where it depends on their order."""
        if self.grid:
            logs, total, added, impossible = [0.0] * self.fractions, 0, null.added, False
            for drawn, (tick, stratum) in enumerate(zip(ticks, strata)):
                value, allowed, offset = null.oriented(tick), self.units * null.stake - total, null.offset(stratum)
                if allowed + added > 0 and not impossible:
                    row = log_factors((value + offset) * (self.units - drawn), allowed + added, self.fractions)
                    logs = [a + b for a, b in zip(logs, row)]
                total += value
                added -= offset
                impossible = impossible or self.units * null.stake < total
                yield math.inf if impossible else log_mean_exp(logs)
            return
        mean, total, squares, sum_ = null.stake / null.span, 0.0, 0.0, 0.0
        for n, tick in enumerate(ticks):
            x, centre, spread = null.oriented(tick) / null.span, (0.5 + sum_) / (n + 1), (0.25 + squares) / (n + 1)
            if self.bettor["name"] == "agrapa":
                edge = centre - mean
                bet = min(max(0.0, edge / (spread + edge * edge)), self.cap / ONE)
            else:
                bet = math.sqrt(2 * math.log(2 * ONE / self.alpha) / (spread * (n + 1) * math.log(n + 2)))
                bet = min(bet, self.cap / ONE / mean)
            total += math.log1p(bet * (x - mean))
            sum_ += x
            squares += (x - (0.5 + sum_) / (n + 2)) ** 2
            yield total

    def celled(self, ticks, upper):
        """Ticks as the interval reads them: past so many distinct ones, a new one counts at its cell's end near H0."""
        if self.units is not None or len(set(ticks)) <= CELLS:
            return ticks
        span, kept, found = 2 * self.repeats * self.scale, set(), []
        width = span // CELLS + 1
        if self.grid:
            ticks = sorted(ticks, reverse=self.sign < 0)
        for tick in ticks:
            if tick not in kept and len(kept) == CELLS:
                low = min(tick // width, CELLS - 1) * width
                found.append(low if upper else min(low + width - 1, span))
            else:
                kept.add(tick)
                found.append(tick)
        return found

    def interval(self, ticks, strata):
        """Mean improvements in millionths that grid-Kelly does not reject at alpha on either side."""
        bar, n, scale = math.log(2 * ONE / self.alpha), len(ticks), self.scale
        seen = {upper: self.celled(ticks, upper) for upper in (True, False)}

        def rejects(upper, margin):
            log = grid_kelly(self.null(upper, margin), seen[upper], strata, self.fractions, self.units)
            return is_past(n, self.fractions, log, bar)
        ends = []
        for upper in (True, False):               # the lower end is found among upper tests, and the other way round
            sign = 1 if upper else -1
            end, beyond = -sign * scale, sign * scale
            if abs(end + sign) < scale and rejects(upper, end + sign):
                end += sign
                while abs(beyond - end) > 1:
                    middle = end + sign * (abs(beyond - end) // 2)
                    end, beyond = (middle, beyond) if rejects(upper, middle) else (end, middle)
            ends.append(end)
        if self.units is not None:
            per, centre = self.units * self.repeats, self.units * self.repeats * scale
            most = sum(ticks) + 2 * self.repeats * scale * (self.units - n) - centre
            ends = [max(ends[0], (sum(ticks) - centre) // per), min(ends[1], -(-most // per))]
        return ends

    def look(self, gate):
        """What the observations of a gate show: the fields of gate.looked that are computed."""
        ticks, test, n = self.ticks(gate.streams[0]), self.registered, gate.n
        known = {name: at for at, name in enumerate(strata_of(test))}
        none, strata = [None] * n, [known.get(name) for name in gate.strata]
        # What may have been at most: each missing draw at the other end of the scale.
        span = 2 * self.repeats * self.scale
        most = [min(span, tick + absent * self.width) for tick, absent in zip(ticks, gate.absent)]
        logs = {}
        for name, null in self.tests():
            against = most if name in ("kill", "futile") else ticks
            logs[name] = self.carried.get(name, 0) + self.wealth(null, against, strata)
        guardrails = [self.wealth(self.guardrail(margin), self.ticks(deltas), none)
                      for margin, deltas in zip(self.guardrails, gate.streams[1:])]
        claim = None
        if "claim" in logs:
            sides = [logs["claim"], logs.get("second", logs["claim"])]
            claim = min([log_mean_exp(sides) if self.kind == "different" else min(sides)] + guardrails)
        standing, leading = "undecided_at_n_max" if n >= test["n_max"] else "continue", False
        if n >= test["n_min"]:
            own = math.log(ONE / self.alpha)
            shown = {"promote": "promote", "noninferior": "noninferior", "equivalent": "equivalent",
                     "kill": "kill", "different": "different"}.get(self.kind)
            if claim is not None and is_past(n, self.fractions, claim, math.log(self.stop[0] / self.stop[1])):
                standing = shown
            elif "kill" in logs and is_past(n, self.fractions, logs["kill"], math.log(ONE / test["alpha_kill_micro"])):
                standing = "kill"
            elif "futile" in logs and is_past(n, self.fractions, logs["futile"], math.log(ONE / self.futile[0])):
                standing = "futile"
            elif claim is not None and is_past(n, self.fractions, claim, own):
                leading = True
        interval, p = self.interval(ticks, strata), math.exp(-max(0.0, claim or 0.0))
        if most != ticks:
            interval[1] = self.interval(most, strata)[1]
        if gate.last:
            p = min(p, gate.last["p"])
            interval = [max(interval[0], gate.last["cs_lo_micro"]), min(interval[1], gate.last["cs_hi_micro"])]
        return {"logs": logs, "guardrails": guardrails, "log_e": claim or 0.0, "p": p, "interval": interval,
                "standing": "leading" if leading and standing == "continue" else standing}


def is_past(n, fractions, log, bar):
    """Whether a log wealth is past a bar for certain, rounding included."""
    slack = 0.0 if math.isinf(log) else 4.0 * (n + fractions) * 2.0 ** -53 * (1.0 + abs(log))
    return log - slack >= bar


def grid_kelly(null, ticks, strata, fractions, units):
    """ln of the wealth of a grid of bets, each at a fixed fraction."""
    rows = []
    if units is None:
        counts = {}
        for tick in ticks:
            counts[tick] = counts.get(tick, 0) + 1
        rows = [(counts[tick], log_factors(null.oriented(tick), null.stake, fractions)) for tick in sorted(counts)]
    else:
        total, added = 0, null.added
        for drawn, (tick, stratum) in enumerate(zip(ticks, strata)):
            value, allowed, offset = null.oriented(tick), units * null.stake - total, null.offset(stratum)
            if allowed + added > 0:
                rows.append((1, log_factors((value + offset) * (units - drawn), allowed + added, fractions)))
            total += value
            added -= offset
            if units * null.stake < total:
                return math.inf
    if not rows:
        return 0.0
    return log_mean_exp([math.fsum(count * row[k] for count, row in rows) for k in range(fractions)])


def is_near(expected, found):
    """Whether a recorded logarithm is the computed one, rounding aside."""
    expected = max(-LOG_MAX, min(LOG_MAX, expected))
    return found is not None and abs(expected - found) <= NEAR * max(1.0, abs(expected))


def terms(manifest, test, family, carried):
    """(problem, design) of a registered test."""
    for section in ("test", "metric"):
        if section not in manifest:
            return ("section %s" % section, "none"), None
    if manifest["test"]["without_replacement"] and "data" not in manifest:
        return ("section data", "none"), None
    design = Design(manifest, test, family, carried)
    return design.problem(), design


def horizon_problem(state, manifest):
    """A gate that could not end by its claim is not registered."""
    if manifest["template"] != "gate" or "test" not in manifest or "metric" not in manifest:
        return None
    family = state.families.get(manifest.get("multiplicity", {}).get("family"))
    problem = terms(manifest, manifest["test"], family, {})[0]
    return problem if problem and problem[1].endswith("(E_HORIZON)") else None
