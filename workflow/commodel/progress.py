"""Progress messages of long computations: `report_step` and `report_within` report the current
step, `listen_with` sets the function that receives these reports. Functions in between need not
pass it on.

>>> with listen_with(print), report_within("bcast"):
...     report_step("part 2 of 3")
bcast
bcast, part 2 of 3
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]
_listener: ContextVar[Listener] = ContextVar("listener", default=lambda text: None)


def report_step(text: str) -> None:
    """Report the current step."""
    _listener.get()(text)


@contextmanager
def listen_with(listener: Listener) -> Iterator[None]:
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def report_within(activity: str) -> Iterator[None]:
    """Report `activity` at the start of the block, and prefix it to all reports of the block."""
    listener = _listener.get()
    listener(activity)
    with listen_with(lambda text: listener(f"{activity}, {text}")):
        yield
