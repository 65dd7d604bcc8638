"""Synthetic summaries of the probe `nodepairs`, for networks with given levels."""

import numpy as np
import pandas as pd

from commodel.hierarchy import Hierarchy
from commodel.models.probes import Site, find_probe

TIMES = ((1.5e-6, 2.5e-5), (3e-6, 5e-5))  # of a small and a large message, by class


def summary(
    hierarchy: Hierarchy, nodes: int, slow: dict[int, float] | None = None, platform: str = "p"
) -> pd.DataFrame:
    """Return the summary of a network. `slow` has the factors of slow nodes: all times of their
    pairs are multiplied by them."""
    rows = []
    for case in find_probe("nodepairs").cases(platform, Site(nodes, 1), [1024]):
        pair = case.settings
        times = TIMES[int(hierarchy.distance(pair["one"], pair["two"])) - 1]
        seconds = times[pair["bytes"] > 8] * 2 * pair["trips"]
        seconds *= np.prod(
            [factor for node, factor in (slow or {}).items() if node in (pair["one"], pair["two"])]
        )
        settings = " ".join(f"{name}={value}" for name, value in pair.items())
        times = {
            "min": seconds,
            "median": seconds,
            "low": 0.99 * seconds,
            "high": 1.01 * seconds,
            "mean": seconds,
        }
        rows.append(
            {
                "kind": "probe",
                "platform": platform,
                "simulated": False,
                "name": "nodepairs",
                "id": case.id,
            }
            | {
                "settings": f"layout={case.layout} ranks={case.ranks} {settings}",
                **times,
                "p95": seconds,
            }
            | {
                "max": seconds,
                "skew": 0.0,
                "passes": 1,
                "samples": 10,
                "invalid": 0,
                "stop": "precision",
            }
            | {"batch": "b", "raw": ""}
        )
    return pd.DataFrame(rows)
