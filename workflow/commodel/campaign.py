"""A campaign is all that a workflow does in one results folder: who may work there, and under which plan.

Its plan is made by the process that holds the folder; jobs, and whoever only looks, take the plan that is there.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from commodel.config import find
from commodel.errors import UserError
from commodel.holding import handed_down, hold
from commodel.plan import load_plan, make_plan, write_plan
from commodel.records import Batch, Plan
from commodel.results import Results
from commodel.safepaths import AnyPath, SafePath
from commodel.unmeasured import unmark, why_unmeasured

RUN = "another run of this experiment"


@dataclass(frozen=True)
class Campaign:
    plan: Plan
    folder: AnyPath  # results/<experiment>, relative to the project's
    hold: TextIO | None = None  # what keeps others out, as long as it is open
    refusal: str = ""  # why nothing may be run here

    @property
    def results(self) -> Results:
        return Results.of(self.folder)

    def done(self, batch: Batch) -> SafePath:
        return self.results.done(batch.name)

    @property
    def finished(self) -> list[Batch]:
        return [batch for batch in self.plan.batches if self.done(batch).exists()]

    @property
    def unfinished(self) -> list[Batch]:
        return [batch for batch in self.plan.batches if not self.done(batch).exists()]


def results(experiment: str) -> SafePath:
    return SafePath(Path("results") / find("experiment", experiment).stem)


def begin(experiment: str, only: str | None, leading: bool) -> Campaign:
    """The campaign as the workflow sees it. The leading process holds its folder, perhaps as `commodel run` hands
    it down, and plans; where another one does,
    there is its plan to look at, and a refusal. A job of the workflow never plans: a node may be slow to see files, and
    an experiment edited meanwhile is the next run's matter."""
    folder = results(experiment)
    if not leading:
        return Campaign(load_plan(Results(folder).plan), folder)
    try:
        stream = handed_down(folder) or hold(folder, RUN)
    except UserError as error:
        return Campaign(load_plan(Results(folder).plan), folder, refusal=error.message)
    plan = make_plan(experiment, Path.cwd(), only)
    write_plan(plan, experiment, Path.cwd())
    return Campaign(plan, folder, stream)


def forget_failures(campaign: Campaign) -> int:
    """Makes what was given up, or came late in every sample, be tried again: its batches are not done any more. Returns
    how many cases that is."""
    count = 0
    for batch in campaign.plan.batches:
        folder = campaign.done(batch).parent
        given_up = [case for case in batch.ids if why_unmeasured(folder, case)]
        if given_up:
            campaign.done(batch).unlink(missing_ok=True)
        for case in given_up:
            unmark(folder, case)
        count += len(given_up)
    return count
