"""A forest of regression trees, as ACCLAiM uses one: the rival of `commodel.advice.sequential_sampling`. Each tree is
fitted to a bootstrap sample; every split takes the feature and threshold that leave the least variance, down to single
samples."""

from collections.abc import Sequence

import numpy as np

Tree = tuple  # (value,) or (feature, threshold, below, above)


def grown(features: np.ndarray, targets: np.ndarray) -> Tree:
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
    return feature, threshold, grown(features[below], targets[below]), grown(features[~below], targets[~below])


def told(tree: Tree, features: np.ndarray) -> np.ndarray:
    if len(tree) == 1:
        return np.full(len(features), tree[0])
    feature, threshold, below, above = tree
    left = features[:, feature] <= threshold
    values = np.empty(len(features))
    values[left], values[~left] = told(below, features[left]), told(above, features[~left])
    return values


def forest(
    seen: np.ndarray, targets: np.ndarray, asked: np.ndarray, trees: int, random: np.random.Generator
) -> Sequence[np.ndarray]:
    """What each tree says of what is asked."""
    samples = random.integers(len(targets), size=(trees, len(targets)))
    return [told(grown(seen[sample], targets[sample]), asked) for sample in samples]
