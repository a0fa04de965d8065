"""Makes a part of a log in which a cheat with the log key signs under another's key id: `forged_part.py BUNDLE_FOLDER LOG_KEY`."""

import base64
import hashlib
import json
import subprocess
import sys

folder, log_key = sys.argv[1:]
TYPE = "application/vnd.clover.event+json"


def b64(data):
    return base64.b64encode(data).decode()


def encode(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def sign(key, message):
    open("message", "wb").write(message)
    return subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", "message"],
                          capture_output=True, check=True).stdout


def der(key):
    return subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"], capture_output=True, check=True).stdout


def root(leaves):
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return sha(b"\1", root(leaves[:half]), root(leaves[half:]))


subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "cheat.pem"], check=True)
public = der("cheat.pem")
cheat = sha(public).hex()
shown = [json.loads(line) for line in open(folder + "/entries.jsonl") if '"envelope"' in line]
bodies = [json.loads(base64.b64decode(entry["envelope"]["payload"])) for entry in shown]
genesis, added = bodies[0], next(body for body in bodies if body["kind"] == "key.added")
victim, at = genesis["author"], shown[0]["recorded_at"]
lines, leaves, numbers = [], [], {}


def add(author, kind, version, data):
    seen = {"root": b64(root(leaves)), "size": len(leaves)} if leaves else None
    number = numbers.get(author, 0)
    numbers[author] = number + 1
    body = encode({"at": at, "author": author, "author_seq": number, "data": data, "experiment": None, "kind": kind,
                   "ledger": genesis["ledger"], "refs": [], "seen": seen, "v": version})
    pae = b"DSSEv1 %d %s %d " % (len(TYPE), TYPE.encode(), len(body)) + body
    line = encode({"envelope": {"payload": b64(body), "payloadType": TYPE, "signatures": [
        {"keyid": author, "sig": b64(sign("cheat.pem", pae))}]}, "recorded_at": at, "seq": len(lines)})
    lines.append(line)
    leaves.append(sha(b"\0", line))


owner = dict(genesis["data"]["owner"], public_key=b64(public[-32:]), holder="Nobody")
add(cheat, "ledger.created", genesis["v"], dict(genesis["data"], owner=owner))
add(cheat, "key.added", added["v"], dict(added["data"], key_id=victim, public_key=b64(public[-32:]), holder="Ada",
                                         roles=genesis["data"]["owner"]["roles"], proof=b64(bytes(64))))
add(victim, "note.recorded", 1, {"text": "I accept every patch"})
add(cheat, "note.recorded", 1, {"text": "withheld"})
lines[3] = encode({"withheld": {"leaf": leaves[3].hex(), "seq": 3}})
open(folder + "/entries.jsonl", "wb").write(b"\n".join(lines) + b"\n")
text = "%s\n4\n%s\n" % (genesis["ledger"], b64(root(leaves)))
name, raw = genesis["ledger"].encode(), der(log_key)[-32:]
signature = sha(name, b"\n\1", raw)[:4] + sign(log_key, text.encode())
note = "%s\n\u2014 %s %s\n" % (text, genesis["ledger"], b64(signature))
open(folder + "/checkpoint", "w", encoding="utf-8").write(note)
open(folder + "/checkpoints.jsonl", "wb").write(b"")
