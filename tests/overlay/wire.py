"""The packets between processes of an overlay network, in an independent implementation.

The values that the back-ends of drive.c send, and the results of filters, in plain Python: slow and
simple."""

import socket
import struct
import sys

WELCOME, OPEN, SHUTDOWN, DATA = 1, 6, 18, 27
ORDERS = {"<": 1, ">": 2}  # of bytes: in struct's words, and in headers
OWN, OTHER = ("<", ">") if sys.byteorder == "little" else (">", "<")
# Bytes, kind, order, bytes of the format, stream, tag, origin.
HEADERS = {order: struct.Struct(order + "IBBHIiQ") for order in ORDERS}
HEADER = HEADERS[OWN]


def hello(
    token: bytes, node: int, magic=b"overlay\0", version=5, order=0x01020304, by=OWN
) -> bytes:
    return magic + struct.pack(by + "II", version, order) + token + struct.pack(by + "II", node, 0)


def frame(
    kind: int, format="", values=b"", stream=0, source=-1, leaves=0, number=0, by=OWN
) -> bytes:
    text = format.encode() + b"\0"
    packed = text + bytes(-len(text) % 8) + values + bytes(-len(values) % 8)
    origin = number << 38 | leaves << 19 | source + 1
    return (
        HEADERS[by].pack(HEADER.size + len(packed), kind, ORDERS[by], len(text), stream, 0, origin)
        + packed
    )


def turned(packet: bytes) -> bytes:
    """Return the same packet as sent by a host of the other byte order."""
    old, new = ("<", ">") if packet[5] == ORDERS["<"] else (">", "<")
    size, kind, _, length, *rest = HEADERS[old].unpack(packet[: HEADER.size])
    result = bytearray(
        HEADERS[new].pack(size, kind, ORDERS[new], length, *rest) + packet[HEADER.size :]
    )
    words = packet[HEADER.size : HEADER.size + length - 1].decode().split()
    at = HEADER.size + length + -length % 8

    def turn(item: int, count: int = 1) -> int:
        """Swap the byte order of `count` items and return the last item's value in the old
        order."""
        nonlocal at
        at += -at % item
        for _ in range(count):
            at += item
            result[at - item : at] = packet[at - item : at][::-1]
        return int.from_bytes(packet[at - item : at], "little" if old == "<" else "big")

    for word in words:
        array, kind = word[1] == "a", word[-1]
        if kind == "s":
            if array:
                turn(4)
            letters = turn(4)
            at += letters
        else:
            item = 1 if kind == "c" else 2 if "h" in word else 8 if "l" in word else 4
            turn(item, turn(4) if array else 1)
    return bytes(result)


def received(connection: socket.socket) -> tuple[int, int]:
    """Receive a packet; return its kind and its stream."""
    count, kind, _, _, stream, *_ = HEADER.unpack(exactly(connection, HEADER.size))
    exactly(connection, count - HEADER.size)
    return kind, stream


def exactly(connection: socket.socket, count: int) -> bytes:
    taken = b""
    while len(taken) < count:
        taken += (some := connection.recv(count - len(taken)))
        assert some, "the connection was closed"
    return taken


MASK = (1 << 64) - 1


def siphash(key: bytes, text: bytes) -> bytes:
    """Return SipHash-2-4 of 128 bits, as defined by its authors."""
    low, high = struct.unpack("<QQ", key[:16])
    v = [
        low ^ 0x736F6D6570736575,
        high ^ 0x646F72616E646F6D ^ 0xEE,
        low ^ 0x6C7967656E657261,
        high ^ 0x7465646279746573,
    ]

    def rotate(word: int, by: int) -> int:
        return (word << by | word >> 64 - by) & MASK

    def rounds(count: int) -> None:
        for _ in range(count):
            for one, other, by, turned in (
                (0, 1, 13, 32),
                (2, 3, 16, 0),
                (0, 3, 21, 0),
                (2, 1, 17, 32),
            ):
                v[one] = v[one] + v[other] & MASK
                v[other] = rotate(v[other], by) ^ v[one]
                v[one] = rotate(v[one], turned)

    for (word,) in struct.iter_unpack(
        "<Q", text + bytes(7 - len(text) % 8) + bytes([len(text) % 256])
    ):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return struct.pack("<QQ", first, v[0] ^ v[1] ^ v[2] ^ v[3])


def mix(seed: int, backend: int, wave: int, value: int, element: int) -> int:
    factors = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93, 1)
    x = (
        sum(
            part * factor
            for part, factor in zip((seed, backend, wave, value, element), factors, strict=True)
        )
        & MASK
    )
    for _ in range(3):
        x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15 & MASK
    return x ^ (x >> 29)


def scalar(kind: str, backend: int, x: int):
    if kind == "s":
        return f"b{backend}-{x % 1000}"
    if "f" in kind:
        return x % 2001 / 8 - 125
    return x % 4 if "u" in kind else x % 3 - 1


def sent(seed: int, backend: int, wave: int, count: int, formats: list[str]) -> list:
    """Return the values of one packet of a back-end."""
    values = []
    for index, word in enumerate(formats):
        array = word[1] == "a"
        kind = word[1 + array :]
        row = [
            scalar(kind, backend, mix(seed, backend, wave, index, i))
            for i in range(count if array else 1)
        ]
        values.append(row if array else row[0])
    return values


def reduced(name: str, packets: list[list]) -> list:
    """Return the result of a filter, element by element, from one packet of each back-end in their
    order."""
    result = []
    for column in zip(*packets, strict=True):
        if name == "concat":
            result.append(
                [x for value in column for x in (value if isinstance(value, list) else [value])]
            )
            continue
        reduce = {"min": min, "max": max, "sum": sum, "average": lambda row: sum(row) / len(row)}[
            name
        ]
        rows = [value if isinstance(value, list) else [value] for value in column]
        elements = [reduce(row) for row in zip(*rows, strict=True)]
        result.append(elements if isinstance(column[0], list) else elements[0])
    return result


def classes(checksums: dict[int, int]) -> list:
    """Return the equivalence classes of back-ends by checksum: checksums, representatives, sizes
    and members, in the order of representatives."""
    members: dict[int, list[int]] = {}
    for backend in sorted(checksums):
        members.setdefault(checksums[backend], []).append(backend)
    rows = sorted(members.items(), key=lambda row: row[1][0])
    return [
        [checksum for checksum, _ in rows],
        [row[0] for _, row in rows],
        [len(row) for _, row in rows],
        [backend for _, row in rows for backend in row],
    ]


def leaves_of(parents: list[int]) -> list[int]:
    """Return the leaves of a tree in depth-first order, the order of the back-ends."""
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    order, stack = [], [0]
    while stack:
        node = stack.pop()
        stack += reversed(children.get(node, []))
        if node not in children:
            order.append(node)
    return order
