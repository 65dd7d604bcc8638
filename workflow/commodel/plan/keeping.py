"""Which files a plan rests on beside its experiment and platforms: tables of the matrix, patterns, trees and rank files
that points name, the published sets of a paper, and speeds that the report shows."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from commodel.files.kept import noted, reached, standing_on
from commodel.files.project import NUMBERS, file_of
from commodel.files.results import PLAN, Results
from commodel.models.sets import published, published_file
from commodel.models.speeds import read_speeds
from commodel.patterns.operations import files_of as operation_files
from commodel.plan.config import load_experiment
from commodel.plan.file import load_plan
from commodel.price.papers import paper
from commodel.records import KeptFile, Point
from commodel.sources import ROOT


def named(points: Iterable[Point]) -> Iterator[tuple[str, str]]:
    """(kind, path) of every file that points name, each once."""
    points = list(points)
    specs = {
        (kind, spec): None
        for point in points
        for kind, spec in (("pattern", point.operation), ("tree", point.topology), ("layout", point.layout))
    }
    for kind, spec in specs:
        if path := file_of(spec):
            yield kind, NUMBERS.sub("", path) if kind == "layout" else path
    partitions = (path for name in {point.operation: None for point in points} for path in operation_files(name))
    yield from (("partition", path) for path in dict.fromkeys(partitions))


def files_of(
    points: Iterable[Point], paper_name: str = "", *, tables: Iterable[str] = (), speeds: Iterable[str] = ()
) -> dict[str, KeptFile]:
    files = {path: noted(kind, path) for kind, path in (*named(points), *(("matrix", path) for path in tables))}
    for name in paper(paper_name).published if paper_name else ():
        file = published_file(name)
        files[file] = noted("published", file, ROOT, published(name).source)
    for name in speeds:
        read_speeds(reached(name))  # what a report could not show is refused before anything is measured
        files[name] = noted("speeds", name)
    return files


def tables_of(experiment: str) -> list[str]:
    """Where the tables are read that an experiment's matrix is in."""
    with received(Path(experiment)):
        return [str(reached(path)) for path in load_experiment(experiment).tables]


def root_of(file: KeptFile) -> Path:
    """What its name is seen from: the clone for what comes with it, else where commodel runs."""
    return ROOT if file.kind == "published" else Path()


def received(experiment: Path) -> AbstractContextManager[None]:
    """An experiment that is read from a results folder, where it lies with what it was planned from, takes the files
    that it names from there."""
    kinds, folder = experiment.parts[-3:-1], experiment.absolute().parents[2:3]
    if kinds != ("inputs", "experiments") or not (folder[0] / PLAN).is_file():
        return nullcontext()
    results = Results.of(folder[0])
    return standing_on(results, load_plan(results.plan).files)
