"""Whether rules pay, and which of them stay: the library's own collectives with and without them, in alternation, at
sizes that were not measured."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log

from commodel.advice.arms import Job
from commodel.advice.proof import WORTH, Control, Gain, between, control, gain, in_turn, joined, of_all, steadied
from commodel.advice.tuning import Place, rules_of
from commodel.records import LIBRARY, Choice

PROOF_SECONDS = 0.3  # that a case's samples may take in trial and proof: starts differ by more than samples
FEWEST_PAIRS = 3  # pairs of starts, to say what a rule gains
TRIAL = 2  # pairs of starts, to see which rules are worth a proof
BESIDE = 12  # cases of operations without rules, at most, that run beside a trial


@dataclass(frozen=True)
class Row:
    """A job with the rule for it, the size between that it was proven at, and what it gains."""

    job: Job
    size: int
    algorithm: str
    gain: Gain
    harms: bool = False  # as the pairs of starts have it, whatever the control says


@dataclass(frozen=True)
class Stage:
    """What trial or proof showed: gains with intervals as wide as the cases without a rule want them."""

    rows: Sequence[Row] = ()
    took: float = 0.0  # seconds
    control: Control = field(default_factory=lambda: control([]))
    spread: bool = False  # whether a rule changes what the library does at other sizes of the operation

    @property
    def ruled(self) -> set[str]:
        """Operations with rules."""
        return {row.job[0] for row in self.rows if row.algorithm != LIBRARY}

    def of(self, operation: str | None = None) -> tuple[float, float, float]:
        """The mean gain of all cases, or of those of an operation, and its interval."""
        rows = [row for row in self.rows if operation in (None, row.job[0])]
        return of_all((row.gain for row in rows), self.control.wider)


def prove(
    place: Place,
    stage: str,
    choices: Mapping[Job, str],
    pairs: int,
    progress: Callable[[str], None],
    spread: bool = False,
) -> Stage:
    """The library's own collectives with these rules and without any, in alternation, at sizes between those that were
    measured. Each operation with rules has starts of its own; those without share theirs, since nothing is different
    there. There is no row where too few pairs have valid samples."""
    if not rules_of(choices.items()):
        return Stage()
    place = place.with_seconds(PROOF_SECONDS)
    apart = {row.operation for row in rules_of(choices.items())}
    cases = {job: (*job[:3], size) for job, size in _sizes(choices).items()}
    times: dict[bool, list[Mapping[Job, float]]] = {True: [], False: []}
    took = 0.0
    for number, ruled in enumerate(in_turn(pairs)):
        progress(f"{stage}: start {number + 1} of {2 * pairs}, {'with' if ruled else 'without'} rules")
        rules = rules_of(choices.items()) if ruled else ()
        timed = place.time(f"{stage}-{number}", list(cases.values()), rules, apart)
        times[ruled].append(timed.seconds)
        took += timed.took
    rows = []
    for job, case in cases.items():
        pairs_of_case = zip(times[True], times[False], strict=True)
        both = [(ruled[case], bare[case]) for ruled, bare in pairs_of_case if case in ruled and case in bare]
        if len(both) >= min(FEWEST_PAIRS, pairs):
            rows.append(Row(job, case[3], choices[job], gain(*zip(*both, strict=True))))
    steady = steadied([row.gain for row in rows])
    rows = [replace(row, gain=gained, harms=gained.harms) for row, gained in zip(rows, steady, strict=True)]
    return _controlled(Stage(rows, took, spread=spread))


def _controlled(stage: Stage) -> Stage:
    """With what cases say that no rule is for, and none changes."""
    same = [row for row in stage.rows if row.algorithm == LIBRARY and not (stage.spread and row.job[0] in stage.ruled)]
    beside = control(row.gain for row in same)
    rows = [replace(row, gain=row.gain.widened(beside.wider)) for row in stage.rows]
    return replace(stage, rows=rows, control=beside)


def _sizes(jobs: Collection[Job]) -> dict[Job, int]:
    by_place: dict[tuple, list[int]] = {}
    for job in sorted(jobs):
        by_place.setdefault(job[:3], []).append(job[3])
    return {(*where, size): case for where, sizes in by_place.items() for size, case in between(sizes).items()}


def drop_wrong(
    place: Place, choices: Mapping[Job, str], progress: Callable[[str], None]
) -> tuple[dict[Job, str], dict[tuple[str, str], str]]:
    """Return the choices without the rules that give wrong results, and the reason by operation and algorithm. Each
    algorithm is forced on communicators of many sizes; then all rules of an operation run together. A case that fails
    without rules, too, is not counted."""
    wrong: dict[tuple[str, str], str] = {}
    for operation in sorted({job[0] for job, algorithm in choices.items() if algorithm != LIBRARY}):
        of_operation = {job: name for job, name in choices.items() if job[0] == operation}
        layout = max(of_operation)[2]
        sizes = {size for _, _, _, size in of_operation}
        sizes = {min(sizes), max(sizes)}
        ranks = sorted({job[1] for job in of_operation})

        def failing(name: str, rules: Sequence[Choice], operation=operation, sizes=sizes, layout=layout) -> set | dict:
            progress(f"results: {operation}, {name}")
            return place.find_failures(f"results-{operation}-{name.replace(':', '-')}", operation, sizes, rules, layout)

        excused = set(failing("default", [Choice(operation, count, 0, LIBRARY) for count in ranks]))
        for spec in sorted(set(of_operation.values()) - {LIBRARY}):
            forced = [Choice(operation, count, 0, spec) for count in sorted({2, 3, *ranks}) if count <= ranks[-1]]
            for case, why in failing(spec, forced).items():
                if case not in excused:
                    wrong.setdefault((operation, spec), _describe_failure(case, why))
        choices = {job: LIBRARY if (job[0], name) in wrong else name for job, name in choices.items()}
        rules = rules_of((job, name) for job, name in choices.items() if job[0] == operation)
        for case, why in failing("all rules", rules).items() if rules else ():
            if case not in excused:
                together = {name for job, name in choices.items() if job[0] == operation} - {LIBRARY}
                wrong |= {
                    (operation, name): f"with its other rules, {_describe_failure(case, why)}" for name in together
                }
        choices = {job: LIBRARY if (job[0], name) in wrong else name for job, name in choices.items()}
    return dict(choices), wrong


def _describe_failure(case: tuple[str, int, int], why: str) -> str:
    given, ranks, size = case
    return f"input {given}, {ranks} ranks, {size} B: {why}"


def on_trial(choices: Mapping[Job, str], spread: bool = False) -> dict[Job, str]:
    """The choices for operations that have rules. Where these change all of their operation, some others are needed to
    say whether the machine stays the same."""
    ruled = {job[0] for job, algorithm in choices.items() if algorithm != LIBRARY}
    others = sorted(job for job in choices if job[0] not in ruled) if spread else []
    beside = others[:: -(-len(others) // BESIDE)] if others else []
    return {job: algorithm for job, algorithm in choices.items() if job[0] in ruled or job in beside}


def worth_a_proof(trial: Stage, one_for_all_sizes: Collection[str] = ()) -> dict[Job, str]:
    """Return the rules that are worth a proof, the library's own choice elsewhere."""
    faster = {row.job for row in trial.rows if log(row.gain.times) > trial.control.wider + log(WORTH)}
    return _staying(trial, faster, one_for_all_sizes)


