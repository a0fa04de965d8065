"""Rules of keys, roles, experiments and budgets (`schema/KEYS.md`)."""

from formats.characters import holder_fault, skeleton
from formats.fields import decode_base64, is_usable, parse_vkey
from events.kinds import CONFLICTS, EXPERIMENTAL
from events.commitments import key_id_of, possession_message


def rule_role(state, e):
    key, needed = state.signer(e), e.spec.roles
    if e.kind == "budget.charged" and e.data["account"] in state.accounts:
        needed = state.accounts[e.data["account"]].spenders
    if e.kind == "budget.reserved" and e.data["account"] in state.accounts:
        needed = state.accounts[e.data["account"]].spenders
    if e.kind == "budget.settled" and e.data["hold"] in state.holds:
        needed = state.accounts[state.holds[e.data["hold"]][0]].spenders
    if e.kind == "manifest.deviated" and state.asks("deviation_signers"):
        needed = {"owner", "registrar"}
    if key and not key.ended and needed and not needed & key.roles:
        return "one of the roles " + ", ".join(sorted(needed)), "roles " + ", ".join(sorted(key.roles))


def part_role(state, e):
    """As `rule_role`, of an entry whose neighbours are withheld: the account that a charge names may be one of them."""
    return None if e.kind == "budget.charged" else rule_role(state, e)


def conflict(roles):
    """The first two roles that one holder may not have together."""
    return next((pair for pair in CONFLICTS if pair[0] in roles and pair[1] in roles), None)


def rule_separation(state, e):
    holders, ever = [], state.asks("roles_ever_held")
    if e.kind == "key.added" and state.strict:
        person = state.person(e.data["holder"])
        holders = [(person, state.roles_of(person, ever) | set(e.data["roles"]))]
    elif e.creates() and e.data["policy"]["separation"] == "strict":
        holders = [(e.data["owner"]["holder"], set(e.data["owner"]["roles"]))]
    elif e.kind == "policy.adopted" and e.data["separation"] == "strict":
        ever = ever and state.was_strict      # who was held to it before is held to what they held then too
        names = sorted({state.person(key.holder) for key in state.keys.values() if ever or not key.ended})
        holders = [(name, state.roles_of(name, ever)) for name in names]
    for name, roles in holders:
        if conflict(roles):
            return "separate holders for %s and %s" % conflict(roles), "both held by " + name


def rule_assigned(state, e):
    if e.newer and state.asks("assigned_ids"):
        return "ids of characters that Unicode 13.0 assigns", e.newer[0]


def rule_spelling(state, e):
    if e.kind != "key.added" or not state.asks("one_spelling"):
        return None
    holder = e.data["holder"]
    fault = holder_fault(holder)
    if fault:
        return "a holder of visible characters and single spaces", fault
    other = next((key.holder for _, key in sorted(state.keys.items())
                  if key.holder != holder and skeleton(key.holder) == skeleton(holder)), None)
    return other and ("the holder as it is spelled so far, %s" % other, "%s, which looks like it" % holder)


def rule_possession(state, e):
    if e.kind != "key.added":
        return None
    public, key_id = decode_base64(e.data["public_key"]), e.data["key_id"]
    if key_id != key_id_of(public):
        return "key_id %s (of public_key)" % key_id_of(public), key_id
    proof = decode_base64(e.data["proof"]) if "proof" in e.data else None
    if proof and state.origin is not None and not state.ed25519.verify(
            public, possession_message(state.origin, key_id), proof):
        return "a proof of possession signed by the new key", "one that does not verify"
    return None if is_usable(public) else ("a usable public key", public)


def rule_last_owner(state, e):
    if e.kind in ("key.retired", "key.compromised") and state.live_owners() == [e.data["key_id"]]:
        return "another live owner key", "none beside %s" % e.data["key_id"]


def rule_experiment(state, e):
    if state.format is None or state.format < 2:
        return None
    if e.experiment is None:
        return ("an experiment", "null") if e.kind.startswith(EXPERIMENTAL) else None
    if e.kind == "experiment.registered":
        return None
    if e.experiment not in state.experiments:
        return "a registered experiment", e.experiment
    closed = state.experiments[e.experiment]
    return None if closed is None else ("an open experiment", "%s, closed at seq %d" % (e.experiment, closed))


def rule_account(state, e):
    if e.kind in ("budget.charged", "budget.reserved") and e.data["account"] not in state.accounts:
        return "an opened account", e.data["account"]


def rule_overdraft(state, e):
    account = state.accounts.get(e.data["account"]) if e.kind == "budget.charged" else None
    if account is None:
        return None
    left = account.left(account.period_of(e.recorded_text))
    return None if e.data["amount"] <= left else ("at most %d" % max(0, left), "a charge of %d" % e.data["amount"])


def rule_target(state, e):
    if e.kind == "log_key.rotated":
        key = parse_vkey(e.data["vkey"])
        if state.origin not in (None, key[0]):
            return "a log key named %s" % state.origin, key[0]
        return ("a log key not used before", e.data["vkey"]) if key in [known for _, known in state.log_keys] else None
    if e.kind not in ("key.retired", "key.compromised"):
        return None
    key_id, since = e.data["key_id"], e.data.get("since_seq", 0)
    if since > e.position:
        return "since_seq of at most %d" % e.position, str(since)
    key = state.keys.get(key_id)
    if key is None:
        return "a known key", key_id
    # A key may turn out to be compromised after it was retired, or from an earlier seq than was known.
    more = e.kind == "key.compromised" and since < state.compromised.get(key_id, since + 1)
    return ("a live key", "%s, %s at seq %d" % ((key_id,) + key.ended)) if key.ended and not more else None


def name_problem(e, runs):
    """Why a run is not opened under its name: it belongs to an experiment, and no run of its kind had the name."""
    if e.experiment is None:
        return "an experiment", "none"
    return ("a name that no run had", e.data["run"]) if e.data["run"] in runs else None
