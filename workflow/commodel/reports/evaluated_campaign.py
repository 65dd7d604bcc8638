"""A campaign with its evaluation (`EvaluatedCampaign`): the data that several sections of a report
share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from commodel.compare.baselines import summarize_baselines
from commodel.compare.combined_prediction import choose_alternatives
from commodel.compare.model_ranking import find_best_model, rank_models
from commodel.compare.network import MeasuredNetwork
from commodel.compare.recommended import recommend_points, split_recommended, summarize_recommended
from commodel.parameters import ParameterSet
from commodel.reports.charts import chart_predictions, chart_times
from commodel.reports.comparison_frame import select_held_out
from commodel.reports.elements import Chart, Remark, to_plain_value

ALTERNATIVE_KEYS = ["platform", "workload", "alternative", "layout"]


@dataclass(frozen=True, eq=False)
class EvaluatedCampaign:
    """Data of all platforms or, after `only`, of one."""

    frame: pd.DataFrame  # the comparison, from `prepare_comparison`
    held_out: pd.DataFrame  # its predictions at held-out points
    recommended_rows: pd.DataFrame  # recommended predictions, in the columns of the comparison
    # errors of the recommended prediction, beside those of the best model
    recommended: pd.DataFrame
    baselines: pd.DataFrame  # errors of simple rules at the same points
    choices: pd.DataFrame  # alternatives chosen by the recommended prediction
    scatters: Mapping[str, Chart] = field(default_factory=dict)  # by platform
    times: Mapping[str, Sequence[Chart]] = field(default_factory=dict)
    sets: Sequence[ParameterSet] = ()
    networks: Sequence[MeasuredNetwork] = ()
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by batch
    simulated: set[str] = field(default_factory=set)  # platforms
    anomalies: Sequence[Remark] = ()
    settings: Sequence[Remark] = ()  # on allocations that differ
    platform: str = ""  # empty: all

    @cached_property
    def best(self) -> pd.Series | None:
        """The best model, with its errors at held-out points."""
        return find_best_model(self.held_out)

    @cached_property
    def mean_errors(self) -> dict[str, float]:
        """The mean μ of the models that predict most of the points, the lowest first."""
        rows = rank_models(self.held_out)
        return dict(zip(rows["model"], rows["mu_mean"], strict=True))

    @property
    def held_out_with_recommended(self) -> pd.DataFrame:
        """The predictions at held-out points, those of the recommended prediction included."""
        measured = self.recommended_rows[self.recommended_rows["measured"].notna()]
        return pd.concat([self.held_out, measured[list(self.held_out)]], ignore_index=True)

    def only(self, platform: str) -> EvaluatedCampaign:
        """Return the part of one platform."""

        def select_rows(frame: pd.DataFrame) -> pd.DataFrame:
            return frame[frame["platform"] == platform]

        def select(items: Iterable[Any]) -> list[Any]:
            return [item for item in items if to_plain_value(item.platform) == platform]

        batches = {
            name: batch
            for name, batch in self.provenance.items()
            if to_plain_value(batch.get("platform")) == platform
        }
        return replace(
            self,
            frame=select_rows(self.frame),
            held_out=select_rows(self.held_out),
            recommended_rows=select_rows(self.recommended_rows),
            recommended=select_rows(self.recommended),
            baselines=select_rows(self.baselines),
            choices=select_rows(self.choices),
            sets=select(self.sets),
            networks=select(self.networks),
            anomalies=select(self.anomalies),
            settings=select(self.settings),
            provenance=batches,
            platform=platform,
        )


def evaluate_campaign(comparison: pd.DataFrame, **properties) -> EvaluatedCampaign:
    """Return the campaign of a prepared comparison. If it has no recommended predictions, they are
    made. The alternatives chosen have the report's names of workload and alternative."""
    frame, recommended_rows = (
        rows.reset_index(drop=True) for rows in split_recommended(comparison)
    )
    if recommended_rows.empty:
        recommended_rows = recommend_points(frame)[list(frame)]
    held_out = select_held_out(frame)
    rows = recommended_rows[recommended_rows["measured"].notna()]
    recommended = summarize_recommended(rows, frame)
    baselines = summarize_baselines(rows, frame)
    simulated = frame.loc[frame["simulated"], "platform"].unique()
    labels = frame[[*ALTERNATIVE_KEYS, "alternative_label", "size", "bytes"]].drop_duplicates(
        ALTERNATIVE_KEYS
    )
    return EvaluatedCampaign(
        frame=frame,
        held_out=held_out,
        recommended_rows=recommended_rows,
        recommended=recommended.assign(simulated=recommended["platform"].isin(simulated)),
        baselines=baselines.assign(simulated=baselines["platform"].isin(simulated)),
        choices=choose_alternatives(frame, rows).merge(labels, "left", on=ALTERNATIVE_KEYS),
        scatters=chart_predictions(held_out, rows[list(held_out)]),
        times=chart_times(frame),
        **properties,
    )
