"""The one form of ZIP archive that is read (`schema/EXPORTS.md`), so that no two programs find different files in it.

Members stand one after the other from byte 0, in the order of the directory; nothing stands between them, before the directory
or after the record of its end. Every head is compared, byte by byte, with the one that Clover writes.
"""

import io
import os
import struct
import zlib

from formats.limits import NotALedger

DIRECTORY_MAX = 256 << 20
END_LEN, END_LARGE_LEN, HEAD_LEN = 22, 76, 46
STORED, PRESSED, LARGE = 10, 20, 45       # versions that a reader needs: stored, pressed, sizes in 64 bits
SIZES_FOLLOW, UTF_8, DATE = 1 << 3, 1 << 11, 0x21
MODES = (0o100644 << 16, 0o100755 << 16)
BEYOND = 2 ** 32 - 1                      # stands in 32 bits for a value that takes more


def other(expected):
    return NotALedger("not an archive as clover writes it: expected %s" % expected)


def narrow(value):
    return min(value, BEYOND)


def is_plain(name):
    """Whether a name is that of a file inside: parts divided by /, none of which leads elsewhere, without control characters."""
    return not any(part in ("", ".", "..") for part in name.split("/")) and not any(
        c == "\\" or c < " " or c == "\x7f" for c in name)


class Member:
    """A member as its head in the directory says it."""

    def __init__(self, head):
        name_len = struct.unpack_from("<H", head, 28)[0]
        needed, _, method = struct.unpack_from("<HHH", head, 6)
        self.crc, self.pressed, self.size = struct.unpack_from("<III", head, 16)
        self.mode = struct.unpack_from("<I", head, 38)[0]
        self.raw = head[HEAD_LEN:HEAD_LEN + name_len]
        self.name = self.raw.decode("utf-8")
        self.large, self.stored = needed == LARGE, method == 0
        if self.large:
            self.size, self.pressed = struct.unpack_from("<QQ", head, HEAD_LEN + name_len + 4)
        elif BEYOND in (self.pressed, self.size):
            raise ValueError("sizes in 64 bits")
        if self.mode not in MODES or len(self.raw) != name_len:
            raise ValueError("no head")
        self.start = None                 # where its bytes begin

    def opening(self):
        """What both heads begin with: version, flags, method and date."""
        needed = LARGE if self.large else STORED if self.stored else PRESSED
        flags = SIZES_FOLLOW | (0 if self.name.isascii() else UTF_8)
        return struct.pack("<HHHHH", needed, flags, 0 if self.stored else 8, 0, DATE)

    def local(self):
        """The head before its bytes (APPNOTE 4.3.7)."""
        extra = b"\1\0\x10\0" + bytes(16) if self.large else b""
        return (b"PK\x03\x04" + self.opening() + bytes(12) + struct.pack("<HH", len(self.raw), len(extra))
                + self.raw + extra)

    def follows(self):
        """What follows its bytes (APPNOTE 4.3.9)."""
        return b"PK\x07\x08" + struct.pack("<IQQ" if self.large else "<III", self.crc, self.pressed, self.size)

    def head(self, at):
        """The head in the directory (APPNOTE 4.3.12) of a member whose own head is at `at`."""
        extra = struct.pack("<QQ", self.size, self.pressed) if self.large else b""
        extra += struct.pack("<Q", at) if at >= BEYOND else b""
        extra = struct.pack("<HH", 1, len(extra)) + extra if extra else b""
        opening = self.opening()
        sizes = (BEYOND, BEYOND) if self.large else (self.pressed, self.size)
        return (b"PK\x01\x02" + opening[:1] + b"\3" + opening + struct.pack("<III", self.crc, *sizes)
                + struct.pack("<HH", len(self.raw), len(extra)) + bytes(6) + struct.pack("<II", self.mode, narrow(at))
                + self.raw + extra)


def end_of(start, size, count, large):
    """The record of the directory's end (APPNOTE 4.3.16)."""
    counted = min(count, 0xffff)
    return struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, counted, counted, BEYOND if large else size, narrow(start), 0)


def end_of_large(start, size, count):
    """The record of a large directory, and that which finds it (APPNOTE 4.3.14, 4.3.15)."""
    return struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, LARGE, LARGE, 0, 0, count, count, size, start) + struct.pack(
        "<IIQI", 0x07064b50, 0, start + size, 1)


