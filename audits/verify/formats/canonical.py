"""Canonical JSON (RFC 8785, `schema/CANON.md`): parsed, encoded again, and refused where the bytes differ."""

import json
from json.encoder import encode_basestring

from formats.limits import DEPTH_MAX, Refused, SAFE_INTEGER


def ecmascript_number(value):
    """Number::toString of ECMAScript; repr() supplies the shortest digits that round-trip."""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    sign, count = "-" if value < 0 else "", len(digits)
    if not digits:
        return "0"
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    return "%s%s%se%+d" % (sign, digits[0], "." + digits[1:] if count > 1 else "", point - 1)


def encode(value, depth=0):
    """The RFC 8785 text of a parsed value; refuses what the format does not allow."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return ecmascript_number(value)
    if depth == DEPTH_MAX:
        raise Refused("at most %d nested values" % DEPTH_MAX, "more")
    if isinstance(value, list):
        return "[" + ",".join([encode(item, depth + 1) for item in value]) + "]"
    keys = sorted(value) if all(map(str.isascii, value)) else sorted(value, key=lambda k: k.encode("utf-16-be"))
    return "{" + ",".join([encode_basestring(k) + ":" + encode(value[k], depth + 1) for k in keys]) + "}"


def parse_integer(token):
    if len(token) > 17 or abs(int(token)) > SAFE_INTEGER:
        raise Refused("integers within 2^53-1", token)
    return int(token)


def parse_fraction(token):
    value = float(token)
    if value - value != 0.0:
        raise Refused("finite numbers", token)
    return value


def parse_constant(token):
    raise Refused("finite numbers", token)


def unique_pairs(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Refused("each object key once", "a duplicate key")
    return members


def parse_canonical(data):
    """The value of canonical bytes: parsed, encoded again and compared; Refused for anything else."""
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=unique_pairs, parse_int=parse_integer,
                           parse_float=parse_fraction, parse_constant=parse_constant)
        again = encode(value).encode("utf-8")
    except RecursionError:
        raise Refused("at most %d nested values" % DEPTH_MAX, "more") from None
    except ValueError as error:                   # not UTF-8, not JSON, or a lone surrogate
        raise Refused("canonical JSON", "%s: %s" % (type(error).__name__, error)) from None
    if again != data:
        at = next((i for i, (a, b) in enumerate(zip(again, data)) if a != b), min(len(again), len(data)))
        raise Refused("canonical JSON (JCS)", "bytes that differ from their own re-encoding at offset %d" % at)
    return value
