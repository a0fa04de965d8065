"""Rules of any entry: place, clock, kind, key, signature, numbers, references and blobs (`schema/ENVELOPE.md`)."""

from formats.limits import Refused, SKEW
from formats.fields import Path, b64, decode_base64, parse_vkey
from events.kinds import RETIRED
from events.commitments import key_id_of, pre_authentication
from history.rulebooks import RULEBOOK_NEWEST, RULEBOOK_UNNAMED


def rule_seq(_state, e):
    return None if e.seq == e.position else ("seq %d" % e.position, "seq %d" % e.seq)


def rule_recorded_at(state, e):
    if state.last_recorded and e.recorded_at < state.last_recorded[0]:
        return "at or after %s" % state.last_recorded[1], e.recorded_text


def rule_ledger(state, e):
    expected = e.data["origin"] if e.creates() else state.origin
    if expected is not None and e.ledger != expected:
        return expected, e.ledger


def rule_kind(state, e):
    name = "%s v%d" % (e.kind, e.v)
    if e.spec is None:
        return "a registered kind and version", name
    if state.format is not None and state.format >= RETIRED.get((e.kind, e.v), state.format + 1):
        return "a version in force in format %d" % state.format, name + " (retired)"


def rule_schema(_state, e):
    try:
        e.spec.schema(e.data, Path("data", e.newer))
    except Refused as refused:
        return refused.expected, refused.found


def rule_keyid(_state, e):
    return None if e.keyid == e.author else ("keyid %s (the author)" % e.author, e.keyid)


def rule_key(state, e):
    key = state.signer(e)
    if key is None:
        return "a key added before this entry", "unknown key %s" % e.author
    if key.ended:
        return "a live key", "key %s, %s at seq %d" % ((e.author,) + key.ended)


def rule_signature(state, e):
    key = state.signer(e)
    if key and not state.ed25519.verify(key.public, pre_authentication(e.payload), e.signature):
        return "a strict Ed25519 signature by %s over the body" % e.author, "one that does not verify"


def rule_author_seq(state, e):
    expected = state.next_number.get(e.author, 0)
    return None if e.author_seq == expected else ("author_seq %d" % expected, "author_seq %d" % e.author_seq)


def rule_seen(state, e):
    if e.position == 0 or e.seen is None:
        if (e.position == 0) == (e.seen is None):
            return None
        return ("null at seq 0", "size %d" % e.seen[0]) if e.seen else ("a checkpoint that the author saw", "null")
    size, root = e.seen
    if not 1 <= size <= e.position:
        return "size in 1..=%d" % e.position, "size %d" % size
    if size < state.last_seen.get(e.author, 0):
        return "size at least %d, which this author saw before" % state.last_seen[e.author], "size %d" % size
    if root != state.tree.root(size):
        return "root %s at size %d" % (b64(state.tree.root(size)), size), "root %s" % b64(root)


def rule_backdated(state, e):
    if e.at > e.recorded_at + SKEW:
        return "at no later than recorded_at %s + 300 s" % e.recorded_text, e.at_text
    if e.seen and 1 <= e.seen[0] <= e.position and e.at < state.times[e.seen[0] - 1] - SKEW:
        return "at no earlier than recorded_at of seq %d - 300 s" % (e.seen[0] - 1), e.at_text


def rule_refs(state, e):
    named = {"label.revealed": "charge", "score.conflict": "recorded", "transport.tested": "charge",
             "environments.tested": "charge"}.get(e.kind)
    refs = e.refs + ([e.data[named]] if e.decoded and named in e.data else [])
    for ref in refs:
        if bytes.fromhex(ref) not in state.ids:
            return "the id of an earlier event", ref


def part_refs(state, e):
    """As `rule_refs`, of an entry whose neighbours are withheld: what its header names."""
    for ref in e.refs:
        if bytes.fromhex(ref) not in state.ids:
            return "the id of an earlier event", ref


def rule_natural_key(state, e):
    natural = e.natural_key()
    if natural and natural in state.natural_keys:
        names = ", ".join(e.spec.natural).replace("@", "experiment")
        return "no earlier %s%s" % (e.kind, names and " with the same " + names), "one"


def rule_genesis(_state, e):
    if (e.position == 0) != (e.kind == "ledger.created"):
        return ("ledger.created at seq 0", e.kind) if e.position == 0 else ("ledger.created at seq 0 only", "another")
    if not e.creates():
        return None
    owner, data = key_id_of(decode_base64(e.data["owner"]["public_key"])), e.data
    if e.author != owner:
        return "signed by the owner %s" % owner, e.author
    if "owner" not in data["owner"]["roles"]:
        return "role owner for the first key", ", ".join(data["owner"]["roles"])
    if parse_vkey(data["log_vkey"])[0] != data["origin"]:
        return "a log key named %s" % data["origin"], parse_vkey(data["log_vkey"])[0]
    return None if data["format"] in (1, 2) else ("format 1 or 2", "format %d" % data["format"])


def rule_rulebook(state, e):
    if e.kind == "rulebook.adopted":
        lowest, version = state.rulebook() + 1, e.data["version"]
    elif e.creates() and "rulebook" in e.data:
        lowest, version = RULEBOOK_UNNAMED + 1, e.data["rulebook"]
    else:
        return None
    if not lowest <= version <= RULEBOOK_NEWEST:
        return "a rulebook above %d and at most %d" % (lowest - 1, RULEBOOK_NEWEST), str(version)


def rule_blob(state, e):
    """Each blob that is not there, or another."""
    problems = [state.blobs.problem(reference) for reference in e.blobs()] if state.blobs else []
    return [problem for problem in problems if problem]
