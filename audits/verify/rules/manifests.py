"""A manifest by itself, who signs under it, and what an amendment of it changes (`schema/MANIFEST.md`)."""

from formats.limits import MANY, MICRO_MAX, ONE
from rules.betting import scale_of


def candidates(manifest):
    """Arms that are tested against the baseline."""
    return [arm for arm in manifest.get("arms", []) if arm["role"] == "candidate"]


def shares_candidate(one, other):
    """Whether two manifests test one candidate: by its name or by what it is."""
    return any(a["id"] == b["id"] or a["artifact_digest"] == b["artifact_digest"]
               for a in candidates(one) for b in candidates(other))


def family_name(record_):
    return record_.versions[0].manifest.get("multiplicity", {}).get("family")


def family_of(state, record_):
    return state.families.get(family_name(record_))


def signer_problem(role, manifest, author):
    """A manifest may name who signs in a role."""
    named = manifest.get("roles", {}).get(role)
    if named and named != author:
        return "signed by roles.%s %s" % (role, named), "%s (E_SIGNER_ROLE)" % author


def supersession(record_):
    """Nothing is done under a manifest that another took the place of."""
    if record_.superseded_by:
        return "a manifest in force", "one that %s superseded (E_STALE_VERSION)" % record_.superseded_by


NEEDS = {"compare": "compare", "estimates": "estimates", "gate": "arms data estimand metric multiplicity test",
         "iteration": "iteration", "sgd": "sgd", "transport": "transport", "workflow": "workflow"}
