"""The rule of runs that lower the loss of a judge's prompt (`schema/SGD.md`)."""

import json

from events.commitments import length_prefixed
from formats.canonical import encode
from formats.fields import b64, decode_base64
from formats.tree import Tree, sha256
from history.sgd_folds import LISTED, beacon_above
from rules.custody import name_problem
from rules.asked import model_problem
from rules.sgd_called import called_problem
from rules import sgd_asked, sgd_gate, sgd_numbers, sgd_patch
from rules.sgd_prompts import prompt_problem, prompts, read, readable_prompts, terms_problem

DUE_OF = {
    "sgd.batch_drawn": ("batch",), "sgd.gradient_requested": ("request",), "sgd.gradient_returned": ("gradient",),
    "sgd.patch_proposed": ("proposal",), "sgd.patch_rejected": ("judgement",), "sgd.patch_approved": ("judgement",),
    "sgd.step_committed": ("commit", "proposal"), "sgd.reverted": ("batch", "checkpoint"),
    "sgd.stop_triggered": ("batch", "checkpoint"), "sgd.checkpoint_selected": ("checkpoint",), "sgd.test_read": ("test",)}
OF_AGENTS = ("sgd.gradient_returned", "sgd.patch_proposed")
REQUEST = {"class_stats", "loss_terms", "lr", "prev_gradient_digest", "prompt", "step", "table"}


def rule_sgd(state, e):
    if e.kind in ("score.recorded", "label.recorded", "label.sealed"):
        theirs = any(run.data["key"] == e.author for run in state.descents.values())
        if theirs:
            return "a key that is not of the agents of a run", e.author
        if e.kind == "score.recorded":
            return sgd_gate.agreement_problem(state, e) or sgd_asked.row_problem(state, e)
        return None
    if e.kind == "score.missed":
        return sgd_asked.row_problem(state, e)
    if e.kind == "judge_run.opened":
        return sgd_asked.asked_problem(state, e, prompt_under, scores_due, other_test)
    if e.kind == "promotion.issued":
        return promotion_problem(state, e)
    if e.kind == "sgd.opened":
        return opened_problem(state, e)
    if not e.kind.startswith("sgd."):
        return None
    run = state.descents.get(e.data["run"])
    if run is None:
        return "sgd.opened of %s" % e.data["run"], "none"
    return in_run_problem(state, e, run) or again_problem(state, e, run)


def opened_problem(state, e):
    data, terms = e.data, e.data["terms"]
    problem = name_problem(e, state.descents)
    if problem:
        return problem
    own = [run for run in state.descents.values() if run.experiment == e.experiment]
    for run in own:
        if run.end is None:
            return "no other open run in %s" % e.experiment, run.data["run"]
    key = state.keys.get(data["key"])
    if key is None or key.ended or "optimizer" not in key.roles:
        return "a live key in role optimizer", data["key"]
    if data["key"] in state.judged:
        return "an optimizer's key that signed no score and no label", data["key"]
    first = (data["model"].split() or [""])[0].lower()
    if first.startswith("aggregate/") != (data["agents"] == "aggregate"):
        return "the name of the built-in pair exactly where it writes the patches", data["model"]
    problem = model_problem(data, "agents", "patches")
    if problem:
        return problem
    if data["judge"] not in state.judges.get(e.experiment, {}):
        return "a registered judge", data["judge"]
    problem = sgd_asked.opened_problem(state, e)
    if problem:
        return problem
    registration = state.registrations.get(e.experiment)
    if registration is None:
        return "experiment.registered of the experiment", "none"
    beacon = beacon_above(state, e.experiment, e.seen) if state.asks("salted_rows") else None
    if beacon is None and state.asks("salted_rows"):
        return "a checkpoint above the newest label of the experiment", "none"
    if data.get("beacon") != beacon:
        return "drawn from %s" % beacon, str(data.get("beacon"))
    if data["seed"] != sgd_numbers.seed_of(registration, beacon, data["run"]):
        return "the seed that experiment and run give", data["seed"]
    if data["through_seq"] >= e.position:
        return "labels of entries before the run", str(data["through_seq"])
    newest = state.calibrating.get(e.experiment, 0)
    if not own and data["through_seq"] < newest:
        return "labels through the newest, at seq %d" % newest, str(data["through_seq"])
    for split in LISTED:
        if not data["splits"][split]["count"]:
            return "rows of %s" % split, "none"
    if own and min(own, key=lambda run: run.seq).data["splits"] != data["splits"]:
        return "the rows of the first run of %s" % e.experiment, "others"
    return terms_problem(terms) or prompt_problem(data)


