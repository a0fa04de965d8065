"""Ed25519 (RFC 8032), verified strictly: canonical encodings, no key or nonce of small order, no cofactor."""

import hashlib

P = 2 ** 255 - 19
L = 2 ** 252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)
IDENTITY = (0, 1, 1, 0)               # extended coordinates X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z


def point_add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * D * p[3] * q[3] % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def point_equal(p, q):
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


def point_multiply(scalar, p):
    total = IDENTITY
    while scalar:
        if scalar & 1:
            total = point_add(total, p)
        p = point_add(p, p)
        scalar >>= 1
    return total


def point_encode(p):
    inverse = pow(p[2], -1, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def point_decode(data):
    """The point of a canonical 32-byte encoding, or None (RFC 8032 5.1.3, with y < p and no negative zero)."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (2 ** 255 - 1)
    if len(data) != 32 or y >= P:
        return None
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P == -u % P:
        x = x * SQRT_M1 % P
    if v * x * x % P != u or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def window_table(point, bits):
    """For each window w of a scalar the multiples j * 2^(bits*w) * point, as affine (y+x, y-x, 2dxy)."""
    windows, count = -(-253 // bits), 1 << bits
    points = []
    for _ in range(windows):
        multiple = point
        for _ in range(count - 1):
            points.append(multiple)
            multiple = point_add(multiple, point)
        point = multiple
    running, product = [], 1                      # one inversion for all Z (Montgomery's trick)
    for p in points:
        running.append(product)
        product = product * p[2] % P
    inverse, affine = pow(product, -1, P), []
    for p, before in zip(reversed(points), reversed(running)):
        x, y = p[0] * inverse * before % P, p[1] * inverse * before % P
        inverse = inverse * p[2] % P
        affine.append((y + x, y - x, 2 * D * x * y % P))
    affine.reverse()
    return [[None] + affine[w * (count - 1):(w + 1) * (count - 1)] for w in range(windows)]


def digits_of(scalar, bits):
    """A scalar in windows of 4 or 8 bits, the lowest first."""
    data = scalar.to_bytes(32, "little")
    return data if bits == 8 else [nibble for byte in data for nibble in (byte & 15, byte >> 4)]


def accumulate(total, table, digits):
    """total + scalar * point: one mixed addition per non-zero digit, and no doubling."""
    x, y, z, t = total
    for window, digit in zip(table, digits):
        if digit:
            plus, minus, product = window[digit]
            a, b, c, d = (y - x) * minus % P, (y + x) * plus % P, t * product % P, z + z
            e, f, g, h = b - a, d - c, d + c, b + a
            x, y, z, t = e * f % P, g * h % P, f * g % P, e * h % P
    return x, y, z, t


def small_order_encodings():
    """The eight canonical encodings of the points whose order divides 8."""
    y = 2
    while True:
        point = point_decode(y.to_bytes(32, "little"))
        torsion = point_multiply(L, point) if point else IDENTITY
        if not point_equal(point_multiply(4, torsion), IDENTITY):
            return frozenset(point_encode(point_multiply(k, torsion)) for k in range(8))
        y += 1


SMALL_ORDER = small_order_encodings()
BASE_POINT = point_decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


class Ed25519:
    """Strict verification with cached tables: 4-bit windows for a new key, 8-bit ones for a busy key."""

    BUSY, WIDE_TABLES, KEYS = 60, 32, 512

    def __init__(self):
        self.base = window_table(BASE_POINT, 8)
        self.keys = {}                # public key -> [uses, bits, table of -A] or None for a refused key
        self.wide = 0

    def table(self, key):
        if key not in self.keys:
            if len(self.keys) >= self.KEYS:
                dropped = self.keys.pop(next(iter(self.keys)))
                self.wide -= bool(dropped and dropped[1] == 8)
            point = point_decode(key) if key not in SMALL_ORDER else None
            self.keys[key] = point and [0, 4, window_table((P - point[0], point[1], 1, P - point[3]), 4)]
        entry = self.keys[key]
        if entry:
            entry[0] += 1
            if entry[0] == self.BUSY and self.wide < self.WIDE_TABLES:
                point = point_decode(key)
                entry[1:] = [8, window_table((P - point[0], point[1], 1, P - point[3]), 8)]
                self.wide += 1
        return entry

    def verify(self, key, message, signature):
        """S < L; A and R canonical and not of small order; S*B = R + H(R, A, M)*A without the cofactor.

        R is never decoded: it must equal the canonical encoding of S*B - h*A, so another encoding cannot pass.
        """
        if len(key) != 32 or len(signature) != 64:
            return False
        r, s = signature[:32], int.from_bytes(signature[32:], "little")
        entry = self.table(key)
        if s >= L or r in SMALL_ORDER or not entry:
            return False
        h = int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % L
        total = accumulate(IDENTITY, self.base, digits_of(s, 8))
        total = accumulate(total, entry[2], digits_of(h, entry[1]))
        return point_encode(total) == r
