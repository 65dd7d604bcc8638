"""Distributions of latencies by message size (`tabulate_distributions`): histograms of half the
round trip, and their number of modes (`count_modes`).

On nodes of two sockets, latencies may have two modes. A single mean then lies between them and
describes neither.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from commodel.files.tables import DISTRIBUTIONS, list_columns

MIN_BINS, MAX_BINS = 8, 40  # bins
TAIL_PERCENTILES = (98, 99.5)  # the common bin of all outliers begins between these percentiles
# a sample further above the upper quartile, in interquartile ranges, is an outlier
OUTLIER_IQRS = 3.0
MIN_RELATIVE_SPREAD = 1e-3  # of the median; a smaller range of the samples is due to rounding
MIN_MODE_SHARE = 0.1  # of the samples, in each mode


def tabulate_distributions(observations: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each histogram bin of every pingpong case, in seconds of half the round
    trip.

    `tail` marks the bin of outliers. Samples of different settings are separate cases.
    """
    probes = observations[(observations["kind"] == "probe") & (observations["name"] == "pingpong")]
    if "where" in probes:
        # only those on the first nodes, not on chosen ones
        probes = probes[probes["where"].fillna("") == ""]
    columns = [
        name for name in list_columns(DISTRIBUTIONS) if name != "setting" or "setting" in probes
    ]
    case_columns = [name for name in ("id", "setting") if name in columns]
    rows = []
    for _, group in probes[probes["valid"]].groupby(case_columns, sort=False):
        first = group.iloc[0]
        head = {name: first[name] for name in (*case_columns, "platform", "simulated", "pair")}
        halves = group["seconds"].to_numpy() / 2
        rows += [
            {**head, "bytes": int(first["bytes"]), **entry} for entry in make_histogram(halves)
        ]
    return pd.DataFrame(rows, columns=columns)


def make_histogram(samples: np.ndarray) -> list[dict[str, Any]]:
    """Return the bins of a histogram: equal widths by Freedman and Diaconis, 8 to 40 bins, and a
    last bin for outliers.

    Outliers are samples above the 99.5th percentile, and those above the 98th that are more than
    three interquartile ranges above the upper quartile. Equal samples get one bin.
    """
    lower_quartile, upper_quartile = np.percentile(samples, [25, 75])
    earliest, latest = np.percentile(samples, TAIL_PERCENTILES, method="higher")
    iqr = upper_quartile - lower_quartile
    edge = max(earliest, min(latest, samples[samples <= upper_quartile + OUTLIER_IQRS * iqr].max()))
    body = samples[samples <= edge]
    outliers = samples[samples > edge]
    if np.ptp(body) <= MIN_RELATIVE_SPREAD * np.median(body):
        edges = np.array([body.min(), body.max()])
        counts = np.array([len(body)])
    else:
        width = 2 * iqr / np.cbrt(len(body))
        wanted = np.ptp(body) / width if width > 0 else MAX_BINS
        counts, edges = np.histogram(body, bins=int(np.clip(np.ceil(wanted), MIN_BINS, MAX_BINS)))
    ends = zip(edges[:-1], edges[1:], counts, strict=True)
    bins = [
        {"low": float(low), "high": float(high), "count": int(n), "tail": False}
        for low, high, n in ends
    ]
    if len(outliers):
        bins.append(
            {
                "low": float(edge),
                "high": float(outliers.max()),
                "count": len(outliers),
                "tail": True,
            }
        )
    return bins


def count_modes(counts: np.ndarray) -> int:
    """Return the number of modes of a histogram.

    Two peaks are two modes if the valley between them is below half of the lower peak, and deeper
    than counting noise explains (two standard deviations). Each mode has at least a tenth of the
    samples.
    """
    counts = np.asarray(counts, dtype=float)
    peaks = [
        index
        for index in range(len(counts))
        if counts[index] == counts[max(index - 1, 0) : index + 2].max()
    ]
    while len(peaks) > 1:
        between = [
            first + int(np.argmin(counts[first : second + 1])) for first, second in pairwise(peaks)
        ]
        lower = [min(counts[first], counts[second]) for first, second in pairwise(peaks)]
        depth = [
            min((top / 2 - counts[at]), (top - counts[at]) - 2 * np.sqrt(top + counts[at]))
            for top, at in zip(lower, between, strict=True)
        ]
        shallow = int(np.argmin(depth))
        shares = np.add.reduceat(counts, [0, *between]) / counts.sum()
        if depth[shallow] <= 0:
            peaks.remove(min(peaks[shallow : shallow + 2], key=lambda index: counts[index]))
        elif shares.min() < MIN_MODE_SHARE:
            peaks.pop(int(np.argmin(shares)))
        else:
            break
    return len(peaks)
