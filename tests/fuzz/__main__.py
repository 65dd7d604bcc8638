"""`python -m tests.fuzz`: hostile inputs for everything that reads files of strangers, for so many seconds.

A failure ends with the input that caused it and the command that repeats it.
"""

import argparse
import random
import sys
import time
import traceback

from tests.fuzz.session import OutOfTime, fuzz
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=300, help="in all, shared among the targets")
    parser.add_argument("--seed", type=int, help="default: any; it is printed")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="only this one; repeated")
    asked = parser.parse_args()
    seed = random.randrange(1 << 30) if asked.seed is None else asked.seed
    names = asked.target or list(TARGETS)
    failed = []
    end = time.monotonic() + asked.seconds
    print(f"seed {seed}", flush=True)
    for left, name in zip(range(len(names), 0, -1), names, strict=True):
        try:
            tried = fuzz(TARGETS[name], max(end - time.monotonic(), 0) / left, seed)
            print(f"{name}: {tried} inputs", flush=True)
        except (Exception, OutOfTime):
            traceback.print_exc()
            failed.append(name)
            print(f"FAILED {name}; again: python -m tests.fuzz --seed {seed} --target '{name}'", flush=True)
    print(f"{len(names) - len(failed)} of {len(names)} targets clean, seed {seed}", *failed, sep="; failed: ")
    return bool(failed)


sys.exit(main())
