"""The work of an experiment before anything runs, from Python (`plan_`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from commodel.api.result import Result
from commodel.files.text_tables import format_answer, format_table
from commodel.plan.plan_tables import (
    make_batch_rows,
    make_point_rows,
    summarize_plan,
    write_plan_workbook,
)
from commodel.plan.planning import make_plan, write_plan
from commodel.records import Batch, Plan
from commodel.results.campaign import Campaign, find_results
from commodel.results.progress import compare_with_earlier_durations


@dataclass(frozen=True, eq=False, repr=False)
class PlannedWork(Result):
    """The work of an experiment: a row for each point. Printed, it has a row for each batch."""

    plan: Plan
    remaining: Sequence[Batch]  # what a run still measures
    durations: Sequence[str]  # sentences on durations of earlier runs

    @cached_property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """A row for each point."""
        return make_point_rows(self.plan)

    @property
    def batches(self) -> Sequence[Mapping[str, Any]]:
        """A row for each batch, with its nodes and its duration."""
        return make_batch_rows(self.plan, self.remaining)

    @property
    def sentence(self) -> str:
        """The number of points and the time that a run takes."""
        return self._summarize()[0]

    @property
    def notes(self) -> Sequence[str]:
        """Limits that are exceeded, durations, and the models that need each probe."""
        return self._summarize(verbose=True)[1:]

    @property
    def provenance(self) -> Sequence[Mapping[str, str]]:
        """The experiment and its platforms."""
        return [
            {"experiment": self.plan.experiment, "platform": name} for name in self.plan.platforms
        ]

    def _summarize(self, verbose: bool = False) -> list[str]:
        return [
            f"{line}."
            for line in summarize_plan(self.plan, self.remaining, self.durations, verbose)
        ]

    def text(self, verbose: bool = True) -> str:
        """Return the sentence, a row for each batch, and the notes."""
        sentence, *notes = self._summarize(verbose)
        return format_answer(sentence, format_table(self.batches), notes, verbose)

    def to_excel(self, file: str | Path) -> None:
        """Write a workbook with the points and the batches."""
        write_plan_workbook(self.plan, Path(file))


def plan_(
    experiment: str | Path, *, only: str | None = None, survey: bool = True, write: bool = False
) -> PlannedWork:
    """Return the work of an experiment before anything runs. Printed, the result is what `commodel
    plan` prints.

    `only` is one of its platforms. Without `survey`, the survey that learns the levels of a network
    is omitted. With `write`, the plan is also written into the results, as a run does.

    >>> plan_("demo").frame  # doctest: +SKIP
    """
    name = str(experiment)
    plan = make_plan(name, Path.cwd(), only, survey)
    if write:
        write_plan(plan, name, Path.cwd())
    remaining = Campaign(plan, find_results(name)).list_remaining_work()
    durations = list(compare_with_earlier_durations(plan, Path("results"))) if remaining else []
    return PlannedWork(plan, remaining, durations)
