"""Whether rules pay, and which of them stay: the library's own collectives with and without them, in alternation, at
sizes that were not measured."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from commodel.advice.arms import Job
from commodel.advice.proof import Gain, between, gain, in_turn
from commodel.advice.tuning import Place, rules_of
from commodel.records import LIBRARY

PROOF_SECONDS = 1.0  # that a case may take in trial and proof
FEWEST = 3  # pairs of starts, to say what a rule gains


@dataclass(frozen=True)
class Row:
    """A job with the rule for it, the size between that it was proven at, and what it gains."""

    job: Job
    size: int
    algorithm: str
    gain: Gain


def prove(
    place: Place, stage: str, choices: Mapping[Job, str], pairs: int, progress: Callable[[str], None]
) -> tuple[list[Row], float]:
    """The library's own collectives with these rules and without, in alternation, at sizes between those that were
    measured; and the seconds that took. Each operation has starts of its own. There is no row where too few pairs have
    valid samples."""
    place = place.with_seconds(PROOF_SECONDS)
    cases = {job: (*job[:3], size) for job, size in _sizes(choices).items()}
    times: dict[bool, list[Mapping[Job, float]]] = {True: [], False: []}
    took = 0.0
    for number, ruled in enumerate(in_turn(pairs)):
        progress(f"{stage}: start {number + 1} of {2 * pairs}, {'with' if ruled else 'without'} rules")
        rules = rules_of(choices.items()) if ruled else ()
        timed = place.time(f"{stage}-{number}", list(cases.values()), rules, apart=True)
        times[ruled].append(timed.seconds)
        took += timed.took
    rows = []
    for job, case in cases.items():
        pairs_of_case = zip(times[True], times[False], strict=True)
        both = [(ruled[case], bare[case]) for ruled, bare in pairs_of_case if case in ruled and case in bare]
        if len(both) >= FEWEST:
            rows.append(Row(job, case[3], choices[job], gain(*zip(*both, strict=True))))
    return rows, took


def _sizes(jobs: Collection[Job]) -> dict[Job, int]:
    by_place: dict[tuple, list[int]] = {}
    for job in sorted(jobs):
        by_place.setdefault(job[:3], []).append(job[3])
    return {(*where, size): case for where, sizes in by_place.items() for size, case in between(sizes).items()}


def on_trial(choices: Mapping[Job, str]) -> dict[Job, str]:
    """The choices for operations that have rules."""
    ruled = {job[0] for job, algorithm in choices.items() if algorithm != LIBRARY}
    return {job: algorithm for job, algorithm in choices.items() if job[0] in ruled}


def kept(rows: Iterable[Row]) -> dict[Job, str]:
    """The rules that pay, the library's own choice elsewhere."""
    return _unless_spoilt(rows, lambda gain: gain.pays)


def proven(rows: Iterable[Row]) -> dict[Job, str]:
    """What stays of rules that were seen to pay before: those that were faster again."""
    return _unless_spoilt(rows, lambda gain: gain.times > 1)


def _unless_spoilt(rows: Iterable[Row], stays: Callable[[Gain], bool]) -> dict[Job, str]:
    """Where rules for an operation slow down what none of them is for, none of it stays."""
    rows = list(rows)
    spoilt = {row.job[0] for row in slowed(rows)}
    return {row.job: row.algorithm if stays(row.gain) and row.job[0] not in spoilt else LIBRARY for row in rows}


def slowed(rows: Iterable[Row]) -> list[Row]:
    """Cases without a rule that rules for others slow down."""
    return [row for row in rows if row.algorithm == LIBRARY and row.gain.harms]
