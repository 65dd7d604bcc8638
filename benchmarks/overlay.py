"""Speed of the overlay network relative to sockets without it, and pipelined waves a minute: `make
bench`."""

import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.measuring import print_figure
from tests.overlay.building import build

REPEATS = 5


def run_program(program: Path, *arguments) -> dict:
    process = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return json.loads(process.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), "-O2", ["speed"])
        program = Path(folder) / "speed"
        for leaves in (16, 64):
            runs = [run_program(program, leaves, 2000) for _ in range(REPEATS)]
            own, bare, ratio = (
                median(run[key] for run in runs) for key in ("overlay_us", "bare_us", "ratio")
            )
            print_figure(
                f"overlay, flat, {leaves} back-ends: round trip",
                f"{own:.0f} µs: {ratio:.2f} × bare sockets' {bare:.0f} µs",
            )
        for leaves, size in ((16, 1 << 20), (16, 8 << 20)):
            ratio = median(
                run_program(program, leaves, 20, "multicast", size)["ratio"] for _ in range(REPEATS)
            )
            print_figure(
                f"overlay, flat, {leaves} back-ends: multicast of {size >> 20} MiB",
                f"{1 / ratio:.0%} of bare sockets' rate",
            )
        waves = run_program(program, 64, 100_000, "pipelined")["waves_a_minute"]
        print_figure(
            "overlay, flat, 64 back-ends: pipelined", f"{waves:,.0f} reduced waves a minute"
        )
        for leaves in (128, 512):
            seconds = median(run_program(program, leaves, 1)["start"] for _ in range(REPEATS))
            print_figure(f"overlay, flat, {leaves} back-ends: start-up", f"{seconds:.2f} s")


if __name__ == "__main__":
    main()