OWNED = {"compare": "compare", "iteration": "iteration", "sgd": "sgd", "test": "gate", "transport": "transport", "workflow": "workflow"}
RANGES = (
    ("data.exposure_cap", 1, MANY), ("data.label_policy.pi_min_micro", 1, ONE), ("data.n_units", 1, MANY),
    ("metric.repeats", 1, MANY), ("test.alpha_kill_micro", 1, ONE - 1), ("test.alpha_micro", 1, ONE - 1),
    ("test.beta_futile_micro", 1, ONE - 1), ("test.bettor.grid", 1, 1000), ("test.n_max", 1, MANY),
    ("test.n_min", 1, MANY), ("transport.alpha_micro", 1, ONE - 1), ("transport.clusters_min", 2, MANY),
    ("transport.family_size", 1, MANY), ("transport.labels_per_cluster", 1, MANY),
    ("transport.margin_micro", 1, MICRO_MAX), ("transport.power_micro", ONE // 2 + 1, ONE - 1),
    ("transport.q_micro", 1, ONE // 2),
    ("transport.residual_sd_micro", 0, MICRO_MAX), ("iteration.alpha_micro", 1, ONE - 1),
    ("iteration.confirm_rows", 1, MANY), ("iteration.difference_sd_micro", 1, ONE),
    ("iteration.effect_micro", 1, 2 * ONE), ("iteration.eta_micro", 500, 2500),
    ("iteration.gap_seconds", 48 * 3600, MANY), ("iteration.green_sd_micro", 1, ONE),
    ("iteration.hypotheses_max", 1, 1000), ("iteration.power_micro", ONE // 2 + 1, ONE - 1),
    ("iteration.q_micro", 1, ONE - 1), ("iteration.tau_micro", 0, 2000),
    ("iteration.sequential.alpha_harm_micro", 1, ONE - 1), ("iteration.sequential.beta_futile_micro", 1, ONE - 1),
    ("iteration.sequential.look_every", 1, MANY), ("sgd.batch", 3, MANY),
    ("sgd.lr_max_micro", 1, ONE), ("sgd.lr_min_micro", 0, ONE), ("sgd.repeats", 2, MANY), ("sgd.steps", 1, MANY),
    ("workflow.beam", 1, MANY), ("workflow.calls_max", 1, MANY), ("workflow.proposals", 1, MANY),
    ("workflow.rounds", 1, MANY))
RANGES += (("diagnostics.drift.q_micro", 1, ONE - 1), ("diagnostics.drift.replicates", 99, 100_000),
           ("diagnostics.drift.sd_micro", 1, MICRO_MAX), ("diagnostics.drift.tau_min_micro", -ONE, ONE))
RANGES += tuple(("diagnostics.overlap.%s_micro" % name, 0, MICRO_MAX) for name in (
    "affinity_good", "affinity_warn", "cv_max", "ess_good", "ess_warn", "guarded_max", "hill_good", "hill_warn",
    "near_zero_max", "top_mass_max", "ttc_good", "ttc_warn"))
WORDS = ("title", "hypothesis.claim")
PREDICTABLE = ("preflight", "test.bettor", "test.look_at", "test.n_max")
TESTED = ("arms", "data", "estimand", "experiment", "hypothesis.kind", "manifest", "metric", "multiplicity",
          "supersedes", "template", "test.beacon", "test.continuation_of", "test.control_variate",
          "test.null_margin_micro", "test.side",
          "test.without_replacement", "transport.environments", "transport.margin_micro")
STRATA_MAX = 64                       # strata of a confirm set
FIXED = ("experiment", "manifest", "supersedes", "template")
FAMILIES = ("abstention", "contradiction_check", "evidence_verification", "length_bias_cap")
SLICES_MAX = 12


def at_path(value, path):
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def each_once(names):
    return len(set(names)) == len(names)


def manifest_fault(manifest):
    """What is wrong with a manifest by itself: sections, then ranges, then sizes."""
    template = manifest["template"]
    for section in NEEDS[template].split():
        if section not in manifest:
            return "section %s for template %s" % (section, template), "none"
    for section, owner in OWNED.items():
        if owner != template and section in manifest:
            return "no section of template %s" % owner, "section %s (E_UNREGISTERED_RULE)" % section
    for path, low, high in RANGES:
        value = at_path(manifest, path)
        if value is not None and not low <= value <= high:
            return "%s: %d to %d" % (path, low, high), str(value)
    diagnostics = manifest.get("diagnostics", {})
    drift, overlap = diagnostics.get("drift"), diagnostics.get("overlap")
    if drift:
        low, high = (1, ONE) if drift["chart"] == "ewma" else (0, 10 * ONE)
        if not low <= drift["chart_micro"] <= high:
            return "diagnostics.drift.chart_micro: %d to %d" % (low, high), str(drift["chart_micro"])
    for name in ("affinity", "ess", "hill", "ttc") if overlap else ():
        good, warn = overlap[name + "_good_micro"], overlap[name + "_warn_micro"]
        if good < warn:
            return "diagnostics.overlap.%s_good_micro: at least %d" % (name, warn), str(good)
    roles = [arm["role"] for arm in manifest.get("arms", [])]
    if "arms" in manifest and (roles.count("baseline") != 1 or len(roles) < 2
                               or not each_once([arm["id"] for arm in manifest["arms"]])):
        return "arms: one baseline and at least one candidate, each id once", "%d arms" % len(roles)
    metric, test = manifest.get("metric"), manifest.get("test")
    if metric and metric["scale_lo_micro"] >= metric["scale_hi_micro"]:
        return "metric.scale_hi_micro: more than scale_lo_micro", "%d (E_SCALE)" % metric["scale_hi_micro"]
    if test:
        if "data" in manifest and test["n_max"] > manifest["data"]["n_units"]:
            return "test.n_max: at most data.n_units", "%d (E_N)" % test["n_max"]
        estimand = manifest.get("estimand")
        if estimand and (estimand["population"] == "finite") != test["without_replacement"]:
            return ("estimand.population: finite with test.without_replacement, and only then",
                    "%s (E_UNIT)" % estimand["population"])
        if test["n_min"] > test["n_max"]:
            return "test.n_min: at most test.n_max", "%d (E_N)" % test["n_min"]
        looks = test.get("look_at")
        if looks is not None and not (looks and all(a < b for a, b in zip(looks, looks[1:]))
                                      and test["n_min"] <= looks[0] and looks[-1] <= test["n_max"]):
            return "test.look_at: looks from n_min to n_max, ascending", "%d looks (E_N)" % len(looks)
        if "control_variate" in test:
            problem = control_fault(test, test["control_variate"], metric, manifest.get("data"))
            if problem:
                return "test.control_variate: " + problem[0], problem[1]
    iteration = manifest.get("iteration")
    if iteration and ("sequential" in iteration) != (iteration["confirm_test"] == "sequential"):
        looks = "some" if "sequential" in iteration else "none"
        return ("iteration.sequential: looks with confirm_test sequential, and with no other",
                "%s with confirm_test %s" % (looks, iteration["confirm_test"]))
    audits, sgd = manifest.get("transport"), manifest.get("sgd")
    if audits:
        names = [(audited.get("family"), audited["environment"]) for audited in audits["environments"]]
        if not names or not each_once(names):
            return "transport.environments: at least one, each once", "%d environments" % len(names)
        of_window = [audited for audited in audits["environments"] if "window" in audited]
        if not all("family" in audited and lasts(audited["window"]) for audited in of_window):
            return "transport.environments: a window with a family, from before its to", "another"
        alone = sum(family is None for family, _ in names)
        if audits["family_size"] < alone:
            return "transport.family_size: at least the %d audits planned" % alone, str(audits["family_size"])
    if sgd and sgd["lr_min_micro"] > sgd["lr_max_micro"]:
        return "sgd.lr_min_micro: at most sgd.lr_max_micro", str(sgd["lr_min_micro"])
    if "compare" in manifest:
        problem = pairs_fault(manifest["compare"]["pairs"])
        if problem:
            return problem
    order = manifest.get("estimates", {}).get("order")
    if order and (len(order["policies"]) < 2 or len(set(order["policies"])) < len(order["policies"])):
        return "estimates.order.policies: at least two policies, each once", ", ".join(order["policies"])
    if order and order["labels"] == 0:
        return "estimates.order.labels: at least one label", "0"
    plan = manifest.get("iteration", {})
    return design_fault(plan, plan["design"]) if "design" in plan else None


def pairs_fault(pairs):
    """What is wrong with judges that are to be compared: at least one pair, of two judges each, and each pair once."""
    if not pairs:
        return "compare.pairs: at least one pair of judges", "none"
    seen = set()
    for at, pair in enumerate(pairs):
        one, other = pair["first"], pair["second"]
        if one == other:
            return "compare.pairs[%d]: two judges" % at, "%s twice" % one
        if frozenset((one, other)) in seen:
            return "compare.pairs[%d]: each pair of judges once" % at, "%s and %s again" % (one, other)
        seen.add(frozenset((one, other)))
    return None


def lasts(window):
    """Whether a window ends after it begins; timestamps of one form are in the order of their texts."""
    return window["from"] < window["to"]


def control_fault(test, strata, metric, data):
    """What is wrong with what is predicted of strata."""
    names = [one["stratum"].encode("utf-8") for one in strata]
    if not test["without_replacement"]:
        return "none of a population, whose strata nobody knows", "%d strata (E_UNREGISTERED_RULE)" % len(strata)
    if not 1 <= len(names) <= STRATA_MAX or not all(a < b for a, b in zip(names, names[1:])):
        return "1 to %d strata in order of their names, each once" % STRATA_MAX, "%d strata" % len(names)
    if metric and data:
        most, units = scale_of(metric), sum(one["units"] for one in strata)
        if any(abs(one["predicted_micro"]) > most for one in strata):
            return "predicted_micro of at most %d in magnitude" % most, "more (E_SCALE)"
        if any(one["units"] == 0 for one in strata):
            return "units from 1", "0"
        if units != data["n_units"]:
            return "strata of data.n_units %d together" % data["n_units"], "%d (E_N)" % units


def design_fault(plan, design):
    """What is wrong with what an iteration runs on."""
    families, slices = plan["patch_families"], design["slices"]
    if not families or not each_once(families) or not set(families) <= set(FAMILIES):
        return "iteration.patch_families: some of %s, each once" % ", ".join(FAMILIES), "%d families" % len(families)
    if not each_once([of["environment"] for of in design["environments"]]):
        return "iteration.design.environments: each environment once", "another"
    if not all(lasts(of["window"]) for of in design["environments"] if "window" in of):
        return "iteration.design.environments: a window from before its to", "another"
    if design.get("no_environment_claimed") and design["environments"]:
        return "iteration.design.no_environment_claimed: no environment", "%d" % len(design["environments"])
    if len(slices) > SLICES_MAX or not each_once([of["family"] for of in slices]):
        return "iteration.design.slices: at most %d families, each once" % SLICES_MAX, "%d families" % len(slices)
    for of in slices:
        cells = of["cells"]
        if not 1 <= len(cells) <= SLICES_MAX or not each_once([cell["slice"] for cell in cells]):
            return "iteration.design.slices: 1 to %d cells, each once" % SLICES_MAX, "%d cells" % len(cells)
        for cell in cells:
            bound = all(bool(on["any_of"]) if "any_of" in on else "at_least_micro" in on or "below_micro" in on
                        for on in cell["conditions"])
            if not cell["conditions"] or not bound:
                return "iteration.design.slices: conditions with a bound for %s" % cell["slice"], "none"
            if not 0 <= cell["stakes_micro"] <= ONE:
                return "iteration.design.slices: stakes_micro 0 to %d" % ONE, str(cell["stakes_micro"])
    topics = design["topics"]
    ascending = all(a.encode("utf-8") < b.encode("utf-8") for a, b in zip(topics, topics[1:]))
    if len(topics) > 100 or not ascending or not all(1 <= len(topic) <= 64 for topic in topics):
        found = "%d topics" % len(topics)
        return "iteration.design.topics: at most 100 topics of 1 to 64 characters, ascending", found


def fields_by_path(value, path, out):
    """Every field by path; a list is one field."""
    if isinstance(value, dict):
        for name, field in value.items():
            fields_by_path(field, path + "." + name if path else name, out)
    else:
        out[path] = value
    return out


def changes(old, new):
    """Paths in which two versions differ; which version they are is no difference."""
    old, new = fields_by_path(old, "", {}), fields_by_path(new, "", {})
    return sorted(path for path in (old.keys() | new.keys()) - {"version", "parent_digest"}
                  if old.get(path) != new.get(path))


def class_of_change(path):
    """0 of words, 1 of anything else, 2 of what could be predicted, 3 of what is tested."""
    def within(prefixes):
        return any(path == prefix or path.startswith(prefix + ".") for prefix in prefixes)
    return 0 if within(WORDS) else 3 if within(TESTED) else 2 if within(PREDICTABLE) else 1


def amendment_class(old, new):
    """The class of all changes together; looks that are narrowed count as 1."""
    classes = {class_of_change(path) for path in changes(old, new)}
    narrower = False
    if "test" in old and "test" in new:
        was, now = old["test"].get("look_at"), new["test"].get("look_at")
        narrower = new["test"]["n_max"] < old["test"]["n_max"] or now is not None and (
            was is None or not set(was) <= set(now))
    return 3 if 3 in classes else 1 if 1 in classes or narrower else 2 if 2 in classes else 0
