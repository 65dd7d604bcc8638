"""The score of the advice, from Python: `advise_score` returns its regret at the measured
points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commodel.api.recommendations import EvidenceSource
from commodel.api.result import Answer, describe_sources
from commodel.compare.combined_prediction import choose_alternatives, summarize_recommended_choices
from commodel.errors import UserError
from commodel.files.text_tables import format_answer, format_table

NOTE = (
    "MPI default / advised: how many times as long the MPI default takes as the advised "
    "alternative."
)


@dataclass(frozen=True, eq=False, repr=False)
class AdviceScore(Answer):
    """How good the advice is at measured points, each predicted without its workload: a row for
    each operation."""

    def text(self, verbose: bool = True) -> str:
        table = format_table([_make_shown_row(row) for row in self.rows])
        return format_answer(self.sentence, table, self.notes, verbose)


def advise_score(platform: str | None = None, *, experiment: str | None = None) -> AdviceScore:
    """Return the regret of the advice at the measured points of runs. Printed, the result is what
    `commodel advise score` prints.

    >>> advise_score("local", experiment="demo").frame  # doctest: +SKIP
    """
    return score_advice(EvidenceSource((), platform, experiment))


def score_advice(source: EvidenceSource) -> AdviceScore:
    """Return the regret of the advice at the measured points of the evidence."""
    evidence = source.read(None)
    if evidence.held_out.empty:
        raise UserError(
            "nothing to score: no comparison of measured points; give --experiment of a run"
        )
    figures = summarize_recommended_choices(choose_alternatives(evidence.held_out))
    if figures.empty:
        raise UserError(
            "nothing to score: wanted three workloads or more with two predicted and measured alternatives"
        )
    workloads = figures["workloads"].sum()
    right = (figures["right"] * figures["workloads"]).sum() / workloads
    regret = (figures["regret_mean"] * figures["workloads"]).sum() / workloads
    sentence = (
        f"The advice is the fastest measured alternative, or tied with it, in {100 * right:.0f} % of {workloads} "
        f"measured workloads; its mean regret is {100 * regret:.2g} %."
    )
    return AdviceScore(
        figures.to_dict("records"), sentence, [NOTE], describe_sources(evidence.sets)
    )


def _make_shown_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "platform": f"{row['platform']} (simulated)" if row["simulated"] else row["platform"],
        "operation": row["operation"],
        "workloads": row["workloads"],
        "fastest [%]": round(100 * row["right"]),
        "mean regret [%]": round(100 * row["regret_mean"], 2),
        "max regret [%]": round(100 * row["regret_max"], 2),
        "MPI default / advised": row["gain"],
        "MPI default / fastest": row["largest_gain"],
    }
