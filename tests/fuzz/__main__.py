"""`python -m tests.fuzz`: hostile inputs for everything that reads files of strangers, for so many seconds.

What fails is kept in build/fuzz, and the last line is the command that repeats it.
"""

import argparse
import random
import sys
import time
import traceback
from pathlib import Path
from shlex import quote

from tests.fuzz.session import OutOfTime, failures, fuzz, replay
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=300, help="in all, shared among the targets")
    parser.add_argument("--seed", type=int, help="default: any; it is printed")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="only this one; repeated")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="only these inputs of build/fuzz, again")
    requested = parser.parse_args()
    return again(requested.replay) if requested.replay else session(requested)


def session(requested: argparse.Namespace) -> int:
    seed = random.randrange(1 << 30) if requested.seed is None else requested.seed
    names = requested.target or list(TARGETS)
    failed = 0
    began, end = time.time(), time.monotonic() + requested.seconds
    print(f"seed {seed}", flush=True)
    for left, name in zip(range(len(names), 0, -1), names, strict=True):
        try:
            tried = fuzz(name, max(end - time.monotonic(), 0) / left, seed)
            print(f"{name}: {tried} inputs", flush=True)
        except (Exception, OutOfTime):
            traceback.print_exc()
            failed += 1
            print(f"FAILED {name}", flush=True)
    kept = [str(path) for path in failures(began)]
    repeat = ["again: python -m tests.fuzz --replay " + " ".join(map(quote, kept))] if kept else []
    print(f"{len(names) - failed} of {len(names)} targets clean, seed {seed}", *repeat, sep="; ")
    return bool(failed)


def again(paths: list[Path]) -> int:
    failed = 0
    for path in paths:
        print(f"{path}: {path.read_text().rstrip()[:2000]}", flush=True)
        try:
            replay(path)
        except (Exception, OutOfTime):
            traceback.print_exc()
            failed += 1
    print(f"{len(paths) - failed} of {len(paths)} inputs end well")
    return bool(failed)


sys.exit(main())