def proven(proof: Stage, trial: Stage, one_for_all_sizes: Collection[str] = ()) -> dict[Job, str]:
    """What stays of rules that were worth a proof: those that were faster again, by more than the machine changed, and
    whose interval over all pairs of trial and proof is above 1. Where both say that rules for an operation slow down
    what none of them is for, none of it stays; of so many cases one says it once by chance."""
    tried = {row.job: row.gain for row in trial.rows}
    both = [row for row in proof.rows if row.job in tried]
    gains = steadied([joined(tried[row.job], row.gain) for row in both])
    sure = {row.job for row, seen in zip(both, gains, strict=True) if seen.widened(proof.control.wider).pays}
    before = {row.job for row in slowed(trial.rows)}
    spoilt = {row.job[0] for row in slowed(proof.rows) if row.job in before}
    faster = {row.job for row in proof.rows if log(row.gain.times) > proof.control.wider} & sure
    return _staying(proof, faster, one_for_all_sizes, spoilt)


def _staying(
    stage: Stage, faster: Collection[Job], one_for_all_sizes: Collection[str], spoilt: Collection[str] = ()
) -> dict[Job, str]:
    """Return the rules that stay. Those that change all of their operation have to be faster on average, too. Where all
    sizes need one algorithm, it stays if most of them are faster and none is slower."""
    costly = {name for name in stage.ruled if stage.spread and stage.of(name)[0] <= 1} | set(spoilt)
    good = [row for row in stage.rows if row.job in faster and row.job[0] not in costly]
    together = [row for row in stage.rows if row.job[0] in one_for_all_sizes and row.algorithm != LIBRARY]
    for where in {row.job[:3] for row in together}:
        rows = [row for row in together if row.job[:3] == where]
        stay = [row for row in rows if row in good]
        good = [row for row in good if row.job[:3] != where]
        if 2 * len(stay) > len(rows) and not any(row.harms for row in rows):
            good += rows
    return {row.job: LIBRARY for row in stage.rows} | {row.job: row.algorithm for row in good}


def slowed(rows: Iterable[Row]) -> list[Row]:
    """Cases without a rule that rules for others slow down."""
    return [row for row in rows if row.algorithm == LIBRARY and row.harms]
