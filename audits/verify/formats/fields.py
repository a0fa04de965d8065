"""Field types of the schemas. A type is a function (value, path) that raises `Refused` when the value is not one.

A path is a `Path`, which also collects what is to be said of ids that are taken.
"""

import base64
import binascii
import ipaddress
import re
import unicodedata

from formats.limits import Refused, SAFE_INTEGER, show
from formats.ed25519 import P, SMALL_ORDER, point_decode
from formats.tree import sha256
from formats.characters import UNASSIGNED

HEX64 = re.compile(r"[0-9a-f]{64}", re.ASCII)
TIMESTAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{6})Z", re.ASCII)
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
TEXT_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
ORIGIN = re.compile(r"[!-*,-@\[-~]{1,200}", re.ASCII)        # printable ASCII without space, plus and capitals
MEDIA = re.compile("[!-~]+/[!-~]+", re.ASCII)
ROLES = frozenset(("owner registrar scorer labeler custodian arbiter optimizer adversary verifier meta_optimizer "
                   "approver releaser steward auditor").split())


class Path:
    """Where a value stands. `newer` takes the ids on and below it that Unicode 13.0 does not cover."""

    def __init__(self, text_, newer):
        self.text, self.newer = text_, newer

    def __add__(self, more):
        return Path(self.text + more, self.newer)

    def __str__(self):
        return self.text


def require(good, path, expected, value):
    """Refuse a value with the reason, unless it is good."""
    if not good:
        raise Refused("%s: %s" % (path, expected), show(value))


def string(value, path):
    require(isinstance(value, str), path, "a string", value)


def media(value, path):
    good = isinstance(value, str) and len(value) <= 100 and MEDIA.fullmatch(value)
    require(good, path, "a media type such as text/plain", value)


def boolean(value, path):
    require(isinstance(value, bool), path, "true or false", value)


def integer(low=0, high=SAFE_INTEGER):
    def check(value, path):
        good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        require(good, path, "an integer in %d..=%d" % (low, high), value)
    return check


def one_of(*words):
    """One of these words."""
    def check(value, path):
        require(isinstance(value, str) and value in words, path, "one of " + ", ".join(words), value)
    return check


def hex64(value, path):
    require(isinstance(value, str) and HEX64.fullmatch(value), path, "64 lower-case hex digits", value)


def ident(value, path):
    good = (isinstance(value, str) and 1 <= len(value.encode("utf-8")) <= 200 and not CONTROL.search(value)
            and (value.isascii() or unicodedata.is_normalized("NFC", value)))
    if good and not value.isascii() and UNASSIGNED.search(value):
        path.newer.append(value)
    require(good, path, "an id (NFC, 1..=200 bytes, no control characters)", value)


def text(value, path):
    good = isinstance(value, str) and len(value.encode("utf-8")) <= 4000 and not TEXT_CONTROL.search(value)
    require(good, path, "text (at most 4,000 bytes, no control characters but newline and tab)", value)


def decode_base64(value):
    """Bytes of standard padded base64 in its only canonical form, or None."""
    try:
        data = base64.b64decode(value.encode("ascii"), validate=True)
    except (ValueError, AttributeError, binascii.Error):
        return None
    return data if base64.b64encode(data).decode("ascii") == value else None


def encoded(length=None):
    """Base64 in its only canonical form, of some length."""
    def check(value, path):
        data = decode_base64(value)
        good = data is not None and length in (None, len(data))
        require(good, path, "standard padded base64" + (" of %d bytes" % length if length else ""), value)
    return check


