"""Speed of predictions and plans, printed as ratios measured in one run: `make bench`.

The plain-Python reference is the slow replay of the tests. The simulation is smpirun with the same
broadcast, including its start.
"""

import subprocess
import tempfile
import time
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from benchmarks.measuring import make_project, print_figure, read_peak_gib, time_task
from commodel.api.fits import read_data_sheet
from commodel.hierarchy import Hierarchy
from commodel.models.families import find_family
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule
from commodel.patterns.trees.topologies import make_tree
from commodel.plan.config import find_config_file as find_file
from commodel.plan.config import load_platform
from commodel.plan.planning import make_plan
from commodel.platforms.tools import ROOT, find_tool
from commodel.predictions.model import Model
from commodel.predictions.predictions import predict
from tests.models.synthetic import costs
from tests.models.truths.shares import G, model
from tests.patterns import slow_replay
from tests.patterns.catalogue import point

SIMULATED = make_given_set("loggp", ["L=10us", "o_s=1.5us", "o_r=1.5us", "g=0", "G=0.1ns"])
TAN = make_given_set("tan", ["L=10us", "o.a=1us", "o.b=0.1us"])
LOGGP = make_given_set("loggp", ["L=10us", "o_s=1.5us", "o_r=1.5us", "g=1us", "G=0.1ns"])
TAULOP = make_given_set(
    "taulop", ["o_0.a=1us", "L_0.a=1us", "L_0.b=0.3ns", "o_1.a=5us", "L_1.a=1us", "L_1.b=1ns"]
)


def compare_with_plain_python(ranks: int) -> None:
    pattern = build_schedule(point("bcast", "binomial", ranks=ranks))
    fast, cost = time_task(lambda: costs(find_family("loggp"), pattern, LOGGP, drawn=False))
    body = [1e-10 * max(size - 1, 0) for size in pattern.bytes.tolist()]
    reference = (
        lambda row: 1.5e-6,
        lambda row: 1.5e-6,
        lambda row: 1e-5 + body[row],
        lambda row: 1e-6 + body[row],
    )
    slow, finish = time_task(
        lambda: slow_replay.finish_times(pattern, *reference, reference[-1], [])
    )
    assert abs(max(finish) - cost[0]) < 1e-12
    print_figure(
        f"binomial broadcast, {ranks} ranks: plain Python / commodel", f"{slow / fast:.0f} x"
    )