def promotion_problem(state, e):
    """A prompt of a run is promoted as its checkpoint, on gates that hold it against prompt 0 on the confirm clusters."""
    first = text_problem(state, e) if state.asks("sgd_gate") else None
    if first:
        return first
    for name, run in sorted(state.descents.items()):
        left = [step.committed["new_digest"] for step in run.steps if step.committed and "attempt" in step.committed]
        if e.data["candidate_digest"] not in left:
            continue
        problem = promoted_problem(state, e, name, run)
        # Several runs may leave the same prompt: one that holds is enough.
        if problem is None:
            return None
        first = first or problem
    return first


def text_problem(state, e):
    """A prompt that a step of a run left is promoted by its own digest, and not by that of its text."""
    for name, run in sorted(state.descents.items()):
        for digest, prompt in readable_prompts(run).items():
            text = sgd_patch.rendered(prompt["sections"])
            texts = [sha256(of.encode("utf-8")).hex() for of in (text, text + "\n")]
            if digest != run.data["prompt_digest"] and e.data["candidate_digest"] in texts:
                return "%s, the prompt that %s left" % (digest, name), "%s, of its text" % e.data["candidate_digest"]
    return None


def promoted_problem(state, e, name, run):
    """The same, of one run that left the prompt."""
    if run.checkpoint is None or run.checkpoint["prompt_digest"] != e.data["candidate_digest"]:
        return "the checkpoint of %s" % name, e.data["candidate_digest"]
    if run.test_read is None:
        return "sgd.test_read of %s" % name, "none"
    for gate in e.data["gates"]:
        record_ = state.manifests.get(gate)
        current = record_ and record_.in_force()
        if current is None:
            return "a version in force", "none"
        manifest = current.manifest
        if manifest.get("data", {}).get("confirm_root") != sgd_gate.confirm_root(run):
            return "a gate on the confirm clusters of %s" % name, "another"
        if not any(arm["role"] == "baseline" and arm["artifact_digest"] == run.data["prompt_digest"]
                   for arm in manifest.get("arms", [])):
            return "a gate against prompt 0 of %s" % name, gate
        problem = sgd_gate.claim_problem(state, run, gate, manifest) if state.asks("sgd_gate") else None
        if problem:
            return problem
    return None


def in_run_problem(state, e, run):
    """Who says it, and whether it is due."""
    name, data, due = run.data["run"], e.data, run.due()
    after = e.kind == "sgd.scored" and data["part"] == "confirm"
    if e.experiment != run.experiment:
        return "the experiment of %s, %s" % (name, run.experiment), str(e.experiment)
    if due is None and not after:
        return "a run that is open, as %s is not" % name, "its end"
    problem = sgd_asked.quiet_problem(state, run)
    if problem:
        return problem
    if (e.author == run.data["key"]) != (e.kind in OF_AGENTS):
        return "the agents' key of %s for gradients and patches, and another for the rest" % name, e.author
    if not after and not is_due(due, e):
        return "%s first" % (" of ".join(word for word in due if word)), e.kind
    if "step" in data and e.kind != "sgd.scored":
        step = run.taken() - (1 if e.kind in ("sgd.reverted", "sgd.stop_triggered") else 0)
        if data["step"] != max(0, step):
            return "step %d" % max(0, step), str(data["step"])
    problem = called_problem(state, e, run) if e.kind in OF_AGENTS else None
    if problem:
        return problem
    check = {"sgd.rows_listed": rows_problem, "sgd.scored": scored_problem, "sgd.test_read": test_problem,
             "sgd.patch_proposed": proposed_problem, "sgd.patch_approved": approved_problem,
             "sgd.stopped": stopped_problem}.get(e.kind)
    return check(state, e, run) if check else None


def is_due(due, e):
    what, part = due
    if e.kind == "sgd.rows_listed":
        return due == ("rows", e.data["split"])
    if e.kind == "sgd.loss_computed":
        return due == ("loss", e.data["part"])
    if e.kind == "sgd.scored":
        return scores_due(due, e.data["part"])
    return e.kind == "sgd.stopped" or what in DUE_OF.get(e.kind, ())


