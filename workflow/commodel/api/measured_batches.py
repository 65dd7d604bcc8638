"""Measurement of one batch of a plan (`measure_batch`), as a job of the workflow does it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from commodel.api.result import Answer
from commodel.files.cache import use_archived_inputs
from commodel.files.results_folder import PLAN, Results
from commodel.files.safe_paths import SafePath
from commodel.measure.batch import Progress, find_setting
from commodel.measure.batch import measure_batch as measure_cases
from commodel.plan.planning import load_plan

MEASURED, MISSING = "measured", "missing"


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredBatch(Answer):
    """A batch after its measurement: a row for each point and probe case, with its status, and the
    reason if it was given up."""

    folder: Path  # of the raw samples

    def text(self, verbose: bool = True) -> str:
        """Return the sentence and the reasons of cases that were given up."""
        return "\n".join([self.sentence, *self.notes])


def measure_batch(
    plan: str | Path,
    batch: str,
    *,
    out: str | Path | None = None,
    setting: str | None = None,
    progress: Progress = lambda text: None,
) -> MeasuredBatch:
    """Measure what is missing of a batch of a plan. Printed, the result is what `commodel measure`
    prints.

    `plan` is results/NAME/plan.json, or its folder; `batch` is a name, or the only one that begins
    so. Raw samples go to `out`, by default raw/BATCH beside the plan. `setting` names this
    allocation.

    >>> measure_batch("results/demo", "local-1n").frame  # doctest: +SKIP
    """
    path = Path(plan) / PLAN if Path(plan).is_dir() else Path(plan)
    results = path.parent
    planned = load_plan(SafePath.of_argument(path, results))
    matching = [entry.name for entry in planned.batches if entry.name.startswith(batch)]
    name = matching[0] if len(matching) == 1 else batch
    folder = Path(out) if out else results / "raw" / name
    with use_archived_inputs(Results.of(results), planned.files):
        raw = SafePath.of_argument(folder, results)
        outcome = measure_cases(planned, planned.batch(name), raw, progress, find_setting(setting))
    kinds = dict.fromkeys((case.id for case in outcome.batch.cases), "probe case")
    rows = []
    for case in outcome.batch.ids:
        without_samples = MEASURED if case in outcome.measured else MISSING
        status, reason = outcome.given_up.get(case, (without_samples, ""))
        rows.append(
            {"id": case, "kind": kinds.get(case, "point"), "status": status, "reason": reason}
        )
    reasons = Counter(outcome.given_up.values())
    notes = [f"{count} × {status}: {reason}" for (status, reason), count in reasons.items()]
    provenance = [{"batch": name, "platform": outcome.batch.platform, "source": str(folder)}]
    return MeasuredBatch(rows, outcome.sentence, notes, provenance, folder)
