"""`python -m tests.fuzz`: give hostile inputs to every reader of files from unknown sources, for a
number of seconds.

Inputs that fail are kept in build/fuzz. The last line of the output has the command that repeats
them.
"""

import argparse
import random
import sys
import time
import traceback
from pathlib import Path
from shlex import quote

from tests.fuzz.session import OutOfTime, fuzz, list_failures, replay
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument(
        "--seconds", type=float, default=300, help="in all, shared among the targets"
    )
    parser.add_argument("--seed", type=int, help="default: any; it is printed")
    parser.add_argument(
        "--target", action="append", choices=list(TARGETS), help="only this one; repeated"
    )
    parser.add_argument(
        "--replay",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="only these inputs of build/fuzz, again",
    )
    requested = parser.parse_args()
    return replay_inputs(requested.replay) if requested.replay else session(requested)


def session(requested: argparse.Namespace) -> int:
    seed = random.randrange(1 << 30) if requested.seed is None else requested.seed
    names = requested.target or list(TARGETS)
    failed = 0
    began, end = time.time(), time.monotonic() + requested.seconds
    print(f"seed {seed}", flush=True)
    for targets_left, name in zip(range(len(names), 0, -1), names, strict=True):
        try:
            inputs = fuzz(name, max(end - time.monotonic(), 0) / targets_left, seed)
            print(f"{name}: {inputs} inputs", flush=True)
        except (Exception, OutOfTime):
            traceback.print_exc()
            failed += 1
            print(f"FAILED {name}", flush=True)
    failed_inputs = [str(path) for path in list_failures(began)]
    repeat = (
        ["to repeat: python -m tests.fuzz --replay " + " ".join(map(quote, failed_inputs))]
        if failed_inputs
        else []
    )
    print(f"{len(names) - failed} of {len(names)} targets clean, seed {seed}", *repeat, sep="; ")
    return bool(failed)


def replay_inputs(paths: list[Path]) -> int:
    failed = 0
    for path in paths:
        print(f"{path}: {path.read_text().rstrip()[:2000]}", flush=True)
        try:
            replay(path)
        except (Exception, OutOfTime):
            traceback.print_exc()
            failed += 1
    print(f"{len(paths) - failed} of {len(paths)} inputs ended in a value or in a UserError")
    return bool(failed)


sys.exit(main())
