"""Plays a schedule on paper step by step where steps depend on more than the clocks of ranks, as on what is still on a
line: rounds that repeat are gone through until each adds the same."""

from collections.abc import Callable

import numpy as np

from commodel.models import Array
from commodel.models.pricing.replay import Costs, begun, finish_times, walked
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule

SAME = 1e-9  # of what a round adds: that it differs by less is rounding
STEADY = 3  # rounds that add the same, one after the other


def stepwise(
    schedule: Schedule, costs: Callable[[Schedule], Costs], work_seconds: Callable[[Schedule], Array]
) -> Array:
    """When each rank is done (last axis: ranks)."""
    if not isinstance(schedule, Long):
        return finish_times(schedule, costs(schedule), work_seconds(schedule))
    state = begun(schedule.ranks)
    for part in schedule.parts:
        if not isinstance(part, Rounds):
            state = walked(part, costs(part), work_seconds(part), state)
            continue
        steady, added, number = 0, None, 0
        while number < part.count:
            turn = part.round(number, schedule.node)
            after = walked(turn, costs(turn), work_seconds(turn), state)
            before, added = added, after[0] - state[0]
            alike = before is not None and part.repeats and part.even and part.turn == 1
            steady = steady + 1 if alike and np.allclose(before, added, rtol=SAME, atol=0) else 0
            state, number = after, number + 1
            if steady >= STEADY:
                state = tuple(clock + (part.count - number) * added for clock in state)
                break
    return state[0]
