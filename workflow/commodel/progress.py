"""What takes long says what it is at, and who waits for it may listen; nothing in between need know of either.

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
    """What the work is at."""
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
    """The work is at this part of it, and what that says comes after it."""
    listener = _listener.get()
    listener(what)
    with heard_by(lambda text: listener(f"{what}, {text}")):
        yield
