"""Digests over domain-separated bytes: what signatures cover, and what was committed to before it was shown."""

from formats.limits import PAYLOAD_TYPE, SPKI
from formats.tree import sha256
from formats.canonical import encode


def labelled(label, value):
    """SHA-256 in hex of a label, a zero byte and canonical JSON."""
    return sha256(label, b"\0", encode(value).encode("utf-8")).hex()


def manifest_digest(manifest):
    """What a manifest version is known by."""
    return labelled(b"clover/manifest/v1", manifest)


def h0_digest(manifest):
    """What a manifest tests, whatever else it says."""
    margin = manifest.get("test", {}).get("null_margin_micro", manifest.get("transport", {}).get("margin_micro"))
    parts = {"kind": manifest["hypothesis"]["kind"], "template": manifest["template"], "margin_micro": margin,
             "estimand": manifest.get("estimand"), "metric": manifest.get("metric")}
    return labelled(b"clover/h0/v1", {name: part for name, part in parts.items() if part is not None})


def plan_commitment(ledger, manifest, salt, blake3):
    """What `plan.sealed` commits to."""
    return sha256(b"clover/plan/v1\0", length_prefixed(ledger), length_prefixed(manifest), salt,
                  bytes.fromhex(blake3)).hex()


def composite_of(patches):
    """What a candidate is known by: its patch, or its patches together."""
    patches = sorted(patches)
    return patches[0] if len(patches) == 1 else labelled(b"clover/composite/v1", patches)


def unit_order(seed, unit):
    """The key by which units are sorted into the order that a seed draws."""
    return sha256(bytes.fromhex(seed), b"\0", unit.encode("utf-8"))


def key_id_of(public):
    """What a key is known by: SHA-256 of its DER form."""
    return sha256(SPKI, public).hex()


def length_prefixed(value):
    """UTF-8 after its length in two bytes."""
    data = value.encode("utf-8")
    return len(data).to_bytes(2, "big") + data


def possession_message(ledger, key_id):
    """What a new key signs to show that somebody holds it."""
    return b"clover/key/v1\0" + length_prefixed(ledger) + bytes.fromhex(key_id)


def label_commitment(ledger, design, row, salt, value_micro):
    """What `label.sealed` commits to."""
    return sha256(b"clover/label/v1\0", length_prefixed(ledger), length_prefixed(design), length_prefixed(row), salt,
                  value_micro.to_bytes(8, "big", signed=True)).hex()


def pre_authentication(payload):
    """The bytes that an author signs (DSSE)."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode("ascii"), len(payload), payload)
