"""Progress messages of long computations: `at` and `within` report the current step, `heard_by` sets the function that
receives these reports. Functions in between need not pass it on.

>>> with heard_by(print), within("bcast"):
...     at("part 2 of 3")
bcast
bcast, part 2 of 3
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]
_listener: ContextVar[Listener] = ContextVar("listener", default=lambda text: None)


def at(text: str) -> None:
    """Report the current step."""
    _listener.get()(text)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def within(what: str) -> Iterator[None]:
    """Report `what` at the start of the block, and prefix it to all reports of the block."""
    listener = _listener.get()
    listener(what)
    with heard_by(lambda text: listener(f"{what}, {text}")):
        yield