class Archive:
    """The members of an archive by name."""

    def __init__(self, path):
        self.path, self.members = path, {}
        with open(path, "rb") as file:
            self.read_directory(file)

    def read_directory(self, file):
        start, size, count = self.find_directory(file)
        if size > DIRECTORY_MAX:
            raise other("a directory of at most %d bytes" % DIRECTORY_MAX)
        file.seek(start)
        heads, place, at = file.read(size), 0, 0
        for _ in range(count):
            try:
                name_len, extra_len = struct.unpack_from("<HH", heads, place + 28)
                member = Member(heads[place:place + HEAD_LEN + name_len + extra_len])
            except (struct.error, ValueError):
                raise other("heads of files in its directory") from None
            head, local, follows = member.head(at), member.local(), member.follows()
            if heads[place:place + len(head)] != head:
                raise other("another head of %s in its directory" % member.name)
            member.start = at + len(local)
            end = member.start + member.pressed
            if end > start or not has(file, at, local) or not has(file, end, follows):
                raise other("%s as its directory describes it" % member.name)
            if not is_plain(member.name) or member.name in self.members:
                raise other("one file of each name, not %r" % member.name)
            self.members[member.name] = member
            place, at = place + len(head), end + len(follows)
        if place != len(heads) or at != start:
            raise other("files and their directory alone, with no gap")

    @staticmethod
    def find_directory(file):
        """(start, size, count) from the one record at the very end."""
        at = file.seek(0, os.SEEK_END) - END_LEN
        broken = other("the record of its directory at its very end")
        if at < 0:
            raise broken
        file.seek(at)
        end = file.read(END_LEN)
        count, size, start = struct.unpack_from("<HII", end, 10)
        if size != BEYOND:
            if start + size != at or end != end_of(start, size, count, False):
                raise broken
            return start, size, count
        at -= END_LARGE_LEN
        if at < 0:
            raise broken
        file.seek(at)
        record = file.read(END_LARGE_LEN)
        count, size, start = struct.unpack_from("<QQQ", record, 32)
        is_large = count > 0xffff or max(start, size) > BEYOND
        if not is_large or start + size != at or record != end_of_large(start, size, count) or end != end_of(
                start, size, count, True):
            raise broken
        return start, size, count

    def open(self, name):
        """The bytes of a member as a stream."""
        return io.BufferedReader(Inflated(open(self.path, "rb"), self.members[name]), 1 << 16)


def has(file, at, expected):
    file.seek(at)
    return file.read(len(expected)) == expected


class Inflated(io.RawIOBase):
    """Exactly the bytes that an archive says a member has; more, fewer or others are an error."""

    def __init__(self, file, member):
        super().__init__()
        self.file, self.member = file, member
        self.pressed, self.left, self.crc = member.pressed, member.size, 0
        self.inflater = None if member.stored else zlib.decompressobj(-15)
        self.ended = False
        file.seek(member.start)

    def readable(self):
        return True

    def close(self):
        self.file.close()
        super().close()

    def take(self, count):
        """At most `count` bytes of the member."""
        if self.inflater is None:
            return self.pull(count)
        while not self.inflater.eof:
            waiting = self.inflater.unconsumed_tail or self.pull(1 << 16)
            data = self.inflater.decompress(waiting, count)
            if data or not waiting:
                return data
        return b""

    def pull(self, count):
        data = self.file.read(min(count, self.pressed))
        self.pressed -= len(data)
        return data

    def readinto(self, out):
        if self.ended or not len(out):
            return 0
        try:
            data = self.take(max(1, min(len(out), self.left)))
        except zlib.error as error:
            raise NotALedger("%s: %s" % (self.member.name, error)) from None
        if len(data) > self.left:
            raise NotALedger("%s: more bytes than the archive says" % self.member.name)
        if not data and self.left:
            raise NotALedger("%s: fewer bytes than the archive says" % self.member.name)
        if not data:
            self.ended = True
            if self.crc != self.member.crc:
                raise NotALedger("%s: another CRC-32 than the archive says" % self.member.name)
        self.crc = zlib.crc32(data, self.crc)
        self.left -= len(data)
        out[:len(data)] = data
        return len(data)
