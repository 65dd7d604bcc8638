"""How long it took to measure on a platform before, beside what was estimated: packets that are lost, and whoever else
computes there, are in no estimate."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from commodel.errors import UserError
from commodel.files.results import Results
from commodel.plan.file import load_plan
from commodel.records import Plan
from commodel.results.attempts import DONE, read_story, spent
from commodel.units import format_seconds


@dataclass(frozen=True)
class Earlier:
    """What the batches of an experiment took, and what was estimated."""

    experiment: str
    seconds: float
    estimate: float

    @property
    def pace(self) -> float:
        return self.seconds / self.estimate


def earlier(platform: str, digest: str, results: Path) -> Earlier | None:
    """By the results of the last experiment that was measured on the platform as it is now."""
    folders = [folder for folder in results.glob("*") if (folder / "plan.json").is_file()]
    for folder in sorted(folders, key=lambda folder: -(folder / "plan.json").stat().st_mtime):
        with suppress(UserError):  # from another version, damaged, or with links: others may say it
            if (there := _of(Results.of(folder), platform, digest)) is not None:
                return there
    return None


def _of(results: Results, platform: str, digest: str) -> Earlier | None:
    plan = load_plan(results.plan)
    if platform not in plan.platforms or plan.platforms[platform].digest != digest:
        return None
    took, estimates = [], []
    for batch in plan.batches:
        story = read_story(results.raw(batch.name))
        if batch.platform == platform and batch.seconds and story.last and story.last.outcome == DONE:
            took.append(spent(story.attempts))
            estimates.append(batch.seconds)
    return Earlier(plan.experiment, sum(took), sum(estimates)) if any(took) else None


def beside_estimates(plan: Plan, results: Path) -> Iterator[str]:
    """A sentence for each platform: what the plan's estimate comes to at the pace of what was measured there."""
    for name, platform in plan.platforms.items():
        before = earlier(name, platform.digest, results)
        if before:
            about = before.pace * sum(batch.seconds for batch in plan.batches if batch.platform == name)
            took, estimate = format_seconds(before.seconds), format_seconds(before.estimate)
            there = f"{results / before.experiment} took {took} there, where {estimate} were estimated"
            yield f"{name}: {there}; at that pace this takes {format_seconds(about)}"
        elif not platform.simulated:
            yield f"{name}: nothing was measured there yet; the estimate knows no lost packets, and no other jobs"
