"""Networks and streams (`Network`, `BackEnd`, `Stream`). Long waits are divided into short ones, so
that Ctrl-C ends them."""

from __future__ import annotations

import ctypes
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from commodel_overlay.library import (
    CLOSED,
    OK,
    TIMEOUT,
    Event,
    EventCallback,
    Metrics,
    Node,
    Options,
    OverlayError,
    OverlayTimeoutError,
    StreamOptions,
    call_checked,
    call_for_pointer,
    call_library,
    make_argument_array,
    make_last_error,
)
from commodel_overlay.packets import Packet

if TYPE_CHECKING:
    import pandas as pd  # slow to load, and of no use to a back-end

SYNC_MODES = ("wait", "timeout", "none")  # as overlay.h has them, in its order
LOSS_MODES = ("continue", "stop")
EVENT_KINDS = ("lost", "reattached", "ended", "joined")
GONE = -2  # as the parent of a process: it is lost
MAX_WAIT_SECONDS = 0.2  # seconds of one wait


@dataclass(frozen=True)
class NetworkEvent:
    """An event of a network: back-ends were lost or joined, a process was attached to `parent`, or
    a stream ended."""

    kind: str  # of EVENTS
    backends: range
    node: int
    parent: int
    stream: int
    code: int
    why: str


class _ClosableObject(ABC):
    """An object of the library that is closed once, also at the end of a `with` block."""

    pointer: int | None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self.close()
        return None

    @property
    def open_pointer(self) -> int:
        if self.pointer is None:
            raise OverlayError(f"this {type(self).__name__} is closed", CLOSED)
        return self.pointer

    @abstractmethod
    def close(self) -> None:
        """Close the object; further calls have no effect."""


class Stream(_ClosableObject):
    """A stream of packets: down to the back-ends of a communicator, and up through a filter; for a
    back-end, to its front-end."""

    def __init__(self, pointer: int, network: _NetworkMember, by_front_end: bool) -> None:
        self.pointer, self.network, self._closes = pointer, network, by_front_end

    @property
    def id(self) -> int:
        return call_library("stream_id", self.open_pointer)

    def send(self, format: str | Packet, *values: object, tag: int = 0) -> None:
        """Send a packet, or values with a format. The call waits while the stream's window is full.

        If the front-end has ended the stream, packets of a back-end are dropped; `ended` has the
        reason.
        """
        packet = format if isinstance(format, Packet) else Packet.of(format, *values, tag=tag)
        call_checked("send_packet", self.open_pointer, packet.pointer)

    def receive(self, seconds: float | None = None) -> Packet:
        """Return the next packet; raise OverlayTimeoutError if none arrives within `seconds`."""
        packet = ctypes.c_void_p()
        _receive_in_time(
            seconds,
            lambda wait: call_library("recv", self.open_pointer, wait, ctypes.byref(packet)),
        )
        return Packet(_read_pointer(packet))

    def set_argument(self, argument: str) -> None:
        """Set the argument after the colon in the names of this stream's filters, from now on and
        in all processes."""
        call_checked("set_argument", self.open_pointer, argument.encode())

    @property
    def ended(self) -> str:
        """The reason why the stream has ended; empty while it is open."""
        return "" if call_library("ended", self.open_pointer) == OK else str(make_last_error())

    @property
    def missing(self) -> list[int]:
        """The lost back-ends of the stream."""
        return _list_numbers("missing", self.open_pointer)

    def close(self) -> None:
        """Close the stream; if the front-end does so, it is closed in all processes."""
        if self.pointer is not None and self._closes and self.network.pointer is not None:
            call_library("close_stream", self.pointer)
        self.pointer = None


class _NetworkMember(_ClosableObject):
    """A network, as seen by one of its processes."""

    def receive(self, seconds: float | None = None) -> tuple[Packet, Stream]:
        """Return the next packet of any stream, and its stream."""
        packet, stream = ctypes.c_void_p(), ctypes.c_void_p()
        _receive_in_time(
            seconds,
            lambda wait: call_library(
                "recv_any", self.open_pointer, wait, ctypes.byref(packet), ctypes.byref(stream)
            ),
        )
        return Packet(_read_pointer(packet)), Stream(_read_pointer(stream), self, False)

    def share(self) -> None:
        """Allow several threads to use this network, each with its own streams. One of them closes
        it in the end."""
        call_checked("share", self.open_pointer)

    def flush(self) -> None:
        """Pass sent packets to the kernel at once; receiving does so too."""
        call_checked("flush", self.open_pointer)

    def fileno(self) -> int:
        """Return a file descriptor for select.

        It becomes readable when a receive may find a packet, after a receive of 0 seconds has found
        none.
        """
        return call_library("fd", self.open_pointer)

    def close(self) -> None:
        if self.pointer is not None:
            call_library("close", self.pointer)
            self.pointer = None


