"""How many points have to be measured until the choice of algorithms costs at most 5 % more than the best: replayed on
a table of measured collectives (as `commodel import` writes it), where every way to do a workload was measured.

`by worth` takes the point whose outcome most changes the choice, with predictions by LogGP with round numbers (RATES:
what everybody knows of such a network; nothing of the table is fitted). `for its time` divides that by the seconds the
point is believed to take, as `commodel tune` does: less is left in a tenth of the time, after more points. `no
predictions` is the same without predictions, `in random order` the same belief with points drawn by lot, `forest by
variance` a forest for each operation, whose next point is the one that its trees differ most about (as ACCLAiM; `whole
workloads`: all ways to do that point's workload are measured, as it does). Regret is of all workloads with two and more
ways, the library's own choice among them: what was chosen over what is fastest, as measured. Last comes whether the
regret that a search expects is the one that it really has, after some points by lot and then as `commodel tune` chooses
them, several at once. Arguments: the table, then NAME=VALUE in place of RATES. Minutes."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from commodel.advice.sequential_sampling import Arm, Arms, Measured, compute_belief, estimate_seconds
from commodel.api.library_rules import MIN_SAMPLES, POINT_SECONDS
from commodel.cli._output import format_table
from commodel.errors import UserError
from commodel.files.tables import read_rows
from commodel.models.parameter_sets import make_given_set
from commodel.parameters import ParameterSet
from commodel.patterns.algorithms import find_algorithms
from commodel.patterns.arguments import SEGMENT_OR_DEFAULT
from commodel.patterns.points import Setting, make_point
from commodel.predictions.predictions import predict
from commodel.records import LIBRARY, PlacedWorkload, Point

FAMILY = "loggp"
RATES = {"L": "1.5us", "o_s": "0.3us", "o_r": "0.3us", "g": "0.2us", "G": "0.04ns", "gamma": "0.1ns"}
WITH_ARGUMENT = (
    "knomial:4",
    "binary:2GiB",
    "split-binary:2GiB",
    "in-order:2GiB",
    "linear-sync:2GiB",
)  # as PICO has them
GOAL = 0.05
TENTH = 0.1  # of the time of all points
SHOWN = (0, 5, 10, 20, 40, 60, 80, 120, 160, 240, 320)
SEEDS, TREES = 3, 20
LOT, AT_ONCE, STARTS = 12, 16, 6  # points by lot at first, points of a round after that, such searches
LIMITS = (0.3, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02)  # of the expected regret, to compare it with the real one
STEP = 5  # points by lot between two looks at what would be chosen
MAX_RANKS = 64  # what has more takes minutes to predict
Seconds = np.ndarray
Run = Iterator[
    tuple[Collection[int], np.ndarray]
]  # points measured so far, and of each workload the arm that is chosen


def read(path: Path, parameters: ParameterSet) -> tuple[Arms, Seconds]:
    """The workloads of a table with several ways, each way with its prediction, and the medians of what they took."""
    times: dict[tuple, list[float]] = {}
    for _, row in read_rows(path, ("operation", "algorithm", "ranks", "bytes", "seconds")):
        workload = PlacedWorkload(row["operation"], int(row["ranks"]), row.get("layout") or "block", int(row["bytes"]))
        if workload.ranks <= MAX_RANKS:
            times.setdefault((workload, row["algorithm"]), []).append(float(row["seconds"]))
    ways = [workload for workload, _ in times]
    contested = [workload for workload in dict.fromkeys(ways) if ways.count(workload) > 1]
    known = predictions(parameters, contested)
    arms = Arms.of(
        Arm(workload, name, known.get((workload, name), 0.0)) for workload, name in times if workload in contested
    )
    return arms, np.array([median(times[arm.workload, arm.algorithm]) for arm in arms.arms])


def predictions(
    parameters: ParameterSet, workloads: Iterable[PlacedWorkload]
) -> dict[tuple[PlacedWorkload, str], float]:
    """Of every algorithm there is for each workload; the library takes what is best, as far as it knows."""
    points: dict[Point, tuple[PlacedWorkload, str]] = {}
    for workload in workloads:
        for name in [
            *(
                name
                for name, entry in find_algorithms(workload.operation).items()
                if entry.argument != SEGMENT_OR_DEFAULT
            ),
            *WITH_ARGUMENT,
        ]:
            with suppress(UserError):
                points[make_point(Setting.unlimited(), workload._asdict() | {"algorithm": name})] = workload, name
    predicted = {points[row.point]: row.seconds for row in predict(parameters, points, strict=False, draws=0)}
    predicted = {way: seconds for way, seconds in predicted.items() if seconds > 0}
    for workload in workloads:
        predicted[workload, LIBRARY] = min(
            (seconds for (other, _), seconds in predicted.items() if other == workload), default=0.0
        )
    return predicted


def without_predictions(arms: Arms) -> Arms:
    return Arms([Arm(arm.workload, arm.algorithm) for arm in arms.arms])


def unmeasured(arms: Arms, measured: Collection[int]) -> list[int]:
    return [arm for arm in range(len(arms.arms)) if arm not in measured]


def collect_measured(points: Iterable[int], seconds: Seconds) -> list[Measured]:
    """As the table has them: it knows no starts."""
    return [Measured(int(arm), float(seconds[arm])) for arm in points]


def by_worth(arms: Arms, seconds: Seconds, random: np.random.Generator, timed: bool = False) -> Run:
    points: list[int] = []
    while True:
        belief = compute_belief(arms, collect_measured(points, seconds))
        yield points, belief.choices()
        left = unmeasured(arms, points)
        if not left:
            return
        worth = belief.worth() / (costs(np.exp(belief.mean)) if timed else 1.0)
        points.append(max(left, key=lambda arm: worth[arm]))


def in_random_order(arms: Arms, seconds: Seconds, random: np.random.Generator) -> Run:
    points = [int(arm) for arm in random.permutation(len(seconds))]
    for count in range(0, len(points) + 1, STEP):
        yield points[:count], compute_belief(arms, collect_measured(points[:count], seconds)).choices()


def by_variance(arms: Arms, seconds: Seconds, random: np.random.Generator, whole: bool = False) -> Run:
    operations = np.array([arm.workload.operation for arm in arms.arms])
    names = sorted({(arm.workload.operation, arm.algorithm) for arm in arms.arms})
    layouts = sorted({arm.workload.layout for arm in arms.arms})
    features = np.array(
        [
            [np.log2(arm.workload.ranks), np.log2(max(arm.workload.bytes, 1)), layouts.index(arm.workload.layout)]
            + [(arm.workload.operation, arm.algorithm) == name for name in names]
            for arm in arms.arms
        ],
        dtype=float,
    )
    kinds = np.unique(operations)
    mean, spread, measured = np.zeros(len(seconds)), np.full(len(seconds), np.inf), {}
    yield (), arms.first
    first = {kind: int(random.choice(np.flatnonzero(operations == kind))) for kind in kinds}
    while left := unmeasured(arms, measured):
        if new := [kind for kind in kinds if kind in first]:
            arm = first.pop(new[0])
        else:
            arm = max(left, key=lambda way: spread[way])
        group = [arm] if not whole else [way for way in left if arms.workload[way] == arms.workload[arm]]
        measured |= {way: float(seconds[way]) for way in group}
        ours = np.flatnonzero(operations == operations[arm])
        seen = [way for way in ours if way in measured]
        answers = forest(features[seen], np.log(seconds[seen]), features[ours], TREES, random)
        mean[ours], spread[ours] = np.mean(answers, axis=0), np.var(answers, axis=0)
        known = mean.copy()
        known[list(measured)] = np.log(seconds[list(measured)])
        yield list(measured), arms.choose_fastest(known)


Tree = tuple  # (value,) or (feature, threshold, below, above)


def grow_tree(features: np.ndarray, targets: np.ndarray) -> Tree:
    if len(targets) < 2 or np.ptp(targets) == 0:
        return (targets.mean(),)
    order = np.argsort(features, axis=0, kind="stable")
    columns = np.arange(features.shape[1])
    values, sums = features[order, columns], np.cumsum(targets[order], axis=0)
    counts = np.arange(1, len(targets))[:, None]
    gain = sums[:-1] ** 2 / counts + (sums[-1] - sums[:-1]) ** 2 / (len(targets) - counts)
    gain[values[1:] == values[:-1]] = -np.inf
    row, feature = np.unravel_index(np.argmax(gain), gain.shape)
    if not np.isfinite(gain[row, feature]):
        return (targets.mean(),)
    threshold = (values[row, feature] + values[row + 1, feature]) / 2
    below = features[:, feature] <= threshold
    return feature, threshold, grow_tree(features[below], targets[below]), grow_tree(features[~below], targets[~below])


def predict_by_tree(tree: Tree, features: np.ndarray) -> np.ndarray:
    if len(tree) == 1:
        return np.full(len(features), tree[0])
    feature, threshold, below, above = tree
    left = features[:, feature] <= threshold
    values = np.empty(len(features))
    values[left], values[~left] = predict_by_tree(below, features[left]), predict_by_tree(above, features[~left])
    return values


def forest(
    seen: np.ndarray, targets: np.ndarray, requested: np.ndarray, trees: int, random: np.random.Generator
) -> Sequence[np.ndarray]:
    """What each tree says of what is asked."""
    samples = random.integers(len(targets), size=(trees, len(targets)))
    return [predict_by_tree(grow_tree(seen[sample], targets[sample]), requested) for sample in samples]


def regrets(run: Run, arms: Arms, seconds: Seconds) -> tuple[np.ndarray, float]:
    """The mean regret by number of points, each filled up to the next; and when a tenth of the time of all points is
    over."""
    fastest, spent = seconds[arms.choose_fastest(seconds)], costs(seconds)
    counts, times, values = [], [], []
    for points, pick in run:
        counts.append(len(points))
        times.append(spent[list(points)].sum())
        values.append(float(np.mean(seconds[pick] / fastest)) - 1)
    curve = np.array(values)[np.searchsorted(counts, np.arange(len(seconds) + 1), side="right") - 1]
    return curve, values[int(np.searchsorted(times, TENTH * spent.sum(), side="right")) - 1]


def costs(seconds: Seconds) -> np.ndarray:
    """What `commodel tune` takes for each point, but for starts."""
    return estimate_seconds(seconds, POINT_SECONDS, MIN_SAMPLES)


def compare_regrets(arms: Arms, seconds: Seconds, random: np.random.Generator) -> Iterator[tuple[float, float]]:
    """The regret that is expected in each round of a search, and the real one."""
    measured = collect_measured(random.choice(len(seconds), LOT, replace=False), seconds)
    fastest = seconds[arms.choose_fastest(seconds)]
    while True:
        belief = compute_belief(arms, measured)
        expected = float(np.mean(belief.regret()))
        yield expected, float(np.mean(seconds[belief.choices()] / fastest)) - 1
        points = belief.next_points(AT_ONCE, without=belief.measured_arms)
        if not points or expected < LIMITS[-1]:
            return
        measured += collect_measured(points, seconds)


def tabulate_regrets(name: str, arms: Arms, seconds: Seconds) -> dict:
    """Expected and real regret, on average over the rounds in which the expected one was between two limits."""
    rounds = np.array(
        [row for seed in range(STARTS) for row in compare_regrets(arms, seconds, np.random.default_rng(seed))]
    )
    cells = {"expected, real": name}
    for high, low in pairwise(LIMITS):
        inside = rounds[(rounds[:, 0] < high) & (rounds[:, 0] >= low)]
        means = " ".join(f"{100 * mean:.1f}" for mean in inside.mean(axis=0)) if len(inside) else "-"
        cells[f"{100 * low:.0f} to {100 * high:.0f} %"] = means
    return cells


def count_needed_points(regret: np.ndarray) -> int:
    """Points after which the regret stays within the goal."""
    above = np.flatnonzero(regret > GOAL)
    return int(above[-1]) + 1 if len(above) else 0


def main(path: Path, rates: dict[str, str]) -> None:
    arms, seconds = read(path, make_given_set(FAMILY, [f"{name}={value}" for name, value in rates.items()]))
    ways: dict[str, tuple[Callable, Arms, int]] = {
        "by worth": (by_worth, arms, 1),
        "by worth for its time": (lambda *set_given: by_worth(*set_given, timed=True), arms, 1),
        "by worth, no predictions": (by_worth, without_predictions(arms), 1),
        "in random order": (in_random_order, arms, SEEDS),
        "in random order, no predictions": (in_random_order, without_predictions(arms), SEEDS),
        "forest by variance": (by_variance, arms, SEEDS),
        "forest by variance, whole workloads": (lambda *set_given: by_variance(*set_given, whole=True), arms, SEEDS),
    }
    full = len(seconds)
    fastest = seconds[arms.choose_fastest(seconds)]
    library_ways = [way for way, arm in enumerate(arms.arms) if arm.algorithm == LIBRARY]
    left_alone = np.mean(seconds[library_ways] / fastest[arms.workload[library_ways]]) - 1
    given = " ".join(f"{name}={value}" for name, value in rates.items())
    print(f"{full} points of {len(arms.workloads)} workloads; predictions: {given}")
    print(f"regret of the library's own choice: {100 * left_alone:.1f} %\n", flush=True)
    rows = []
    for name, (strategy, known, seeds) in ways.items():
        runs = [regrets(strategy(known, seconds, np.random.default_rng(s)), arms, seconds) for s in range(seeds)]
        curves = [curve for curve, _ in runs]
        points = float(np.mean([count_needed_points(curve) for curve in curves]))
        curve = np.mean(curves, axis=0)
        shown = {f"{count}": f"{100 * curve[count]:.1f}" for count in SHOWN if count <= full}
        rows.append(
            {"next point": name, f"to {100 * GOAL:.0f} %": round(points), "of all": f"{points / full:.0%}"}
            | {"in a tenth of the time": f"{100 * np.mean([tenth for _, tenth in runs]):.1f}"}
            | shown
        )
        print(format_table(rows[-1:]), flush=True)
    print("\nRegret in % in a tenth of the time and after so many points, and after how many it stays within the goal")
    print(format_table(rows))
    print(f"\nRegret in %, expected and real, over {STARTS} searches from {LOT} points by lot, {AT_ONCE} at once")
    known = {"prices": arms, "no predictions": without_predictions(arms)}
    print(format_table([tabulate_regrets(name, ways, seconds) for name, ways in known.items()]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), RATES | dict(text.split("=", 1) for text in sys.argv[2:]))
