"""Regret of the advice while a campaign measures, by the order of its batches: `make bench-order
TABLE=T.csv`.

The table has measured collectives, as for `benchmarks.tune`. Its workloads are put into batches as
a plan does: by ranks, then in the order of the matrix, each with all alternatives of a workload.
After a quarter, half and three quarters of the measuring time, the chosen alternatives are those of
the belief of `commodel.advice.sequential_sampling`. Their true regret is averaged over all
workloads.

Orders: `plan` begins with few ranks, `largest first` is the reverse, `both ends` alternates. `by
regret` begins with the batches whose workloads have the highest expected regret a second, chosen
again after each quarter. `random` is the mean of several orders. The run takes a minute.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measuring import print_figure
from benchmarks.tune import FAMILY, RATES, collect_measured, estimate_costs, read_arms
from commodel.advice.sequential_sampling import Arms, Belief, compute_belief
from commodel.models.parameter_sets import make_given_set
from commodel.records import PlacedWorkload

SHARES = (0.25, 0.5, 0.75)  # of the measuring time
PARTS = (8, 16)  # batches have at most this part of the time
RANDOM_ORDERS = 10
OPERATIONS = ("bcast", "reduce", "allreduce", "allgather", "alltoall")
SIZES = (8, 1024, 16384, 131072, 1048576)
RANKS = (4, 16, 32, 64)


@dataclass(frozen=True)
class Campaign:
    """A table of measured times as a campaign: the workloads of each batch, in the order of the
    plan, and the seconds that a batch takes."""

    arms: Arms
    seconds: np.ndarray
    batches: Sequence[Sequence[int]]
    costs: np.ndarray

    def measure(self, done: Sequence[int]) -> Belief:
        """Return the belief after some batches."""
        workloads = [workload for batch in done for workload in self.batches[batch]]
        points = np.flatnonzero(np.isin(self.arms.workload, workloads)).tolist()
        return compute_belief(self.arms, collect_measured(points, self.seconds))

    def find_regret(self, belief: Belief) -> float:
        """Return the mean true regret of the choices."""
        fastest = np.minimum.reduceat(self.seconds, self.arms.first)
        return float((self.seconds[belief.choices()] / fastest - 1).mean())

    def take(self, order: Sequence[int], share: float) -> list[int]:
        """Return the first batches of an order, until a share of the time is over."""
        done: list[int] = []
        while self.costs[done].sum() < share * self.costs.sum():
            done.append(order[len(done)])
        return done


def make_campaign(path: Path, parts: int) -> Campaign:
    """Read a table. Its batches have the same number of ranks, and at most a part of the time."""
    parameters = make_given_set(FAMILY, [f"{name}={value}" for name, value in RATES.items()])
    arms, seconds = read_arms(path, parameters, is_wanted)
    arm_costs = estimate_costs(seconds)
    costs = np.bincount(arms.workload, arm_costs)
    workloads = arms.workloads

    def get_place(number: int) -> tuple[int, int, int]:
        workload = workloads[number]
        return workload.ranks, OPERATIONS.index(workload.operation), workload.bytes

    batches: list[list[int]] = []
    for number in sorted(range(len(workloads)), key=get_place):
        batch = batches[-1] if batches else []
        is_full = costs[[*batch, number]].sum() > costs.sum() / parts
        if not batch or is_full or workloads[batch[0]].ranks != workloads[number].ranks:
            batches.append([])
        batches[-1].append(number)
    totals = np.array([costs[batch].sum() for batch in batches])
    return Campaign(arms, seconds, batches, totals)


def is_wanted(workload: PlacedWorkload) -> bool:
    """Return whether a workload of the table is one of the campaign."""
    is_point = workload.bytes in SIZES and workload.ranks in RANKS
    return is_point and workload.operation in OPERATIONS


def alternate(count: int) -> list[int]:
    """Return the numbers from both ends inwards."""
    return [number // 2 if number % 2 == 0 else count - 1 - number // 2 for number in range(count)]


def measure_by_regret(campaign: Campaign) -> list[float]:
    """Return the true regret after each share, if the next batches are always those of the highest
    expected regret a second."""
    done: list[int] = []
    regrets = []
    for share in SHARES:
        expected = campaign.measure(done).regret()
        worth = [expected[batch].sum() for batch in campaign.batches] / campaign.costs
        remaining = [batch for batch in range(len(worth)) if batch not in done]
        remaining.sort(key=lambda batch: -worth[batch])
        done = campaign.take([*done, *remaining], share)
        regrets.append(campaign.find_regret(campaign.measure(done)))
    return regrets


def measure_in_order(campaign: Campaign, order: Sequence[int]) -> list[float]:
    """Return the true regret after each share of an order."""
    beliefs = [campaign.measure(campaign.take(order, share)) for share in SHARES]
    return [campaign.find_regret(belief) for belief in beliefs]


def compare_orders(campaign: Campaign) -> dict[str, list[float]]:
    """Return the true regret after each share, by the name of the order."""
    count = len(campaign.batches)
    generator = np.random.default_rng(0)
    random = [generator.permutation(count).tolist() for _ in range(RANDOM_ORDERS)]
    mean = np.mean([measure_in_order(campaign, order) for order in random], axis=0)
    return {
        "plan": measure_in_order(campaign, range(count)),
        "by regret": measure_by_regret(campaign),
        "both ends": measure_in_order(campaign, alternate(count)),
        "largest first": measure_in_order(campaign, range(count)[::-1]),
        "random": mean.tolist(),
    }


def main() -> None:
    for parts in PARTS:
        campaign = make_campaign(Path(sys.argv[1]), parts)
        print(f"\n{len(campaign.batches)} batches, {len(campaign.seconds)} points:")
        for name, regrets in compare_orders(campaign).items():
            texts = [f"{100 * regret:.1f} %" for regret in regrets]
            print_figure(name, ", ".join(texts))


if __name__ == "__main__":
    main()
