"""Rules for Open MPI over eight hosts: the rules that `commodel tune` finds, and their gain over
the library default.

python -m tests.labs.tune FOLDER [OPTIONS of commodel tune]    an empty folder; its project/ keeps results"""

import sys
import time
from pathlib import Path

from tests.labs.network_lab import network

MATRIX_PREDICTIONS = """
title: Probes alone, to predict with
platform: netns-8
models: [hockney, loggp]
library: false
measure: {sync: barrier, precision: 10%, min_samples: 5, max_samples: 30, seconds: 0.5, passes: 1}
probe_bytes: [64, 4KiB, 64KiB]
matrix:
  - axes: {operation: bcast, algorithm: binomial, ranks: 8, bytes: 4KiB}
"""
# Else drivers of other networks are tried on every start, for seconds, and one may be taken.
TCP = {"OMPI_MCA_pml": "ob1"}
OPTIONS = (
    "--ranks",
    "8",
    "--bytes",
    "64:64KiB:*4",
    "--sync",
    "barrier",
    "--minutes",
    "2",
    "--pairs",
    "3",
)


def main(folder: Path, options: tuple[str, ...]) -> None:
    with network(folder) as lab:
        lab.write("experiments", "prices", MATRIX_PREDICTIONS)
        begun = time.monotonic()
        lab.commodel("run", "prices", "-q", **TCP)
        print(
            f"the probes took {time.monotonic() - begun:.0f} s with all that belongs to a campaign",
            flush=True,
        )
        process = lab.head(
            sys.executable,
            "-m",
            "commodel",
            "tune",
            "--platform",
            "netns-8",
            *OPTIONS,
            *options,
            **TCP,
        )
        for line in process.stdout:
            print(line, end="", flush=True)
        if process.wait():
            sys.exit(process.returncode)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), tuple(sys.argv[2:]))