class Network(_NetworkMember):
    """A network started by this front-end.

    It either starts the back-ends itself, by the command `backend`. Or others start them with a
    connection file, and `wait` waits for them.
    """

    def __init__(
        self,
        topology: str | Path,
        backend: Sequence[str] | None = None,
        launch: Sequence[str] | None = None,
        connection_file: str | Path | None = None,
        bind: str | None = None,
        seconds: float = 0,
        silence: float = 0,
        window: int = 0,
        join: bool = False,
        one_step: bool = False,
        authenticate: bool = False,
    ) -> None:
        """Start a network over a topology: a file, or a text such as `host:0 => host:1 host:2 ;`.

        `launch` is a command that starts another command on {host}; without it all processes run on
        this machine. With `join`, back-ends can attach at any time by the connection file, also in
        place of lost ones, and take part in the streams that are opened afterwards. With
        `one_step`, one command starts all processes but this one: `launch`, such as srun -n{tasks},
        or others do (`overlay-node --step FILE BACKEND …`). With `authenticate`, packets have tags,
        by which changed packets and those from outside are refused.
        """
        text = "=>" in str(topology)
        options = Options(
            topology=None if text else str(topology).encode(),
            topology_text=str(topology).encode() if text else None,
            backend=make_argument_array(None if backend is None else list(backend)),
            launch=make_argument_array(None if launch is None else list(launch)),
            bind=None if bind is None else bind.encode(),
            connection_file=None if connection_file is None else str(connection_file).encode(),
            start_seconds=seconds,
            silence=silence,
            join=join,
            one_step=one_step,
            authenticate=authenticate,
            window=window,
        )
        self.pointer = None
        self.pointer = call_for_pointer("start", ctypes.byref(options))

    def wait(self, seconds: float = 60) -> None:
        """Wait until all back-ends that others start have attached."""
        call_checked("await", self.open_pointer, seconds)

    def __len__(self) -> int:
        """Return the number of back-ends, including lost ones."""
        return call_library("backends", self.open_pointer)

    def name(self, backend: int) -> str:
        name = call_library("backend_name", self.open_pointer, backend)
        if name is None:
            raise make_last_error()
        return name.decode()

    @property
    def lost(self) -> list[int]:
        return _list_numbers("lost", self.open_pointer)

    @property
    def phases(self) -> dict[str, float]:
        """The seconds of start-up: until the own children are launched, the internal processes are
        up, and all are up."""
        phases = call_library("phases", self.open_pointer)
        return {name: getattr(phases, name) for name, _ in phases._fields_}

    def metrics(self, seconds: float = 10) -> pd.DataFrame:
        """Return the counters of each process: a row for each open stream, and a row of stream -1
        for the whole process.

        Columns are packets and bytes sent up and down, waves, waiting packets, seconds in filters
        and of processor time, and the round trip to the parent. Back-ends answer when they receive:
        counters that have not arrived after `seconds` are missing.
        """
        import pandas as pd

        rows = ctypes.POINTER(Metrics)()
        count = call_library("metrics", self.open_pointer, seconds, ctypes.byref(rows))
        if count < 0:
            raise make_last_error()
        names = [field[0] for field in Metrics._fields_]
        table = pd.DataFrame(
            [[getattr(rows[i], name) for name in names] for i in range(count)], columns=names
        )
        return self.topology()[["node", "name", "depth"]].merge(table, on="node")

    def topology(self) -> pd.DataFrame:
        """Return the present tree: parent (-1: none, -2: the process is lost), depth, children and
        back-end of each node."""
        import pandas as pd

        rows = []
        for node in range(call_library("nodes", self.open_pointer)):
            node_fields = Node()
            call_checked("node", self.open_pointer, node, ctypes.byref(node_fields))
            name = node_fields.name.decode(errors="replace")
            rows.append(
                (
                    node,
                    name,
                    name.rpartition(":")[0],
                    node_fields.parent,
                    node_fields.depth,
                    node_fields.children,
                    node_fields.backend,
                )
            )
        return pd.DataFrame(
            rows, columns=["node", "name", "host", "parent", "depth", "children", "backend"]
        )

    def events(self) -> list[NetworkEvent]:
        """Return the events since the last call, without waiting."""
        event, happened = Event(), []
        while call_library("event", self.open_pointer, ctypes.byref(event)):
            happened.append(_convert_event(event))
        return happened

    def on_event(self, function: Callable[[NetworkEvent], None] | None) -> None:
        """Set a function to call for each event, during sending and receiving. It must not use the
        network."""
        self._on_event = (
            EventCallback(0)
            if function is None
            else EventCallback(lambda _, event: function(_convert_event(event[0])))
        )
        call_library("on_event", self.open_pointer, self._on_event, None)

    def skew(self, end_to_end: bool = False, rounds: int = 10) -> np.ndarray:
        """Return the seconds by which the clock of each back-end is ahead."""
        seconds = np.empty(len(self))
        pointer = seconds.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        call_checked("skew", self.open_pointer, int(end_to_end), rounds, pointer, None)
        return seconds

    def stream(
        self,
        backends: Sequence[int] | None = None,
        filter: str = "none",
        sync: str = "wait",
        seconds: float = 0,
        on_loss: str = "continue",
        root: str = "",
        leaf: str = "",
        down: str = "",
    ) -> Stream:
        """Open a stream over all back-ends, or some of them.

        `sync` determines when packets from below form a wave: when all have arrived (wait),
        `seconds` after the first (timeout), each by itself (none), or by a function in
        FILE.so[@FUNCTION][:ARGUMENT]. `root` is the front-end's filter in place of `filter`, `leaf`
        filters what back-ends send, `down` filters packets on their way down.
        """
        open_pointer = sync if ".so" in sync else ""
        for word, modes in (("wait" if open_pointer else sync, SYNC_MODES), (on_loss, LOSS_MODES)):
            if word not in modes:
                raise OverlayError(f"found '{word}', wanted {', '.join(modes[:-1])} or {modes[-1]}")
        names = [name.encode() for name in (root, leaf, down, open_pointer)]
        waiting = 0 if open_pointer else SYNC_MODES.index(sync)
        options = StreamOptions(
            filter.encode(), waiting, seconds, LOSS_MODES.index(on_loss), *names
        )
        if backends is None:
            return Stream(
                call_for_pointer(
                    "open", call_library("broadcast", self.open_pointer), ctypes.byref(options)
                ),
                self,
                True,
            )
        comm = call_for_pointer(
            "subset", self.open_pointer, (ctypes.c_int * len(backends))(*backends), len(backends)
        )
        try:
            return Stream(call_for_pointer("open", comm, ctypes.byref(options)), self, True)
        finally:
            call_library("free_comm", comm)


