"""Networks and streams. A wait for what may never come is cut into short ones, so that Ctrl-C ends it."""

import ctypes
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from commodel.overlay.library import (
    CLOSED,
    OK,
    TIMEOUT,
    Event,
    Metrics,
    Node,
    OnEvent,
    Options,
    OverlayError,
    OverlayTimeoutError,
    StreamOptions,
    call,
    failure,
    must,
    words,
)
from commodel.overlay.library import made as make
from commodel.overlay.packets import Packet

SYNCS = ("wait", "timeout", "none")  # as overlay.h has them, in its order
LOSSES = ("continue", "stop")
EVENTS = ("lost", "reattached", "ended", "joined")
GONE = -2  # as the parent of a process: it is lost
LONGEST_WAIT = 0.2  # seconds of one wait


@dataclass(frozen=True)
class NetworkEvent:
    """What has happened to a network: back-ends lost or joined, a process attached to `parent`, or a stream ended."""

    kind: str  # of EVENTS
    backends: range
    node: int
    parent: int
    stream: int
    code: int
    why: str


class _Ended(ABC):
    """Something of the library that is closed once; `with` does."""

    pointer: int | None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> bool | None:
        self.close()

    @property
    def own(self) -> int:
        if self.pointer is None:
            raise OverlayError(f"this {type(self).__name__} is closed", CLOSED)
        return self.pointer

    @abstractmethod
    def close(self) -> None:
        """It may be called again."""


class Stream(_Ended):
    """Packets down to the back-ends of a communicator and up through a filter; of a back-end, to its front-end."""

    def __init__(self, pointer: int, network: "_Joined", by_front_end: bool) -> None:
        self.pointer, self.network, self._closes = pointer, network, by_front_end

    @property
    def id(self) -> int:
        return call("stream_id", self.own)

    def send(self, format: str | Packet, *values: object, tag: int = 0) -> None:
        """Send a packet, or the values of one behind a format. It waits while the stream's window is full. A back-end's
        packets for a stream that the front-end has ended are dropped: `ended` says why."""
        packet = format if isinstance(format, Packet) else Packet.of(format, *values, tag=tag)
        must("send_packet", self.own, packet.pointer)

    def receive(self, seconds: float | None = None) -> Packet:
        """Return what comes next; OverlayTimeoutError where nothing has after so many seconds."""
        packet = ctypes.c_void_p()
        _patiently(seconds, lambda wait: call("recv", self.own, wait, ctypes.byref(packet)))
        return Packet(packet.value)

    def set_argument(self, argument: str) -> None:
        """Set what follows the colon in the names of this stream's filters, from now on, in all processes."""
        must("set_argument", self.own, argument.encode())

    @property
    def ended(self) -> str:
        """Return why the stream has ended, empty while it goes on."""
        return "" if call("ended", self.own) == OK else str(failure())

    @property
    def missing(self) -> list[int]:
        """Its back-ends that are lost."""
        return _listed("missing", self.own)

    def close(self) -> None:
        """By the front-end, for all."""
        if self.pointer is not None and self._closes and self.network.pointer is not None:
            call("close_stream", self.pointer)
        self.pointer = None


class _Joined(_Ended):
    """A network as one of its processes has it."""

    def receive(self, seconds: float | None = None) -> tuple[Packet, Stream]:
        """Return what comes next on any stream, and on which."""
        packet, stream = ctypes.c_void_p(), ctypes.c_void_p()
        _patiently(seconds, lambda wait: call("recv_any", self.own, wait, ctypes.byref(packet), ctypes.byref(stream)))
        return Packet(packet.value), Stream(stream.value, self, False)

    def share(self) -> None:
        """Let several threads use this network, each with streams of its own. One of them closes it in the end."""
        must("share", self.own)

    def flush(self) -> None:
        """Hands what was sent to the kernel at once; receiving does so, too."""
        must("flush", self.own)

    def fileno(self) -> int:
        """For select: readable when a receive may find something, once one of 0 seconds has found nothing."""
        return call("fd", self.own)

    def close(self) -> None:
        if self.pointer is not None:
            call("close", self.pointer)
            self.pointer = None