def scores_due(due, part):
    """Whether rows of a part may be scored now."""
    return due == ("scores", part) or part == "val" and due[0] == "judgement" or part == "test" and due[0] == "test"


def prompt_under(run, part, digest):
    """The prompt of a digest under which rows of a part are due, or None."""
    if part == "val" and run.going() is not None:
        prompt = verdict(run)[1]
        return prompt if prompt is not None and sgd_patch.digest(prompt) == digest else None
    due = [run.data["prompt_digest"]] if part in ("base", "val") else [run.digest()]
    if part in ("confirm", "test"):
        due = [run.data["prompt_digest"], run.checkpoint and run.checkpoint["prompt_digest"]]
    return prompts(run).get(digest) if digest in due else None


def row_leaf(row):
    return sha256(b"\0", *(length_prefixed(of) for of in (
        row["item"], row["policy"], str(row["draw"]), str(row["target_micro"]))))


def rows_root(rows):
    tree = Tree()
    for row in rows:
        tree.append(row_leaf(row))
    return b64(tree.root(tree.size))


def row_key(row):
    return row["item"].encode("utf-8"), row["policy"].encode("utf-8"), row["draw"]


def rows_problem(state, e, run):
    data, listed = e.data, run.rows[e.data["split"]]
    if data["first"] != len(listed):
        return "rows from place %d" % len(listed), str(data["first"])
    if not data["rows"]:
        return "a row", "none"
    keys = [row_key(row) for row in listed[-1:] + data["rows"]]
    if not all(a < b for a, b in zip(keys, keys[1:])):
        return "rows in ascending order", data["rows"][0]["item"]
    for split, rows in run.rows.items():
        shared = {row["item"] for row in rows} & {row["item"] for row in data["rows"]}
        if split != data["split"] and shared:
            return "a cluster in %s alone" % data["split"], "%s in %s too" % (min(shared), split)
    whole, part = listed + data["rows"], run.data["splits"][data["split"]]
    if len(whole) > part["count"]:
        return "%d rows of %s" % (part["count"], data["split"]), str(len(whole))
    if len(whole) == part["count"] and rows_root(whole) != part["root"]:
        return "the root of %s, %s" % (data["split"], part["root"]), rows_root(whole)
    return None


def scored_problem(state, e, run):
    data, step = e.data, run.going()
    part, digest, number = data["part"], run.digest(), run.taken()
    if part == "base":
        scored, rows, digest, number = len(run.base), run.count("train"), run.data["prompt_digest"], 0
    elif part == "batch":
        scored, rows = len(step.scores), len(step.batch["rows"])
    elif part == "val":
        scored, rows = len(step.val_scores if step else run.best_scores), run.count("val")
        digest = data["prompt_digest"] if step else run.data["prompt_digest"]
    elif part == "confirm":
        problem = sgd_gate.confirm_problem(state, run, data)
        if problem:
            return problem
        digest, rows = data["prompt_digest"], run.count("confirm")
        scored = len(run.confirm.get(digest, ()))
    else:
        if run.checkpoint is None:
            return "sgd.checkpoint_selected before test is read", "none"
        problem = other_test(state, run)
        if problem:
            return problem
        if data["prompt_digest"] not in (run.data["prompt_digest"], run.checkpoint["prompt_digest"]):
            return "test under prompt 0 or the checkpoint", data["prompt_digest"]
        digest, rows = data["prompt_digest"], run.count("test")
        scored = len(run.test.get(digest, ()))
    count = len(data["scores"])
    if data["first"] != scored or not count or scored + count > rows:
        return "scores from place %d of %d" % (scored, rows), "%d from %d" % (count, data["first"])
    if data["prompt_digest"] != digest:
        return "scores under %s" % digest, data["prompt_digest"]
    if data["step"] != number:
        return "scores of step %d" % number, str(data["step"])
    most = run.data["terms"]["repeats"]
    if not all(len(of) <= most and all(0 <= z <= 10 ** 6 for z in of) for of in data["scores"]):
        return "at most %d scores of a row, each from 0 to 1" % most, "others"
    return None


def other_test(state, run):
    for other in state.descents.values():
        if other is not run and other.experiment == run.experiment and (other.test or other.test_asked):
            return "rows of test that %s has not read" % other.data["run"], "%s, on the same rows" % run.data["run"]
    return None


