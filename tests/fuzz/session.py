"""Runs targets for a while: many inputs from a seed, each within limits of processor time and memory.

The oracle: an input ends in a value or in a UserError of one line. Anything else is a failure, shown with its input.
"""

import resource
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from commodel.errors import UserError
from tests.fuzz.targets import Target

ROUND = 20  # inputs between two looks at the clock
CPU = 30  # seconds of processor time that one input may take, on a slow machine
MEMORY = 3 << 30  # bytes of address space beside what is there already


class OutOfTime(BaseException):
    """No Exception, so that nothing under test can take it for one of its own."""


def fuzz(target: Target, seconds: float, number: int) -> int:
    """Tries a target until the time is over; how many inputs that were. Raises what an input must not raise."""
    tried, until = 0, time.monotonic() + seconds
    while True:
        tried += one_round(target, number)
        number += 1
        if time.monotonic() > until:
            return tried


def one_round(target: Target, number: int) -> int:
    tried = 0

    @seed(number)
    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(target.inputs)
    def attempt(given_input) -> None:
        nonlocal tried
        tried += 1
        with tempfile.TemporaryDirectory() as folder, limits():
            ends_well(target.run, given_input, Path(folder))

    attempt()
    return tried


def ends_well(run: Callable, given_input: object, folder: Path) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, of numbers that become infinite
            run(given_input, folder)
    except UserError as error:
        text = error.format_message()
        assert text.isprintable(), f"not one plain line: {text!r}"
        assert len(text) < 2000, f"an endless message: {text!r}"


@contextmanager
def limits() -> Iterator[None]:
    """No more processor time and memory than that for what is inside."""

    def over(*_) -> None:
        raise OutOfTime(f"more than {CPU} s of processor time")

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    handler = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)
