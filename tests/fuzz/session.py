"""Runs targets for a while: many inputs from a seed, each within limits of processor time and memory.

The oracle: an input ends in a value or in a UserError of one line. Anything else is a failure: its input is kept in
build/fuzz, also where it never fails again, or ends this process.
"""

import ast
import re
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
from commodel.platforms.tools import ROOT
from tests.fuzz.targets import TARGETS, Target

KEPT = ROOT / "build" / "fuzz"  # inputs that failed: TARGET-SEED-ERROR.txt
ROUND = 20  # inputs between two looks at the clock
CPU = 30  # seconds of processor time that one input may take, on a slow machine
MEMORY = 3 << 30  # bytes of address space beside what is there already


class OutOfTime(BaseException):
    """No Exception, so that nothing under test can take it for one of its own."""


def fuzz(name: str, seconds: float, number: int) -> int:
    """Tries a target until the time is over; how many inputs that were. Raises what an input must not raise."""
    tried, until = 0, time.monotonic() + seconds
    while True:
        tried += one_round(TARGETS[name], number, KEPT / f"{name.replace(' ', '-')}-{number}")
        number += 1
        if time.monotonic() > until:
            return tried


def one_round(target: Target, number: int, kept: Path) -> int:
    tried = 0
    kept.parent.mkdir(parents=True, exist_ok=True)

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
        with keeping(given_input, kept):
            attempt_one(target, given_input)

    attempt()
    return tried


@contextmanager
def keeping(given_input: object, kept: Path) -> Iterator[None]:
    """The input is in a file while it is tried. It stays there if it fails, one of each kind of failure, the smallest
    last; and if this process is killed."""
    trying = kept.with_name(f"{kept.name}.txt")
    trying.write_text(f"{given_input!a}\n")
    try:
        yield
    except BaseException as error:
        trying.replace(kept.with_name(f"{kept.name}-{type(error).__name__}.txt"))
        raise
    trying.unlink()


def failures(since: float) -> list[Path]:
    """The inputs that have failed, or ended what tried them, since then."""
    return sorted(path for path in KEPT.glob("*.txt") if path.stat().st_mtime >= since)


def replay(path: Path) -> None:
    """Tries a kept input again. Raises what it must not raise."""
    names = {name.replace(" ", "-"): name for name in TARGETS}
    stem = max((stem for stem in names if re.match(rf"{re.escape(stem)}-[0-9]", path.name)), key=len)
    attempt_one(TARGETS[names[stem]], ast.literal_eval(path.read_text()))


def attempt_one(target: Target, given_input: object) -> None:
    with tempfile.TemporaryDirectory() as folder, limits():
        ends_well(target.run, given_input, Path(folder))


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