class Network(_Joined):
    """A network that this front-end has started: with `backend`, the command of the back-ends, or for back-ends that
    others start, with a connection file, after which `wait` waits for them."""

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
        authenticate: bool = False,
    ) -> None:
        """`topology` is a file, or the text of one: `host:0 => host:1 host:2 ;`. `launch` is a command that starts
        another on {host}; without it all run here. With `join`, back-ends attach by the connection file at any time,
        also in place of lost ones, and take part in the streams that are opened from then on. With `authenticate`,
        packets have tags by which changed and foreign ones are refused."""
        text = "=>" in str(topology)
        options = Options(
            topology=None if text else str(topology).encode(),
            topology_text=str(topology).encode() if text else None,
            backend=words(None if backend is None else list(backend)),
            launch=words(None if launch is None else list(launch)),
            bind=None if bind is None else bind.encode(),
            connection_file=None if connection_file is None else str(connection_file).encode(),
            start_seconds=seconds,
            silence=silence,
            join=join,
            authenticate=authenticate,
            window=window,
        )
        self.pointer = None
        self.pointer = make("start", ctypes.byref(options))

    def wait(self, seconds: float = 60) -> None:
        """Until all back-ends that others start have attached."""
        must("await", self.own, seconds)

    def __len__(self) -> int:
        """Return how many back-ends there are, the lost ones too."""
        return call("backends", self.own)

    def name(self, backend: int) -> str:
        name = call("backend_name", self.own, backend)
        if name is None:
            raise failure()
        return name.decode()

    @property
    def lost(self) -> list[int]:
        return _listed("lost", self.own)

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of start-up: own children launched, internal processes up, all up."""
        phases = call("phases", self.own)
        return {name: getattr(phases, name) for name, _ in phases._fields_}

    def metrics(self, seconds: float = 10) -> pd.DataFrame:
        """Return what each process has counted: a row for each open stream, and one of stream -1 for all of a process.

        Columns are packets and bytes sent up and down, waves, packets that wait, seconds in filters and of processor
        time, and the round trip to the parent. Back-ends answer when they receive: after `seconds` the rest is missing.
        """
        rows = ctypes.POINTER(Metrics)()
        if (count := call("metrics", self.own, seconds, ctypes.byref(rows))) < 0:
            raise failure()
        names = [name for name, _ in Metrics._fields_]
        table = pd.DataFrame([[getattr(rows[i], name) for name in names] for i in range(count)], columns=names)
        return self.topology()[["node", "name", "depth"]].merge(table, on="node")

    def topology(self) -> pd.DataFrame:
        """Return the tree as it is now: parent (-1: none, -2: the process is lost), depth, children and back-end."""
        rows = []
        for node in range(call("nodes", self.own)):
            about = Node()
            must("node", self.own, node, ctypes.byref(about))
            name = about.name.decode(errors="replace")
            rows.append((node, name, name.rpartition(":")[0], about.parent, about.depth, about.children, about.backend))
        return pd.DataFrame(rows, columns=["node", "name", "host", "parent", "depth", "children", "backend"])

    def events(self) -> list[NetworkEvent]:
        """Return what has happened since the last call, without waiting."""
        event, happened = Event(), []
        while call("event", self.own, ctypes.byref(event)):
            happened.append(_event_of(event))
        return happened

    def on_event(self, function: Callable[[NetworkEvent], None] | None) -> None:
        """Call a function for each event, from within sending and receiving. It must not use the network."""
        self._on_event = OnEvent(0) if function is None else OnEvent(lambda _, event: function(_event_of(event[0])))
        call("on_event", self.own, self._on_event, None)

    def skew(self, end_to_end: bool = False, rounds: int = 10) -> np.ndarray:
        """Seconds that each back-end's clock is ahead."""
        seconds = np.empty(len(self))
        must("skew", self.own, int(end_to_end), rounds, seconds.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), None)
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
        """Over all back-ends, or some. `sync`: packets from below are a wave once all have come (wait), `seconds` after
        the first (timeout), each by itself (none), or as a function in FILE.so[@FUNCTION][:ARGUMENT] says. `root` is
        the front-end's filter in place of `filter`, `leaf` one of what back-ends send, `down` one of what goes down."""
        own = sync if ".so" in sync else ""
        for word, known in (("wait" if own else sync, SYNCS), (on_loss, LOSSES)):
            if word not in known:
                raise OverlayError(f"found '{word}', wanted {', '.join(known[:-1])} or {known[-1]}")
        names = [name.encode() for name in (root, leaf, down, own)]
        waiting = 0 if own else SYNCS.index(sync)
        options = StreamOptions(filter.encode(), waiting, seconds, LOSSES.index(on_loss), *names)
        if backends is None:
            return Stream(make("open", call("broadcast", self.own), ctypes.byref(options)), self, True)
        comm = make("subset", self.own, (ctypes.c_int * len(backends))(*backends), len(backends))
        try:
            return Stream(make("open", comm, ctypes.byref(options)), self, True)
        finally:
            call("free_comm", comm)


class BackEnd(_Joined):
    """This process as a back-end: iterating gives packets, each with its stream, until the front-end ends it all."""

    def __init__(self, connection_file: str | Path | None = None, number: int = -1) -> None:
        self.pointer = None
        self.pointer = make("attach", None if connection_file is None else str(connection_file).encode(), number)

    def __exit__(self, kind: object, error: BaseException | None = None, *_: object) -> bool:
        """End quietly where the network ended while this back-end was sending or receiving."""
        ended = isinstance(error, OverlayError) and error.code == CLOSED and call("flush", self.own) == CLOSED
        self.close()
        return ended

    @property
    def number(self) -> int:
        return call("backend", self.own)

    def __iter__(self) -> Iterator[tuple[Packet, Stream]]:
        while True:
            try:
                yield self.receive()
            except OverlayError as error:
                if error.code == CLOSED:
                    return
                raise


def attach(connection_file: str | Path | None = None, number: int = -1) -> BackEnd:
    """By the environment that started this process or, with a connection file, as back-end `number` (-1: its rank)."""
    return BackEnd(connection_file, number)


def _event_of(event: Event) -> NetworkEvent:
    backends = range(event.first, event.first + event.count)
    why = event.why.decode(errors="replace")
    return NetworkEvent(EVENTS[event.kind], backends, event.node, event.parent, event.stream, event.code, why)


def _patiently(seconds: float | None, receive) -> None:
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        left = LONGEST_WAIT if end is None else min(LONGEST_WAIT, max(end - time.monotonic(), 0))
        if (code := receive(left)) == OK:
            return
        if code != TIMEOUT:
            raise failure(code)
        if end is not None and time.monotonic() >= end:
            raise OverlayTimeoutError(f"nothing came within {seconds:g} s", TIMEOUT)


def _listed(name: str, pointer: int) -> list[int]:
    count = call(name, pointer, None, 0)
    numbers = (ctypes.c_int * max(count, 1))()
    return list(numbers[: min(call(name, pointer, numbers, count), count)])
