"""BLAKE3, by which blobs are named."""

import sys

BLAKE3_IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
BLAKE3_PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
BLAKE3_QUARTERS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                   (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8


def blake3_schedule():
    order, steps = list(range(16)), []
    for _ in range(7):
        steps += [quarter + (order[2 * i], order[2 * i + 1]) for i, quarter in enumerate(BLAKE3_QUARTERS)]
        order = [order[i] for i in BLAKE3_PERMUTATION]
    return tuple(steps)


BLAKE3_STEPS = blake3_schedule()


def blake3_compress(chaining, block, counter, flags):
    """The new chaining value (eight words) of one block of at most 64 bytes."""
    mask, m = 0xFFFFFFFF, memoryview(block.ljust(64, b"\0")).cast("I")
    if sys.byteorder == "big":
        m = [int.from_bytes(block.ljust(64, b"\0")[i:i + 4], "little") for i in range(0, 64, 4)]
    v = list(chaining) + list(BLAKE3_IV[:4]) + [counter & mask, counter >> 32, len(block), flags]
    for a, b, c, d, x, y in BLAKE3_STEPS:
        va, vb = v[a], v[b]
        va = (va + vb + m[x]) & mask
        vd = v[d] ^ va
        vd = (vd >> 16 | vd << 16) & mask
        vc = (v[c] + vd) & mask
        vb ^= vc
        vb = (vb >> 12 | vb << 20) & mask
        va = (va + vb + m[y]) & mask
        vd ^= va
        vd = (vd >> 8 | vd << 24) & mask
        vc = (vc + vd) & mask
        vb ^= vc
        v[a], v[b], v[c], v[d] = va, (vb >> 7 | vb << 25) & mask, vc, vd
    return tuple(v[i] ^ v[i + 8] for i in range(8))


def blake3_words(words):
    return b"".join(word.to_bytes(4, "little") for word in words)


def blake3_chunk(chunk, counter, last_flag):
    """Chaining value of one chunk of at most 1,024 bytes; `last_flag` is ROOT for an input of a single chunk."""
    chaining, blocks = BLAKE3_IV, max(1, -(-len(chunk) // 64))
    for i in range(blocks):
        flags = (CHUNK_START if i == 0 else 0) | (CHUNK_END | last_flag if i == blocks - 1 else 0)
        chaining = blake3_compress(chaining, chunk[64 * i:64 * i + 64], counter, flags)
    return chaining


def blake3_parent(left, right, flag=0):
    return blake3_compress(BLAKE3_IV, blake3_words(left) + blake3_words(right), 0, PARENT | flag)


def blake3_stream(read):
    """(BLAKE3-256 digest, length) of everything that `read(n)` returns until it returns nothing."""
    stack, chunks, length, chunk = [], 0, 0, read(1024)
    while True:
        following = read(1024)
        length += len(chunk)
        if not following:
            break
        node, chunks = blake3_chunk(chunk, chunks, 0), chunks + 1
        merged = chunks
        while not merged & 1:                     # a finished subtree is merged as soon as more input follows
            node, merged = blake3_parent(stack.pop(), node), merged >> 1
        stack.append(node)
        chunk = following
    node = blake3_chunk(chunk, chunks, ROOT if not stack else 0)
    while stack:
        left = stack.pop()
        node = blake3_parent(left, node, ROOT if not stack else 0)
    return blake3_words(node), length
