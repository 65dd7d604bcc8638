"""Whole blocks in place of fractions of them, with an exact sum."""

import numpy as np


def whole(quotas: np.ndarray, total: int, least: int = 0) -> np.ndarray:
    """Whole numbers of the sum `total`, none below `least`, by largest remainder: where no quota is below `least`, none
    is off by 1 or more. The quotas add up to `total`."""
    counts = np.maximum(np.floor(quotas), least).astype(np.int64)
    while left := total - int(counts.sum()):
        missing = quotas - counts
        if left > 0:
            counts[np.argsort(-missing, kind="stable")[:left]] += 1
        else:  # `least` has taken more than there was
            spare = np.flatnonzero(counts > least)
            counts[spare[np.argsort(missing[spare], kind="stable")[:-left]]] -= 1
    return counts