def test_problem(state, e, run):
    problem = other_test(state, run)
    if problem:
        return problem
    chosen = run.checkpoint["prompt_digest"] if run.checkpoint else None
    if e.data["prompt_digest"] != chosen:
        return "test of the checkpoint, %s" % chosen, e.data["prompt_digest"]
    for digest in (run.data["prompt_digest"], chosen):
        if len(run.test.get(digest, ())) != run.count("test"):
            return "%d rows of test under %s" % (run.count("test"), digest), str(len(run.test.get(digest, ())))
    return None


def proposed_problem(state, e, run):
    if e.data["attempt"] != len(run.going().proposed):
        return "proposal %d of the step" % len(run.going().proposed), str(e.data["attempt"])
    if e.data["parent_digest"] != run.digest():
        return "a patch of %s" % run.digest(), e.data["parent_digest"]
    return None


def approved_problem(state, e, run):
    standing = run.going().standing()
    if e.data["attempt"] != standing["attempt"]:
        return "a word about proposal %d" % standing["attempt"], str(e.data["attempt"])
    digest = sha256(standing["patch"].encode("utf-8")).hex()
    if e.data["patch_digest"] != digest:
        return "a word about %s" % digest, e.data["patch_digest"]
    key = state.keys.get(e.author)
    if key is None or not key.human or e.author == run.data["key"]:
        return "a person's key that is none of the agents'", e.author
    return None


def stopped_problem(state, e, run):
    if e.data["steps"] != run.taken():
        return "%d steps" % run.taken(), str(e.data["steps"])
    if e.data["reason"] == "completed" and run.test_read is None:
        return "sgd.test_read before its end is told as completed", "none"
    return None


# What is computed again.

def schedule(run):
    terms = run.data["terms"]
    return {"lr_max": terms["lr_max_micro"], "lr_min": terms["lr_min_micro"], "steps": terms["steps"],
            "tau": terms["tau_micro"], "warmup": terms["warmup"]}


def patch_terms(run):
    return {"chars_min": 20, "chars_scale": 400, "growth_max": 1_250_000, "hunks_max": 3, "schedule": schedule(run),
            "section_chars_max": 600}


def verdict(run):
    """(violations, prompt) of the proposal that stands; violations are None where a person has to speak first."""
    step = run.going()
    standing = step.standing()
    proposal, found = read(standing["patch"]), prompts(run)
    word = step.words.get(standing["attempt"])
    try:
        patch = sgd_patch.digest(proposal["patch"])
        approvals = {patch} if word and word["decision"] == "approve" else set()
        items = len(read(step.gradient["gradient"])["items"])
        broken, prompt = sgd_patch.judge(found[run.data["prompt_digest"]], found[run.digest()], proposal, run.taken(),
                                         patch_terms(run), approvals, items)
    except (KeyError, TypeError):
        return [("form", 1, 0)], None
    if broken and word is None and all(of[0] == "approval" for of in broken):
        return None, None
    return broken, prompt