class BackEnd(_NetworkMember):
    """The present process as a back-end. Iterating yields packets with their streams, until the
    front-end closes the network."""

    def __init__(self, connection_file: str | Path | None = None, number: int = -1) -> None:
        self.pointer = None
        self.pointer = call_for_pointer(
            "attach", None if connection_file is None else str(connection_file).encode(), number
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> bool:
        """Suppress the error if the network was closed while this back-end was sending or
        receiving."""
        ended = (
            isinstance(error, OverlayError)
            and error.code == CLOSED
            and call_library("flush", self.open_pointer) == CLOSED
        )
        self.close()
        return ended

    @property
    def number(self) -> int:
        return call_library("backend", self.open_pointer)

    def __iter__(self) -> Iterator[tuple[Packet, Stream]]:
        while True:
            try:
                yield self.receive()
            except OverlayError as error:
                if error.code == CLOSED:
                    return
                raise


def attach(connection_file: str | Path | None = None, number: int = -1) -> BackEnd:
    """Join a network as a back-end.

    Without a connection file, the environment of this process names the network. With one, `number`
    is the back-end's (-1: its rank).
    """
    return BackEnd(connection_file, number)


def _convert_event(event: Event) -> NetworkEvent:
    backends = range(event.first, event.first + event.count)
    why = event.why.decode(errors="replace")
    return NetworkEvent(
        EVENT_KINDS[event.kind], backends, event.node, event.parent, event.stream, event.code, why
    )


def _read_pointer(pointer: ctypes.c_void_p) -> int:
    """Return a pointer that the library has set."""
    assert pointer.value is not None
    return pointer.value


def _receive_in_time(seconds: float | None, receive: Callable[[float], int]) -> None:
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        remaining = (
            MAX_WAIT_SECONDS
            if end is None
            else min(MAX_WAIT_SECONDS, max(end - time.monotonic(), 0))
        )
        code = receive(remaining)
        if code == OK:
            return
        if code != TIMEOUT:
            raise make_last_error(code)
        if end is not None and time.monotonic() >= end:
            raise OverlayTimeoutError(f"nothing came within {seconds:g} s", TIMEOUT)


def _list_numbers(name: str, pointer: int) -> list[int]:
    count = call_library(name, pointer, None, 0)
    numbers = (ctypes.c_int * max(count, 1))()
    return list(numbers[: min(call_library(name, pointer, numbers, count), count)])
