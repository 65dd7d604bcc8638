"""What ends are busy with a message for beyond what they are with a short one, by its size: where a message leaves at
once, its bytes are copied."""

import numpy as np

from commodel.models import Array
from commodel.models.fitting.regression import sampled
from commodel.models.fitting.roundtrips import RoundTrips

GROWTH_MATTERS = 0.02  # of a one-way time


def growing(trips: RoundTrips, longest: float) -> dict[str, Array]:
    """Tables of `O_s` and `O_r` up to the longest message that leaves at once; none where overheads do not grow."""
    kept = trips.size <= longest
    more = {
        name: np.maximum(own[:, kept] - short[:, None], 0)
        for name, own, short in zip(("O_s", "O_r"), (trips.o_s, trips.o_r), trips.short_overheads, strict=True)
    }
    if not (sum(more.values())[0] > GROWTH_MATTERS * trips.one_way[0, kept]).any():
        return {}
    return {
        text: draws for name in more for text, draws in sampled(name, trips.size[kept].astype(int), more[name]).items()
    }
