"""What travels between processes of an overlay network, as somebody else would make it."""

import socket
import struct

WELCOME, OPEN, SHUTDOWN, DATA = 1, 6, 13, 18
HEADER = struct.Struct("=IHHIiiI")  # bytes, kind, bytes of the format, stream, tag, lowest back-end, how many


def hello(token: bytes, node: int, magic=b"overlay\0", version=3, order=0x01020304) -> bytes:
    return magic + struct.pack("=II", version, order) + token + struct.pack("=II", node, 0)


def frame(kind: int, format="", values=b"", stream=0, source=-1, leaves=0) -> bytes:
    text = format.encode() + b"\0"
    packed = text + bytes(-len(text) % 8) + values + bytes(-len(values) % 8)
    return HEADER.pack(HEADER.size + len(packed), kind, len(text), stream, 0, source, leaves) + packed


def received(connection: socket.socket) -> tuple[int, int]:
    """The kind and the stream of the next one."""
    count, kind, _, stream, *_ = HEADER.unpack(exactly(connection, HEADER.size))
    exactly(connection, count - HEADER.size)
    return kind, stream


def exactly(connection: socket.socket, count: int) -> bytes:
    taken = b""
    while len(taken) < count:
        taken += (some := connection.recv(count - len(taken)))
        assert some, "the connection was closed"
    return taken