def compare_with_simulation(ranks: int) -> None:
    """Predict and simulate the same broadcast of 8 bytes. If smpirun fails, it gets a quarter of
    the ranks."""
    if find_tool("smpirun") is None:
        print_figure("simulation", "no SimGrid here")
        return
    pattern, wanted = point("bcast", "binomial", ranks=ranks, bytes=8), ranks
    predicted, cost = time_task(
        lambda: costs(find_family("loggp"), build_schedule(pattern), SIMULATED, drawn=False)[0]
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        build = [
            find_tool("smpicc"),
            "-O2",
            "-o",
            place / "broadcast",
            ROOT / "benchmarks/broadcast.c",
        ]
        subprocess.run(build, check=True, capture_output=True)
        simulated, last = time_task(partial(simulate, place, ranks))
        while last is None and ranks > 1024:
            print_figure(f"smpirun with {ranks} ranks", "failed, or took more than two minutes")
            ranks //= 4
            simulated, last = time_task(partial(simulate, place, ranks))
    if last is None:
        return
    times = f"{simulated:.1f} s / {1e3 * predicted:.1f} ms"
    if ranks == wanted:
        print_figure(
            f"binomial broadcast, {ranks} ranks: smpirun / commodel",
            f"{simulated / predicted:.0f} x ({times})",
        )
        print_figure(
            "  time of the broadcast: simulated, predicted",
            f"{1e6 * last:.2f} us, {1e6 * cost:.2f} us",
        )
        return
    print_figure(f"  {ranks} ranks simulated, {wanted} predicted", times)
    ratio = simulated * (wanted / ranks) / predicted
    print_figure("  extrapolated in proportion to the ranks: smpirun / commodel", f"{ratio:.0f} x")


def simulate(place: Path, ranks: int) -> float | None:
    """Return the simulated seconds on the LogGP network of the tests, one rank a node; None if
    smpirun fails."""
    network = (ROOT / "tests/workflow/loggp-64.xml").read_text()
    (place / "network.xml").write_text(
        network.replace('radical="0-63"', f'radical="0-{ranks - 1}"')
    )
    (place / "hosts").write_text("".join(f"node-{node}\n" for node in range(ranks)))
    config = load_platform(ROOT / "tests/workflow/loggp-64.yaml").simgrid.config
    # Guard pages and a copy of the program for each rank would be more mappings than Linux gives a
    # process.
    config = config | {
        "smpi/privatization": "no",
        "contexts/guard-size": 0,
        "contexts/stack-size": 64,
    }
    config |= {"smpi/simulate-computation": "no"}
    command = [
        find_tool("smpirun"),
        "-np",
        str(ranks),
        "-platform",
        "network.xml",
        "-hostfile",
        "hosts",
    ]
    command += [
        "--log=root.thres:critical",
        *(f"--cfg={name}:{value}" for name, value in config.items()),
    ]
    try:
        run = subprocess.run(
            [*command, "./broadcast"], cwd=place, capture_output=True, text=True, timeout=120
        )
    except subprocess.TimeoutExpired:
        return None
    return float(run.stdout) if run.returncode == 0 else None


def measure_growth() -> None:
    """Measure the time by number of ranks, the best of three runs each."""
    patterns = {"loggp": lambda ranks: point("bcast", "binomial", ranks=ranks)}
    patterns["tan"] = lambda ranks: point("reduce", topology=f"binomial:{ranks.bit_length() - 1}")
    for name, sets in (("loggp", LOGGP), ("tan", TAN)):
        times = {}
        for power in range(14, 21):
            make_tree.cache_clear()
            task = partial(build_and_predict, name, sets, patterns[name], 1 << power)
            times[power] = min(time_task(task)[0] for _ in range(3))
        ratios = ", ".join(f"{times[power] / times[power - 1]:.1f}" for power in range(15, 21))
        print_figure(f"{name}: time per doubling of the ranks, 2^15 to 2^20", ratios)
        print_figure("  2^20 ranks, built and predicted", f"{times[20]:.2f} s")


def build_and_predict(name: str, sets, pattern, ranks: int):
    return costs(find_family(name), build_schedule(pattern(ranks)), sets, False)


def measure_many_ranks() -> None:
    for spec in ("kary:2^20", "flat:1048576", "balanced:1024x1024", "binomial:21"):
        make_tree.cache_clear()
        spent, _ = time_task(lambda spec=spec: predict(TAN, [point("reduce", topology=spec)]))
        print_figure(f"tan: reduction over {spec}, built and predicted", f"{spent:.2f} s")
    spent, _ = time_task(
        lambda: predict(LOGGP, [point("barrier", "dissemination", ranks=1 << 20, bytes=0)])
    )
    print_figure(
        "loggp: barrier of 2^20 ranks, 20 rounds",
        f"{spent:.1f} s, {read_peak_gib():.2f} GiB at most so far",
    )


def measure_many_points() -> None:
    algorithms = [
        ("bcast", "binomial"),
        ("bcast", "linear"),
        ("gather", "linear"),
        ("gather", "binomial"),
    ]
    algorithms += [
        ("allreduce", "recursive-doubling"),
        ("allreduce", "ring"),
        ("allgather", "ring"),
        ("barrier", "dissemination"),
    ]
    shapes = product(algorithms, range(2, 65))
    points = [
        point(*algorithm, ranks=ranks, bytes=size)
        for algorithm, ranks in shapes
        for size in range(0, 1000 * 20, 1000)
    ]
    spent, predictions = time_task(lambda: predict(LOGGP, points))
    single = [
        time_task(lambda p=p: costs(find_family("loggp"), build_schedule(p), LOGGP, False))[0]
        for p in points[:: len(points) // 200]
    ]
    print_figure(
        f"{len(predictions)} points of up to 64 ranks",
        f"{spent:.1f} s, {len(points) * sum(single) / len(single) / spent:.1f} x faster than one by one",
    )


def measure_kernels() -> None:
    """Predict SUMMA with 4,096 blocks a side over 64×64 processes, and an iteration of the wave
    equation over 10^5."""
    wide = point("summa:n=4096", "paper", ranks=4096, bytes=8192, layout="block:16")
    cells = point("wave2d:n=20000", "paper", ranks=100_000, bytes=8, layout="block:16")
    for name, sets in (("taulop", TAULOP), ("loggp", LOGGP)):
        for chosen in (wide, cells):
            spent, _ = time_task(lambda sets=sets, chosen=chosen: predict(sets, [chosen]))
            title = f"{name}: {chosen.operation} over {chosen.ranks} ranks"
            print_figure(title, f"{spent:.1f} s, {read_peak_gib():.2f} GiB at most so far")


def measure_link_sharing() -> None:
    """Measure model `shares` with one draw by processor time, the best of three runs."""
    sheet = Model.of_set(read_data_sheet("shares", find_file("platform", "fat-tree-64")))
    chosen = [("alltoall", "pairwise", 128, 1 << 14), ("alltoall", "linear", 128, 1 << 14)]
    chosen += [("allgather", "ring", 128, 1 << 14), ("bcast", "chain:8KiB", 64, 1 << 24)]
    for operation, choice, ranks, size in chosen:
        pattern = build_schedule(
            point(operation, choice, ranks=ranks, bytes=size, layout="block:2")
        )
        task = partial(sheet.cost, pattern.place(pattern.node))
        spent = min(time_task(task, time.process_time)[0] for _ in range(3))
        title = f"shares: {operation} {choice}, {ranks} ranks"
        print_figure(
            title, f"{pattern.messages / spent / 1e6:.1f} million messages a processor second"
        )
    ranks = 4096
    contended = model(**{"c_out.leaf.a": G["leaf"] / 4})
    levels = Hierarchy.written({"leaf": 16}, ranks)
    contended = Model(
        contended.family, replace(contended.values, settings={"levels": levels.group_lists})
    )
    exchange = build_schedule(point("alltoall", "pairwise", ranks=ranks, bytes=4096))
    spent, _ = time_task(lambda: contended.cost(exchange), time.process_time)
    print_figure(
        f"shares: pairwise exchange of {ranks} ranks, leaves of 16",
        f"{spent:.2f} s, {exchange.messages:,} messages",
    )


def measure_planning() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        axes = "{operation: bcast, algorithm: [linear, binomial, binomial-near, chain], "
        axes += "ranks: {from: 2, to: 251, step: 1},"
        text = (
            f"platform: big\nmodels: [loggp]\nmatrix: [axes: {axes} bytes: "
            f"{{from: 1, to: 100, step: 1}}}}]\n"
        )
        make_project(place, {"big": "launcher: slurm\nnodes: 1024\ncores: 1\n"}, {"many": text})
        spent, plan = time_task(lambda: make_plan("many", place))
        print_figure(f"planning {len(plan.points)} points", f"{spent:.1f} s")


if __name__ == "__main__":
    compare_with_plain_python(1 << 16)
    compare_with_simulation(1 << 16)
    measure_growth()
    measure_many_points()
    measure_kernels()
    measure_link_sharing()
    measure_planning()
    measure_many_ranks()