def once(pairs):
    """An object whose members stand once each."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member twice")
    return dict(pairs)


def is_readable(gradient):
    """Whether a text has the members of a gradient; whether they fit the run is asked when it is returned."""
    said = read(gradient)
    return (isinstance(said, dict) and set(said) == {"anchors", "items", "step"} and type(said["step"]) is int
            and isinstance(said["anchors"], list) and isinstance(said["items"], list))


def gradient_problem(data, run):
    """A returned gradient is one of the prompt that stands, at the step that is due."""
    try:
        said = json.loads(data["gradient"], object_pairs_hook=once)
        sections = {of["section_id"] for of in prompts(run)[run.digest()]["sections"]}
        whole = set(said) == {"anchors", "items", "step"} and type(said["step"]) is int and said["step"] == run.taken()
        anchors = said["anchors"]
        fits = whole and isinstance(anchors, list) and len(set(anchors)) == len(anchors) and sections.issuperset(anchors)
        fits = fits and isinstance(said["items"], list) and len(said["items"]) <= 5
        fits = fits and all(is_gradient_item(of, sections) for of in said["items"])
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        fits = False
    return None if fits else ("a gradient of the prompt that stands", "none")


def is_gradient_item(of, sections):
    names = {"attribution", "class", "confidence", "direction", "target_section"}
    text = of["attribution"]
    return (set(of) == names and isinstance(text, str) and sgd_patch.is_normal(text) and "\n" not in text
            and len(text) <= 280 and of["class"] in ("A", "B", "C") and of["target_section"] in sections
            and of["direction"] in ("tighten", "loosen", "clarify", "rebalance", "keep")
            and type(of["confidence"]) is int and 0 <= of["confidence"] <= 1_000_000)


def again_problem(state, e, run):
    check = {"sgd.batch_drawn": batch_problem, "sgd.scored": val_problem, "sgd.loss_computed": loss_problem,
             "sgd.gradient_requested": request_problem, "sgd.gradient_returned": gradient_problem,
             "sgd.patch_rejected": rejected_problem,
             "sgd.step_committed": committed_problem, "sgd.reverted": reverted_problem,
             "sgd.stop_triggered": stop_problem, "sgd.checkpoint_selected": checkpoint_problem,
             "sgd.test_read": test_again_problem}.get(e.kind)
    if check is None:
        return None
    # Of a run whose steps lack their proposals nothing can be computed: this raises, and is a finding.
    prompts(run)
    problem = sgd_asked.scored_problem(state, e, run, prompt_under) if e.kind == "sgd.scored" else None
    return problem or check(e.data, run)


def followed_problem(run):
    """What the numbers of the last step call for comes before the next."""
    if not run.taken():
        return None
    back, triggers = sgd_numbers.course(run)
    if back and run.data["terms"]["reverts"] and not run.steps[-1].reverted:
        return "sgd.reverted to %s first" % run.digest_at(run.best()), "none"
    if triggers and run.stop is None:
        return "sgd.stop_triggered after step %d first" % (run.taken() - 1), "none"
    return None


def batch_problem(data, run):
    problem = followed_problem(run)
    if problem:
        return problem
    places, high, low, confusable = sgd_numbers.batch(run)
    if data["rows"] != places:
        return "rows %s" % places, str(data["rows"])
    if (data["high"], data["low"], data["confusable"]) != (high, low, confusable):
        return "strata of %d, %d and %d rows" % (high, low, confusable), "others"
    root = rows_root([run.rows["train"][at] for at in places])
    return ("root %s" % root, data["root"]) if data["root"] != root else None


def val_problem(data, run):
    if data["part"] != "val" or run.going() is None:
        return None
    broken, prompt = verdict(run)
    if prompt is None:
        return "a proposal that is valid", "another"
    digest = sgd_patch.digest(prompt)
    return ("val under %s" % digest, data["prompt_digest"]) if data["prompt_digest"] != digest else None


def batch_rows(run):
    return [run.rows["train"][at] for at in run.going().batch["rows"]]


def loss_problem(data, run):
    part, step = data["part"], run.going()
    if part == "base":
        rows, scores, digest = run.rows["train"], run.base, run.data["prompt_digest"]
    elif part == "batch":
        rows, scores, digest = batch_rows(run), step.scores, run.digest()
    elif step:
        broken, prompt = verdict(run)
        if prompt is None:
            return "a proposal that is valid", "another"
        rows, scores, digest = run.rows["val"], step.val_scores, sgd_patch.digest(prompt)
    else:
        rows, scores, digest = run.rows["val"], run.best_scores, run.data["prompt_digest"]
    if data["prompt_digest"] != digest:
        return "the loss under %s" % digest, data["prompt_digest"]
    return sgd_numbers.differs(sgd_numbers.loss(run, rows, scores), data["loss"])


def request_problem(data, run):
    """The request has closed members, the prompt that stands, the rate and the step; its numbers the program computes again."""
    request = read(data["request"])
    if not isinstance(request, dict) or not set(request) <= REQUEST or encode(request) != data["request"]:
        return "a request of closed members as canonical JSON", "another form"
    if sha256(data["request"].encode("utf-8")).hex() != data["request_digest"]:
        return "the digest of the request", data["request_digest"]
    if request["prompt"] != prompts(run)[run.digest()]:
        return "the prompt that stands", "another"
    rate = sgd_patch.rate(schedule(run), run.taken())
    if request["lr"] != rate or request["step"] != run.taken():
        return "rate %d of step %d" % (rate, run.taken()), "%s of %s" % (request["lr"], request["step"])
    return None


def rejected_problem(data, run):
    if all(of["rule"] == "leak" for of in data["violations"]):
        return None
    broken, prompt = verdict(run)
    if broken is None:
        return "a person's word first", "none"
    if prompt is not None:
        return "no rejection of a valid proposal", "one"
    said = [(of["rule"], of["found"], of["bound"]) for of in data["violations"]]
    again = [(rule, str(measured), str(bound)) for rule, measured, bound in broken]
    return (str(again), str(said)) if said != again else None


def committed_problem(data, run):
    step, parent, number = run.going(), run.digest(), run.taken()
    if step.gradient is not None and not is_readable(step.gradient["gradient"]):
        return "a gradient", "none"
    if data["parent_digest"] != parent:
        return "a step from %s" % parent, data["parent_digest"]
    rate = sgd_patch.rate(schedule(run), number)
    if data["lr_micro"] != rate:
        return "rate %d" % rate, str(data["lr_micro"])
    standing, error = step.standing(), 0.0
    if standing is None:
        last = run.steps[number - 1] if number else None
        val = run.val_at(last.reverted["best"] if last and last.reverted else number)
        digest, attempt = parent, None
    else:
        broken, prompt = verdict(run)
        if prompt is None or step.val is None:
            return "a proposal that is valid, with its loss of val", "another"
        val, digest, attempt = step.val, sgd_patch.digest(prompt), standing["attempt"]
        error = sgd_numbers.paired_error(run, step.val_scores)
        problem = measured_problem(data, run, standing)
        if problem:
            return problem
    for name, again in (("attempt", attempt), ("new_digest", digest)):
        if data.get(name) != again:
            return "%s %s" % (name, again), str(data.get(name))
    if not sgd_numbers.is_near(data["error"], error):
        return "error %s" % error, str(data["error"])
    before = run.best()
    best = number + 1 if val["loss"] < run.val_at(before)["loss"] else before
    if data["best"] != best:
        return "best %d" % best, str(data["best"])
    return sgd_numbers.differs(step.train, data["train"]) or sgd_numbers.differs(val, data["val"])


def measured_problem(data, run, standing):
    patch, parent = read(standing["patch"])["patch"], prompts(run)[run.digest()]
    change, hunks = sgd_patch.edit_of(patch)
    old = next((of["text"] for of in parent["sections"] if of["section_id"] == patch["section"]), "")
    new = sgd_patch.apply_diff(hunks, old)
    found = {rule: measured for rule, measured, _ in sgd_patch.measures(
        patch, change, old, new, patch_terms(run), sgd_patch.rate(schedule(run), run.taken()))}
    said = data.get("measured", {})
    for name, rule in (("chars", "chars"), ("effective_micro", "effective_step"), ("soft_to_hard", "soft_to_hard")):
        if said.get(name) != found[rule]:
            return "%s %d" % (name, found[rule]), str(said.get(name))
    return None


def reverted_problem(data, run):
    back = run.taken() and sgd_numbers.course(run)[0] and run.data["terms"]["reverts"] and not run.steps[-1].reverted
    if not back:
        return "a step that is taken back", "none"
    best = run.best()
    again = {"best": best, "to_digest": run.digest_at(best), "best_loss": run.val_at(best)["loss"],
             "val_loss": run.val_at(run.taken())["loss"], "se": run.steps[-1].committed["error"]}
    for name, of in sorted(again.items()):
        if data[name] != of:
            return "%s %s" % (name, of), str(data[name])
    return None


def stop_problem(data, run):
    triggers = sgd_numbers.course(run)[1] if run.taken() and run.stop is None else []
    if not triggers:
        return "a step that triggers a stop", "none"
    again = {"triggers": triggers, "extra": run.data["terms"]["extra"]}
    for name, of in sorted(again.items()):
        if data[name] != of:
            return "%s %s" % (name, of), str(data[name])
    return None


def checkpoint_problem(data, run):
    problem = followed_problem(run)
    if problem:
        return problem
    losses = [run.val_at(place)["loss"] for place in range(run.taken() + 1)]
    best = losses.index(min(losses))
    again = {"best": best, "prompt_digest": run.digest_at(best), "val_loss": losses[best]}
    for name, of in sorted(again.items()):
        if data[name] != of:
            return "%s %s" % (name, of), str(data[name])
    return None


def test_again_problem(data, run):
    for name, digest in (("base", run.data["prompt_digest"]), ("chosen", data["prompt_digest"])):
        problem = sgd_numbers.differs(sgd_numbers.loss(run, run.rows["test"], run.test[digest]), data[name])
        if problem:
            return problem
    return None
