"""Speed of pricing and planning, printed as ratios measured in one run: `make bench`.

The plain-Python reference is the slow replay of the tests; the simulation is smpirun playing the same broadcast.
"""

import resource
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests import slow_replay
from tests.patterns import point

from commodel.build import build
from commodel.families import costs, family, given
from commodel.measure import measure
from commodel.patterns import schedule
from commodel.plan import make_plan
from commodel.predict import predict
from commodel.toolchain import ROOT, find

LOGGP = given("loggp", ["L=10us", "o_s=1.5us", "o_r=1.5us", "g=1us", "G=0.1ns"])


def timed(task):
    start = time.perf_counter()
    result = task()
    return time.perf_counter() - start, result


def show(what: str, text: str) -> None:
    print(f"{what:<58} {text}")


def against_plain_python(ranks: int) -> None:
    pattern = schedule(point("bcast", "binomial", ranks=ranks))
    fast, cost = timed(lambda: costs(family("loggp"), pattern, LOGGP, drawn=False))
    body = [1e-10 * max(size - 1, 0) for size in pattern.bytes.tolist()]
    reference = (lambda row: 1.5e-6, lambda row: 1.5e-6, lambda row: 1e-5 + body[row], lambda row: 1e-6 + body[row])
    slow, finish = timed(lambda: slow_replay.finish_times(pattern, *reference, reference[-1], []))
    assert abs(max(finish) - cost[0]) < 1e-12
    show(f"binomial broadcast, {ranks} ranks: plain Python / commodel", f"{slow / fast:.0f} x")


def against_simulation(ranks: int) -> None:
    if find("smpirun") is None:
        show("simulation", "no SimGrid here")
        return
    build(ROOT, "smpi")
    small = {"sync": "window", "precision": 1.0, "min_samples": 1, "max_samples": 1, "seconds": 1, "warmup": 1}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("experiments", "platforms"):
            (place / "params" / name).mkdir(parents=True)
        nodes = f'radical="0-{ranks - 1}" speed="1Gf" bw="10GBps" lat="5us"'
        for path in (ROOT / "tests/workflow").glob("loggp-64.*"):
            text = path.read_text().replace("nodes: 64", f"nodes: {ranks}")
            text = text.replace('radical="0-63" speed="1Gf" bw="10GBps" lat="5us"', nodes)
            (place / "params/platforms" / path.name).write_text(text)
        axes = f"{{operation: bcast, algorithm: binomial, ranks: {ranks}, bytes: 8}}"
        text = f"platform: loggp-64\nfamilies: [loggp]\nmeasure: {small}\nmatrix: [axes: {axes}]\n"
        (place / "params/experiments/one.yaml").write_text(text.replace("'", ""))
        plan = make_plan("one", place)
        batch = next(batch for batch in plan.batches if batch.points)
        simulated, _ = timed(lambda: measure(plan, batch, place / "raw", lambda text: None))
    priced, _ = timed(lambda: costs(family("loggp"), schedule(batch.points[0]), LOGGP, drawn=False))
    show(f"binomial broadcast, {ranks} ranks: smpirun / commodel", f"{simulated / priced:.0f} x")


def growth() -> None:
    times = {}
    for power in range(14, 21, 2):
        spent, _ = timed(
            lambda power=power: costs(
                family("loggp"), schedule(point("bcast", "binomial", ranks=1 << power)), LOGGP, False
            )
        )
        times[power] = spent
    ratios = ", ".join(f"2^{power} / 2^{power - 2}: {times[power] / times[power - 2]:.1f}" for power in (16, 18, 20))
    show("growth of building and pricing with four times the ranks", ratios)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    show("broadcast over 2^20 ranks", f"{times[20]:.2f} s, {peak:.2f} GiB at most so far")


def many_points() -> None:
    algorithms = [("bcast", "binomial"), ("bcast", "linear"), ("gather", "linear"), ("gather", "binomial")]
    algorithms += [
        ("allreduce", "recursive-doubling"),
        ("allreduce", "ring"),
        ("allgather", "ring"),
        ("barrier", "dissemination"),
    ]
    shapes = product(algorithms, range(2, 65))
    points = [point(*way, ranks=ranks, bytes=size) for way, ranks in shapes for size in range(0, 1000 * 20, 1000)]
    spent, found = timed(lambda: predict(LOGGP, points))
    one = [
        timed(lambda p=p: costs(family("loggp"), schedule(p), LOGGP, False))[0] for p in points[:: len(points) // 200]
    ]
    show(
        f"{len(found)} points of up to 64 ranks",
        f"{spent:.1f} s, {len(points) * sum(one) / len(one) / spent:.1f} x faster than one by one",
    )


def planning() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("experiments", "platforms"):
            (place / "params" / name).mkdir(parents=True)
        (place / "params/platforms/big.yaml").write_text("launcher: slurm\nnodes: 1024\ncores: 1\n")
        axes = "{operation: bcast, algorithm: [linear, binomial, binomial-near, chain], "
        axes += "ranks: {from: 2, to: 251, step: 1},"
        text = f"platform: big\nfamilies: [loggp]\nmatrix: [axes: {axes} bytes: {{from: 1, to: 100, step: 1}}}}]\n"
        (place / "params/experiments/many.yaml").write_text(text)
        spent, plan = timed(lambda: make_plan("many", place))
        show(f"planning {len(plan.points)} points", f"{spent:.1f} s")


if __name__ == "__main__":
    against_plain_python(1 << 16)
    against_simulation(512)
    growth()
    many_points()
    planning()
