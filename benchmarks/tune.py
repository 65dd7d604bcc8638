"""Number of points to measure until the chosen algorithms have a mean regret of at most 5 %: `make
bench-tune`.

A search is replayed on a table of measured collectives, as `commodel import` writes it, in which
every alternative of a workload was measured. Regret is averaged over all workloads with at least
two alternatives, one of them the library default. Arguments: the table, then NAME=VALUE to replace
values of RATES. The run takes minutes.

Strategies that select the next point:

- `by worth`: the point that is expected to change the choices most. Predictions are those of LogGP
  with round values (RATES), not fitted to the table.
- `by worth for its time`: the same per second of the point, as in `commodel tune`. It has less
  regret after a tenth of the time of all points, but needs more points.
- `no predictions`: the same without predictions.
- `in random order`: the same belief, with random points.
- `forest by variance`: a random forest for each operation. The next point has the largest variance
  over the trees, as in ACCLAiM. With `whole workloads`, all alternatives of that point's workload
  are measured, as there.

The last table compares the regret that a search expects with the true one, after random points and
then rounds of several points, as `commodel tune` selects them."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from commodel.advice.sequential_sampling import (
    Arm,
    Arms,
    MeasuredStart,
    compute_belief,
    estimate_seconds,
)
from commodel.errors import UserError
from commodel.files.tables import read_rows
from commodel.files.text_tables import format_table
from commodel.models.parameter_sets import make_given_set
from commodel.parameters import ParameterSet
from commodel.patterns.algorithms import find_algorithms
from commodel.patterns.arguments import SEGMENT_OR_DEFAULT
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.predictions import predict
from commodel.records import LIBRARY, PlacedWorkload, Point
from commodel_tune.tuning import MIN_SAMPLES, POINT_SECONDS

FAMILY = "loggp"
RATES = {
    "L": "1.5us",
    "o_s": "0.3us",
    "o_r": "0.3us",
    "g": "0.2us",
    "G": "0.04ns",
    "gamma": "0.1ns",
}
# names in tables of PICO
ALGORITHMS_WITH_ARGUMENT = (
    "knomial:4",
    "binary:2GiB",
    "split-binary:2GiB",
    "in-order:2GiB",
    "linear-sync:2GiB",
)
MAX_REGRET = 0.05
TIME_SHARE = 0.1  # of the time of all points
PRINTED_COUNTS = (0, 5, 10, 20, 40, 60, 80, 120, 160, 240, 320)
SEEDS, TREES = 3, 20
# random points first, then rounds; number of searches
FIRST_POINTS, POINTS_OF_ROUND, SEARCHES = 12, 16, 6
# bounds of classes of the expected regret
REGRET_CLASSES = (0.3, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02)
RANDOM_POINTS_PER_STEP = 5
MAX_RANKS = 64  # predictions for more ranks take minutes
Seconds = np.ndarray
# points measured so far, and the chosen arm of each workload
Run = Iterator[tuple[Collection[int], np.ndarray]]


def read_arms(
    path: Path,
    parameters: ParameterSet,
    is_wanted: Callable[[PlacedWorkload], bool] = lambda workload: workload.ranks <= MAX_RANKS,
) -> tuple[Arms, Seconds]:
    """Return the alternatives of the wanted workloads of a table with their predictions, and their
    median times."""
    times: dict[tuple, list[float]] = {}
    for _, row in read_rows(path, ("operation", "algorithm", "ranks", "bytes", "seconds")):
        workload = PlacedWorkload(
            row["operation"], int(row["ranks"]), row.get("layout") or "block", int(row["bytes"])
        )
        if is_wanted(workload):
            times.setdefault((workload, row["algorithm"]), []).append(float(row["seconds"]))
    all_workloads = [workload for workload, _ in times]
    workloads = [
        workload for workload in dict.fromkeys(all_workloads) if all_workloads.count(workload) > 1
    ]
    predicted = predict_alternatives(parameters, workloads)
    arms = Arms.of(
        Arm(workload, name, predicted.get((workload, name), 0.0))
        for workload, name in times
        if workload in workloads
    )
    return arms, np.array([median(times[arm.workload, arm.algorithm]) for arm in arms.arms])


def predict_alternatives(
    parameters: ParameterSet, workloads: Iterable[PlacedWorkload]
) -> dict[tuple[PlacedWorkload, str], float]:
    """Return the predicted seconds of every algorithm of each workload. The library default gets
    the smallest."""
    points: dict[Point, tuple[PlacedWorkload, str]] = {}
    for workload in workloads:
        for name in [
            *(
                name
                for name, entry in find_algorithms(workload.operation).items()
                if entry.argument != SEGMENT_OR_DEFAULT
            ),
            *ALGORITHMS_WITH_ARGUMENT,
        ]:
            with suppress(UserError):
                points[
                    make_point(
                        PlatformResources.unlimited(), workload._asdict() | {"algorithm": name}
                    )
                ] = (
                    workload,
                    name,
                )
    predicted = {
        points[row.point]: row.seconds for row in predict(parameters, points, strict=False, draws=0)
    }
    predicted = {alternative: seconds for alternative, seconds in predicted.items() if seconds > 0}
    for workload in workloads:
        predicted[workload, LIBRARY] = min(
            (seconds for (other, _), seconds in predicted.items() if other == workload), default=0.0
        )
    return predicted


def remove_predictions(arms: Arms) -> Arms:
    return Arms([Arm(arm.workload, arm.algorithm) for arm in arms.arms])


def list_unmeasured(arms: Arms, measured: Collection[int]) -> list[int]:
    return [arm for arm in range(len(arms.arms)) if arm not in measured]


def collect_measured(points: Iterable[int], seconds: Seconds) -> list[MeasuredStart]:
    """Return the measurements of these points; a table does not record starts."""
    return [MeasuredStart(int(arm), float(seconds[arm])) for arm in points]


def search_by_worth(
    arms: Arms, seconds: Seconds, random: np.random.Generator, per_second: bool = False
) -> Run:
    points: list[int] = []
    while True:
        belief = compute_belief(arms, collect_measured(points, seconds))
        yield points, belief.choices()
        remaining = list_unmeasured(arms, points)
        if not remaining:
            return
        worth = belief.worth() / (estimate_costs(np.exp(belief.mean)) if per_second else 1.0)
        points.append(max(remaining, key=lambda arm: worth[arm]))


def search_in_random_order(arms: Arms, seconds: Seconds, random: np.random.Generator) -> Run:
    points = [int(arm) for arm in random.permutation(len(seconds))]
    for count in range(0, len(points) + 1, RANDOM_POINTS_PER_STEP):
        yield (
            points[:count],
            compute_belief(arms, collect_measured(points[:count], seconds)).choices(),
        )


def search_by_variance(
    arms: Arms, seconds: Seconds, random: np.random.Generator, whole: bool = False
) -> Run:
    operations = np.array([arm.workload.operation for arm in arms.arms])
    names = sorted({(arm.workload.operation, arm.algorithm) for arm in arms.arms})
    layouts = sorted({arm.workload.layout for arm in arms.arms})
    features = np.array(
        [
            [
                np.log2(arm.workload.ranks),
                np.log2(max(arm.workload.bytes, 1)),
                layouts.index(arm.workload.layout),
            ]
            + [(arm.workload.operation, arm.algorithm) == name for name in names]
            for arm in arms.arms
        ],
        dtype=float,
    )
    kinds = np.unique(operations)
    mean, spread, measured = np.zeros(len(seconds)), np.full(len(seconds), np.inf), {}
    yield (), arms.first
    first = {kind: int(random.choice(np.flatnonzero(operations == kind))) for kind in kinds}
    while remaining := list_unmeasured(arms, measured):
        new = [kind for kind in kinds if kind in first]
        arm = first.pop(new[0]) if new else max(remaining, key=lambda candidate: spread[candidate])
        group = (
            [arm]
            if not whole
            else [other for other in remaining if arms.workload[other] == arms.workload[arm]]
        )
        measured |= {member: float(seconds[member]) for member in group}
        of_operation = np.flatnonzero(operations == operations[arm])
        fitted = [other for other in of_operation if other in measured]
        predictions = predict_by_forest(
            features[fitted], np.log(seconds[fitted]), features[of_operation], TREES, random
        )
        mean[of_operation], spread[of_operation] = (
            np.mean(predictions, axis=0),
            np.var(predictions, axis=0),
        )
        logs = mean.copy()
        logs[list(measured)] = np.log(seconds[list(measured)])
        yield list(measured), arms.choose_fastest(logs)


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
    return (
        feature,
        threshold,
        grow_tree(features[below], targets[below]),
        grow_tree(features[~below], targets[~below]),
    )


def predict_by_tree(tree: Tree, features: np.ndarray) -> np.ndarray:
    if len(tree) == 1:
        return np.full(len(features), tree[0])
    feature, threshold, below, above = tree
    is_below = features[:, feature] <= threshold
    values = np.empty(len(features))
    values[is_below] = predict_by_tree(below, features[is_below])
    values[~is_below] = predict_by_tree(above, features[~is_below])
    return values


def predict_by_forest(
    features: np.ndarray,
    targets: np.ndarray,
    wanted_features: np.ndarray,
    trees: int,
    random: np.random.Generator,
) -> Sequence[np.ndarray]:
    """Return the predictions of each tree, grown from a bootstrap sample."""
    samples = random.integers(len(targets), size=(trees, len(targets)))
    return [
        predict_by_tree(grow_tree(features[sample], targets[sample]), wanted_features)
        for sample in samples
    ]


def compute_regrets(run: Run, arms: Arms, seconds: Seconds) -> tuple[np.ndarray, float]:
    """Return the mean regret by number of measured points, and the one after a tenth of the time of
    all points."""
    fastest, spent = seconds[arms.choose_fastest(seconds)], estimate_costs(seconds)
    counts, times, values = [], [], []
    for points, chosen in run:
        counts.append(len(points))
        times.append(spent[list(points)].sum())
        values.append(float(np.mean(seconds[chosen] / fastest)) - 1)
    curve = np.array(values)[np.searchsorted(counts, np.arange(len(seconds) + 1), side="right") - 1]
    return curve, values[int(np.searchsorted(times, TIME_SHARE * spent.sum(), side="right")) - 1]


def estimate_costs(seconds: Seconds) -> np.ndarray:
    """Return the seconds that `commodel tune` needs for each point, without starts."""
    return estimate_seconds(seconds, POINT_SECONDS, MIN_SAMPLES)


def compare_regrets(
    arms: Arms, seconds: Seconds, random: np.random.Generator
) -> Iterator[tuple[float, float]]:
    """Yield the expected and the true regret in each round of a search."""
    measured = collect_measured(random.choice(len(seconds), FIRST_POINTS, replace=False), seconds)
    fastest = seconds[arms.choose_fastest(seconds)]
    while True:
        belief = compute_belief(arms, measured)
        expected = float(np.mean(belief.regret()))
        yield expected, float(np.mean(seconds[belief.choices()] / fastest)) - 1
        points = belief.next_points(POINTS_OF_ROUND, without=belief.measured_arms)
        if not points or expected < REGRET_CLASSES[-1]:
            return
        measured += collect_measured(points, seconds)


def tabulate_regrets(name: str, arms: Arms, seconds: Seconds) -> dict:
    """Return the mean expected and true regret by class of the expected regret, over all rounds of
    the searches."""
    rounds = np.array(
        [
            row
            for seed in range(SEARCHES)
            for row in compare_regrets(arms, seconds, np.random.default_rng(seed))
        ]
    )
    cells = {"expected, true": name}
    for high, low in pairwise(REGRET_CLASSES):
        of_class = rounds[(rounds[:, 0] < high) & (rounds[:, 0] >= low)]
        means = (
            " ".join(f"{100 * mean:.1f}" for mean in of_class.mean(axis=0))
            if len(of_class)
            else "-"
        )
        cells[f"{100 * low:.0f} to {100 * high:.0f} %"] = means
    return cells


def count_needed_points(regret: np.ndarray) -> int:
    """Return the number of points after which the regret stays below its limit."""
    above = np.flatnonzero(regret > MAX_REGRET)
    return int(above[-1]) + 1 if len(above) else 0


def main(path: Path, rates: dict[str, str]) -> None:
    arms, seconds = read_arms(
        path, make_given_set(FAMILY, [f"{name}={value}" for name, value in rates.items()])
    )
    strategies: dict[str, tuple[Callable, Arms, int]] = {
        "by worth": (search_by_worth, arms, 1),
        "by worth for its time": (
            lambda *arguments: search_by_worth(*arguments, per_second=True),
            arms,
            1,
        ),
        "by worth, no predictions": (search_by_worth, remove_predictions(arms), 1),
        "in random order": (search_in_random_order, arms, SEEDS),
        "in random order, no predictions": (
            search_in_random_order,
            remove_predictions(arms),
            SEEDS,
        ),
        "forest by variance": (search_by_variance, arms, SEEDS),
        "forest by variance, whole workloads": (
            lambda *arguments: search_by_variance(*arguments, whole=True),
            arms,
            SEEDS,
        ),
    }
    all_points = len(seconds)
    fastest = seconds[arms.choose_fastest(seconds)]
    defaults = [number for number, arm in enumerate(arms.arms) if arm.algorithm == LIBRARY]
    default_regret = np.mean(seconds[defaults] / fastest[arms.workload[defaults]]) - 1
    rates_text = " ".join(f"{name}={value}" for name, value in rates.items())
    print(f"{all_points} points of {len(arms.workloads)} workloads; predictions: {rates_text}")
    print(f"regret of the library default: {100 * default_regret:.1f} %\n", flush=True)
    rows = []
    for name, (strategy, arms_of_strategy, seeds) in strategies.items():
        runs = [
            compute_regrets(
                strategy(arms_of_strategy, seconds, np.random.default_rng(s)), arms, seconds
            )
            for s in range(seeds)
        ]
        curves = [curve for curve, _ in runs]
        points = float(np.mean([count_needed_points(curve) for curve in curves]))
        curve = np.mean(curves, axis=0)
        cells = {
            f"{count}": f"{100 * curve[count]:.1f}"
            for count in PRINTED_COUNTS
            if count <= all_points
        }
        rows.append(
            {
                "next point": name,
                f"to {100 * MAX_REGRET:.0f} %": round(points),
                "of all": f"{points / all_points:.0%}",
            }
            | {"in a tenth of the time": f"{100 * np.mean([tenth for _, tenth in runs]):.1f}"}
            | cells
        )
        print(format_table(rows[-1:]), flush=True)
    print(
        f"\nRegret in % after a tenth of the time and by number of points, and points up to {100 * MAX_REGRET:.0f} %"
    )
    print(format_table(rows))
    searches = f"{SEARCHES} searches: {FIRST_POINTS} random points, then {POINTS_OF_ROUND} a round"
    print(f"\nRegret in %, expected and true, of {searches}")
    variants = {"predictions": arms, "no predictions": remove_predictions(arms)}
    print(
        format_table(
            [tabulate_regrets(name, variant, seconds) for name, variant in variants.items()]
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), RATES | dict(text.split("=", 1) for text in sys.argv[2:]))
