"""A campaign over the eight hosts: every family's errors, and gathers with the window of the cluster model beside plain
ones.

python -m tests.lab.campaign FOLDER [EXPERIMENT]    an empty folder; its project/ keeps results and reports
"""

import csv
import sys
from pathlib import Path

import pandas as pd

from tests.lab.network_lab import HOSTS, network

EXPERIMENT = "netns"  # or another one of params/experiments


def main(folder: Path, experiment: str = EXPERIMENT) -> None:
    with network(folder) as lab:
        print(lab.commodel("run", experiment))
        print(
            f"the switch dropped {sum(map(lab.drops, HOSTS))} packets; TCP gave up waiting for an answer "
            f"{sum(map(lab.timeouts, HOSTS))} times\n"
        )
        results = lab.project / "results" / experiment
        print(errors(pd.read_csv(results / "comparison.csv", keep_default_na=False)))
        fitted = results / "fitted" / "netns-8" / "cluster.yaml"
        if not fitted.exists():
            return
        windows = lab.commodel(
            "advise",
            "--window",
            "--params",
            fitted,
            "--ranks",
            "2,4,6,8",
            "--bytes",
            "1KiB:1MiB:*4",
            "--format",
            "csv",
        )
        print(losses(pd.read_csv(results / "comparison.csv", keep_default_na=False)))
        print(gathers(results, list(csv.DictReader(windows.splitlines()))))


def errors(comparison: pd.DataFrame) -> str:
    """The mean of μ by family, operation and algorithm."""
    held_out = comparison[comparison["mu"] != ""].astype({"mu": float})
    table = held_out.pivot_table(index=["operation", "alternative"], columns="family", values="mu", aggfunc="mean")
    return table.round(2).to_string() + "\n"


def losses(comparison: pd.DataFrame) -> str:
    """How well the cluster model predicts gathers that may lose packets, and whether they or windows are faster.

    Medians are tied if their intervals overlap or they differ by less than 5 %.
    """
    rows = comparison[(comparison["family"] == "cluster") & (comparison["operation"] == "gather")]
    rows = rows[(rows["mu"] != "") & (rows["bytes"].astype(float) >= 4096)]
    rows = rows.astype(
        {"mu": float, "measured": float, "measured_low": float, "measured_high": float, "predicted": float}
    )
    tables = {name: part.set_index(["ranks", "bytes"]) for name, part in rows.groupby("alternative")}
    right = []
    for name, windowed in tables.items():
        if "windowed" in name and "linear" in tables:
            both = windowed.join(tables["linear"].add_suffix("_linear"), how="inner")
            tied = (both["measured_low"] <= both["measured_high_linear"]) & (
                both["measured_low_linear"] <= both["measured_high"]
            )
            tied |= (both["measured"] / both["measured_linear"]).between(1 / 1.05, 1.05)
            faster = both["measured"] < both["measured_linear"]
            right += (tied | (faster == (both["predicted"] < both["predicted_linear"]))).tolist()
    means = ", ".join(f"{name} {part['mu'].mean():.2f}" for name, part in tables.items())
    share = f"{sum(right)} of {len(right)}"
    return f"gathers from 4 KiB: mean μ {rows['mu'].mean():.2f} ({means}); linear against a window right in {share}\n"


def gathers(results: Path, windows: list[dict]) -> str:
    """Medians of the gathers in ms, and which window the model would take."""
    summary = pd.read_csv(results / "summary.csv")
    points = summary[(summary["kind"] == "point") & (summary["name"] == "gather")]
    settings = points["settings"].str.extract(
        r"ranks=(?P<ranks>\d+) bytes=(?P<bytes>\d+) alternative=(?P<alternative>\S+)"
    )
    points = points.join(settings).astype({"ranks": int, "bytes": int})
    table = points.pivot_table(index=["ranks", "bytes"], columns="alternative", values="median") * 1e3
    table["by the model"] = pd.Series({(int(row["ranks"]), int(row["bytes"])): row["algorithm"] for row in windows})
    return table.round(2).to_string()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:])
