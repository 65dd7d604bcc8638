"""A campaign over the eight hosts: the error of each model, and linear gathers against gathers with
the window of the cluster model.

python -m tests.labs.campaign FOLDER [EXPERIMENT]    an empty folder; its project/ keeps results and reports
"""

import sys
from pathlib import Path

import pandas as pd

from commodel.advice.gather_windows import gather_bounds
from commodel.models.parameter_sets import read_set
from tests.labs.network_lab import HOSTS, network

EXPERIMENT = "netns"  # or another one of params/experiments


def main(folder: Path, experiment: str = EXPERIMENT) -> None:
    with network(folder) as lab:
        print(lab.commodel("run", experiment))
        print(
            f"the switch dropped {sum(map(lab.drops, HOSTS))} packets; "
            f"{sum(map(lab.timeouts, HOSTS))} TCP retransmission time-outs (RTO)\n"
        )
        results = lab.project / "results" / experiment
        print(summarize_errors(pd.read_csv(results / "comparison.csv", keep_default_na=False)))
        fitted = results / "fitted" / "netns-8" / "cluster.yaml"
        if not fitted.exists():
            return
        parameters = read_set(fitted)
        windows = [
            {"ranks": ranks, "bytes": size, **gather_bounds(parameters, ranks, size)}
            for ranks in (2, 4, 6, 8)
            for size in (4**power * 1024 for power in range(6))
        ]
        print(
            compare_gather_predictions(
                pd.read_csv(results / "comparison.csv", keep_default_na=False)
            )
        )
        print(tabulate_gathers(results, windows))


def summarize_errors(comparison: pd.DataFrame) -> str:
    """Return the mean of μ by model, operation and algorithm."""
    held_out = comparison[comparison["mu"] != ""].astype({"mu": float})
    table = held_out.pivot_table(
        index=["operation", "alternative"], columns="model", values="mu", aggfunc="mean"
    )
    return table.round(2).to_string() + "\n"


def compare_gather_predictions(comparison: pd.DataFrame) -> str:
    """Return the mean μ of the cluster model for gathers that may lose packets, and in how many
    workloads it predicts correctly whether linear or windowed gather is faster.

    Medians are tied if their intervals overlap or they differ by less than 5 %.
    """
    rows = comparison[(comparison["model"] == "cluster") & (comparison["operation"] == "gather")]
    rows = rows[(rows["mu"] != "") & (rows["bytes"].astype(float) >= 4096)]
    rows = rows.astype(
        {
            "mu": float,
            "measured": float,
            "measured_low": float,
            "measured_high": float,
            "seconds": float,
        }
    )
    tables = {
        name: part.set_index(["ranks", "bytes"]) for name, part in rows.groupby("alternative")
    }
    right = []
    for name, windowed in tables.items():
        if "windowed" in name and "linear" in tables:
            both = windowed.join(tables["linear"].add_suffix("_linear"), how="inner")
            tied = (both["measured_low"] <= both["measured_high_linear"]) & (
                both["measured_low_linear"] <= both["measured_high"]
            )
            tied |= (both["measured"] / both["measured_linear"]).between(1 / 1.05, 1.05)
            faster = both["measured"] < both["measured_linear"]
            right += (tied | (faster == (both["seconds"] < both["seconds_linear"]))).tolist()
    means = ", ".join(f"{name} {part['mu'].mean():.2f}" for name, part in tables.items())
    share = f"{sum(right)} of {len(right)}"
    return (
        f"gathers from 4 KiB: mean μ {rows['mu'].mean():.2f} ({means}); the faster of linear and windowed gather is "
        f"predicted correctly in {share} workloads\n"
    )


def tabulate_gathers(results: Path, windows: list[dict]) -> str:
    """Return the medians of the gathers in ms, and the alternative with the shortest predicted
    time."""
    summary = pd.read_csv(results / "summary.csv")
    points = summary[(summary["kind"] == "point") & (summary["name"] == "gather")]
    settings = points["settings"].str.extract(
        r"ranks=(?P<ranks>\d+) bytes=(?P<bytes>\d+) alternative=(?P<alternative>\S+)"
    )
    points = points.join(settings).astype({"ranks": int, "bytes": int})
    table = (
        points.pivot_table(index=["ranks", "bytes"], columns="alternative", values="median") * 1e3
    )
    table["recommended"] = pd.Series(
        {(int(row["ranks"]), int(row["bytes"])): row["algorithm"] for row in windows}
    )
    return table.round(2).to_string()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:])
