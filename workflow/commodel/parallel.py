"""Work of several processes at once (`map_in_processes`): copies of this one (`fork`), which share
what it has loaded.

`use_processes` says how many; without it, this process does all."""

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from multiprocessing.connection import Connection
from typing import TypeVar

from commodel.errors import UserError

Item = TypeVar("Item")
Output = TypeVar("Output")

_process_count: ContextVar[int] = ContextVar("process_count", default=1)


@contextmanager
def use_processes(count: int) -> Iterator[None]:
    """Let `map_in_processes` use so many processes within the block."""
    token = _process_count.set(count)
    try:
        yield
    finally:
        _process_count.reset(token)


def map_in_processes(function: Callable[[Item], Output], items: Sequence[Item]) -> Iterator[Output]:
    """Yield the output of a function for each item, in their order. An error of a process is raised
    here.

    Outputs are pickled, but not the function and the items. What the function changes is lost,
    except files.
    """
    count = min(_process_count.get(), len(items))
    if count < 2:
        yield from map(function, items)
        return
    workers = [_Worker(function, items[number::count]) for number in range(1, count)]
    try:
        for number, item in enumerate(items):
            turn = number % count
            yield _work_alone(function, item) if turn == 0 else workers[turn - 1].receive()
    finally:
        for worker in workers:
            worker.end()


def _work_alone(function: Callable[[Item], Output], item: Item) -> Output:
    """Return the output for an item, without further processes."""
    with use_processes(1):
        return function(item)


class _Worker:
    """A process that works on some items, and sends the output of each."""

    def __init__(self, function: Callable[[Item], Output], items: Sequence[Item]) -> None:
        context = multiprocessing.get_context("fork")
        self.receiver, sender = context.Pipe(duplex=False)
        arguments = function, items, self.receiver, sender
        self.process = context.Process(target=_send_outputs, args=arguments, daemon=True)
        self.process.start()
        sender.close()

    def receive(self):
        """Return the next output, or raise the error of the process."""
        try:
            output, error = self.receiver.recv()
        except EOFError:
            self.process.join()
            raise RuntimeError(f"a process ended with code {self.process.exitcode}") from None
        if error:
            raise error
        return output

    def end(self) -> None:
        self.receiver.close()
        self.process.kill()
        self.process.join()


def _send_outputs(
    function: Callable[[Item], Output],
    items: Sequence[Item],
    receiver: Connection,
    sender: Connection,
) -> None:
    receiver.close()  # so that sending fails if the first process has ended
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the first process says that it was stopped
    with suppress(BrokenPipeError):
        for item in items:
            try:
                sender.send((_work_alone(function, item), None))
            except BrokenPipeError:
                raise
            except Exception as error:
                if not isinstance(error, UserError):
                    error.add_note(traceback.format_exc())
                sender.send((None, error))
                return
