"""A launch command for processes of an overlay network: between each and its parent it turns all
numbers, so that both take the other for a host of the other byte order.

PYTHONPATH=. python -m tests.overlay.turning HOST PROGRAM --boot < a packet to boot from
"""

import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress

from tests.overlay.wire import HEADER, OTHER, OWN, hello, turned

HELLO = len(hello(bytes(32), 1))


def main(program: list[str], boot: bytes) -> int:
    listener = socket.create_server(("127.0.0.1", 0))
    old = boot[boot.index(b"127.0.0.1 ") :].split(b" ")[1]
    new = str(listener.getsockname()[1]).encode()
    assert len(old) == len(new), "ports of this machine have five digits"
    process = subprocess.Popen(program, stdin=subprocess.PIPE)
    process.stdin.write(turned(boot.replace(b"127.0.0.1 " + old, b"127.0.0.1 " + new)))
    process.stdin.close()
    child, _ = listener.accept()
    listener.close()
    parent = socket.create_connection(("127.0.0.1", int(old)))
    threading.Thread(target=carry, args=(parent, child), daemon=True).start()
    carry(child, parent, first=HELLO)
    return process.wait()


def carry(sender: socket.socket, receiver: socket.socket, first: int = 0) -> None:
    """Forward all packets with the byte order swapped, after a hello of `first` bytes, until either
    end closes."""
    stream = sender.makefile("rb")
    with suppress(OSError):
        if first:
            head, token, tail = (text := stream.read(first))[:8], text[16:48], text[48:]
            numbers = struct.unpack(OWN + "IIII", text[8:16] + tail)
            version, order, *rest = (struct.pack(OTHER + "I", number) for number in numbers)
            receiver.sendall(b"".join((head, version, order, token, *rest)))
        while head := stream.read(HEADER.size):
            receiver.sendall(turned(head + stream.read(HEADER.unpack(head)[0] - HEADER.size)))
    with suppress(OSError):
        receiver.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    frame = sys.stdin.buffer.read(HEADER.size)
    frame += sys.stdin.buffer.read(HEADER.unpack(frame)[0] - HEADER.size)
    sys.exit(main(sys.argv[2:], frame))