def micros(value):
    """Microseconds from 1970 on of `YYYY-MM-DDTHH:MM:SS.ffffffZ`, or None."""
    match = TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if not match:
        return None
    year, month, day, hour, minute, second, fraction = map(int, match.groups())
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if year < 1 or not 1 <= month <= 12 or hour > 23 or minute > 59 or second > 59:
        return None
    if not 1 <= day <= (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]:
        return None
    shifted, years = (month + 9) % 12, year - (month < 3)
    days = 365 * years + years // 4 - years // 100 + years // 400 + (153 * shifted + 2) // 5 + day - 719469
    return ((days * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000 + fraction


def timestamp(value, path):
    require(micros(value) is not None, path, "a UTC time with microseconds", value)


def origin(value, path):
    good = isinstance(value, str) and ORIGIN.fullmatch(value) and "://" not in value
    require(good, path, "an origin (lower-case ASCII, no space, + or ://)", value)


def role_set(value, path):
    good = (isinstance(value, list) and value and all(isinstance(r, str) and r in ROLES for r in value)
            and all(a < b for a, b in zip(value, value[1:])))
    require(good, path, "roles, sorted, each once, at least one", value)


def is_key_name(value):
    """The name of a log key: 1 to 200 bytes without spaces, plus signs and control characters."""
    return 1 <= len(value.encode("utf-8")) <= 200 and not CONTROL.search(value) and not re.search(r"[\s+]", value)


def is_usable(public):
    """Whether a public key is the canonical encoding of a point that is not of small order."""
    return public not in SMALL_ORDER and point_decode(public) is not None


def parse_vkey(value):
    """(name, key hash, public key) of a C2SP verifier key of type 0x01, or None."""
    parts = value.split("+", 2) if isinstance(value, str) else []
    data = decode_base64(parts[2]) if len(parts) == 3 else None
    if not data or len(data) != 33 or data[0] != 1 or not is_key_name(parts[0]) or not is_usable(data[1:]):
        return None
    key_hash = sha256(parts[0].encode("utf-8"), b"\n", data)[:4]
    return (parts[0], key_hash, data[1:]) if parts[1] == key_hash.hex() else None


def vkey(value, path):
    require(parse_vkey(value), path, "a verifier key NAME+HASH+BASE64 of an Ed25519 key", value)


BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
LOW_ORDER = (0, 1, P - 1, 325606250916557431795983626356110631294008115727848805560023387167927233504,
             39382357235489614581723060781553021112529911719440698176882885853963445705823)   # of Curve25519


def decode_recipient(value):
    """The 32 bytes of an age X25519 recipient (BIP 173, lower case, HRP `age`), or None."""
    if not (isinstance(value, str) and len(value) == 62 and value.startswith("age1")):
        return None
    words = [BECH32.find(c) for c in value[4:]]
    if min(words) < 0:
        return None
    checksum = 1
    for word in [ord(c) >> 5 for c in "age"] + [0] + [ord(c) & 31 for c in "age"] + words:
        top, checksum = checksum >> 25, (checksum & 0x1FFFFFF) << 5 ^ word
        for bit, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            checksum ^= generator if top >> bit & 1 else 0
    number = 0
    for word in words[:-6]:
        number = number << 5 | word
    data = (number >> 4).to_bytes(32, "big")
    low = (int.from_bytes(data, "little") & 2 ** 255 - 1) % P in LOW_ORDER
    return data if checksum == 1 and number & 15 == 0 and not low else None


def recipient(value, path):
    require(decode_recipient(value), path, "an age recipient age1...", value)


class Optional:
    """A field that may be absent."""

    def __init__(self, kind):
        self.kind = kind


def listing(kind, most=None):
    """A list of one type."""
    def check(value, path):
        require(isinstance(value, list), path, "a list", value)
        require(most is None or len(value) <= most, path, "at most %s items" % most, len(value))
        for item in value:
            kind(item, path)
    return check


def record(**fields):
    """A closed object: every field that is not Optional is there, and no other."""
    required = {name for name, kind in fields.items() if not isinstance(kind, Optional)}
    kinds = {name: kind.kind if isinstance(kind, Optional) else kind for name, kind in fields.items()}

    def check(value, path):
        require(isinstance(value, dict), path, "an object", value)
        missing, unknown = required - value.keys(), value.keys() - kinds.keys()
        if missing or unknown:
            names = "fields " + ", ".join(sorted(required))
            raise Refused("%s: %s" % (path, names), show(", ".join(
                ["no " + name for name in sorted(missing)] + ["unknown " + name for name in sorted(unknown)])))
        for name, item in value.items():
            kinds[name](item, path + "." + name)
    return check


def choice(**kinds):
    """An object with exactly one of these fields."""
    def check(value, path):
        good = isinstance(value, dict) and len(value) == 1 and value.keys() <= kinds.keys()
        require(good, path, "one of " + ", ".join(sorted(kinds)), value)
        for name, item in value.items():
            kinds[name](item, path + "." + name)
    return check


def number(value, path):
    require(isinstance(value, (int, float)) and not isinstance(value, bool), path, "a finite number", value)


def probability(value, path):
    number(value, path)
    require(0 <= value <= 1, path, "0 to 1", value)


def targets(value, path):
    """Log-probabilities by policy."""
    listing(record(logprob=number, policy=ident))(value, path)
    names = [item["policy"] for item in value]
    require(all(a < b for a, b in zip(names, names[1:])), path, "policies in order, each once", names)


def nullable(kind):
    """A type, or null."""
    return lambda value, path: None if value is None else kind(value, path)


def b64(data):
    """Standard padded base64."""
    return base64.b64encode(data).decode("ascii")


def in_order(kind, key, what):
    """A list of one type, at least one, whose keys ascend."""
    def check(value, path):
        listing(kind)(value, path)
        keys = [key(item) for item in value]
        require(keys and all(a < b for a, b in zip(keys, keys[1:])), path,
                "at least one, in order of %s, each once" % what, value)
    return check


HOST_LABEL = re.compile("[a-z0-9][a-z0-9-]*", re.ASCII)
URL_PART = re.compile("[A-Za-z0-9._~-]+", re.ASCII)


def split_url(url):
    """(scheme, host, port or None, path) of a base URL, or None."""
    match = re.fullmatch(r"(https?)://(\[[^\]/]*\]|[^/:\[\]]*)(?::([^/]*))?((?:/.*)?)", url, re.ASCII | re.DOTALL)
    return match and match.groups()


def is_address(host):
    """Whether a host is an address of version 4 in its one form."""
    parts = host.split(".")
    return len(parts) == 4 and all(re.fullmatch("0|[1-9][0-9]{0,2}", part, re.ASCII) and int(part) < 256
                                   for part in parts)


def is_host(host):
    if host.startswith("["):
        if not re.fullmatch("[0-9a-f:]+", host[1:-1], re.ASCII):
            return False
        try:
            address = ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            return False
        return address.ipv4_mapped is None and str(address) == host[1:-1]
    labels = host.split(".")
    if not all(HOST_LABEL.fullmatch(label) for label in labels):
        return False
    return is_address(host) or not re.fullmatch("[0-9]*", labels[-1], re.ASCII)


def base_url(value, path):
    """A base URL in normal form."""
    parts = split_url(value) if isinstance(value, str) and len(value) <= 2000 else None
    good = parts is not None and is_host(parts[1])
    if good and parts[2] is not None:
        usual = {"http": "80", "https": "443"}[parts[0]]
        number = re.fullmatch("[1-9][0-9]{0,4}", parts[2], re.ASCII)
        good = bool(number) and int(parts[2]) < 65536 and parts[2] != usual
    if good and parts[3]:
        good = all(URL_PART.fullmatch(part) and part not in (".", "..") for part in parts[3][1:].split("/"))
    require(good, path, "a base URL in normal form", value)


def is_loopback(url):
    """Whether a base URL names an address of this machine; a name never is one."""
    host = split_url(url)[1]
    return host == "[::1]" or is_address(host) and host.startswith("127.")
