"""Work of several processes: the outputs of one process, in the same order; errors are raised where
the outputs are wanted, and no process is left."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from commodel.errors import UserError
from commodel.parallel import map_in_processes, use_processes


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_outputs_have_the_order_of_the_items(count):
    factor = 3
    with use_processes(count):
        found = list(map_in_processes(lambda number: (factor * number, os.getpid()), range(5)))
    assert [output for output, _ in found] == [0, 3, 6, 9, 12]
    assert len({process for _, process in found}) == min(count, 5)
    assert not multiprocessing.active_children()


def test_copies_make_no_copies():
    def work(number):
        return list(map_in_processes(lambda more: os.getpid(), range(number)))

    with use_processes(2):
        first, second = map_in_processes(work, [3, 3])
    assert len(set(first)) == len(set(second)) == 1
    assert first != second


def refuse(number):
    if number == 1:
        raise UserError("found 1, wanted another number", file="numbers.csv")
    return number


def fail(number):
    return 1 / (number - 1)


def end(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (refuse, UserError, "numbers.csv: found 1, wanted another number"),
        (fail, ZeroDivisionError, "division by zero"),
        (end, RuntimeError, "a process ended with code -9"),
    ],
)
def test_errors_of_a_process_are_raised(function, kind, message):
    with use_processes(2):
        outputs = map_in_processes(function, range(4))
        assert next(outputs) == function(0)
        with pytest.raises(kind) as caught:
            next(outputs)
    assert str(caught.value) == message
    if kind is ZeroDivisionError:
        assert "in fail" in caught.value.__notes__[0]
    assert not multiprocessing.active_children()


ORPHANS = """
import os, sys, time
from commodel.parallel import map_in_processes, use_processes
def work(number):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(0.5 if number % 3 else 1000)
    return "x" * 1000000
with use_processes(3):
    list(map_in_processes(work, range(6)))
"""


def test_processes_end_with_the_first_one():
    first = subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True)
    numbers = [int(first.stdout.readline()) for _ in range(3)]
    first.kill()
    first.wait()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and any(map(is_running, numbers)):
        time.sleep(0.1)
    assert not any(map(is_running, numbers))


def is_running(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
