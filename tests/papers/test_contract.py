"""The contract of all papers: an experiment that refers to the paper, and figures with titles and
reasons, with and without measurements."""

import re
from dataclasses import replace
from hashlib import sha256
from math import isfinite

import pandas as pd
import pytest
import yaml

from commodel.files.atomic import write_atomically
from commodel.files.cache import record_input, use_archived_inputs
from commodel.files.results_folder import Results
from commodel.files.tables import COMPARISON, SUMMARY, list_columns
from commodel.models import parameter_sets
from commodel.platforms.tools import ROOT
from commodel.predictions.papers import NO_NUMBER, STYLES, PaperEvidence, find_paper, list_papers
from commodel.records import PlatformKind

PUBLISHED = "params/published/{}.yaml"
EXPERIMENTS = {
    file.stem: yaml.safe_load(file.read_text()) for file in ROOT.glob("params/experiments/*.yaml")
}


def nothing(kind: PlatformKind = PlatformKind.SIMULATED) -> PaperEvidence:
    """Return the evidence of an experiment without measurements. Its figures have only predictions
    with printed values."""
    comparison, summary = (
        pd.DataFrame(columns=list_columns(schema)) for schema in (COMPARISON, SUMMARY)
    )
    return PaperEvidence(comparison, summary, (), {"somewhere": kind})


@pytest.fixture(scope="module", params=list_papers())
def entry(request):
    return find_paper(request.param)


@pytest.fixture(scope="module")
def figures(entry):
    return entry.figures(nothing())


def test_every_paper_is_named_by_an_experiment(entry):
    assert EXPERIMENTS[f"paper-{entry.name}"]["paper"] == entry.name


def test_experiments_of_papers_are_named_after_the_papers():
    papers = {
        name: experiment["paper"]
        for name, experiment in EXPERIMENTS.items()
        if name.startswith("paper-")
    }
    assert set(papers.values()) == set(list_papers())
    assert all(
        name == f"paper-{paper}" or name.startswith(f"paper-{paper}-")
        for name, paper in papers.items()
    )


def test_a_paper_lists_the_published_sets_that_the_figures_read(entry, monkeypatch):
    read = []
    monkeypatch.setattr(
        parameter_sets,
        "name_published_file",
        lambda name: read.append(name) or PUBLISHED.format(name),
    )
    entry.figures(nothing())
    assert set(read) == set(entry.published)


def test_figures_use_the_archived_published_sets(entry, tmp_path):
    results, kept_files = Results.of(tmp_path), {}
    for name in entry.published:
        file = record_input("published", PUBLISHED.format(name), ROOT)
        text = (ROOT / PUBLISHED.format(name)).read_text()
        changed = re.sub("^platform: .*", "platform: changed", text, flags=re.MULTILINE).encode()
        with write_atomically(results.copy(file.copy)) as stream:
            stream.write(changed)
        kept_files[PUBLISHED.format(name)] = replace(
            file, digest=sha256(changed).hexdigest(), bytes=len(changed)
        )
    with use_archived_inputs(results, kept_files):
        assert {parameter_sets.read_published(name).platform for name in entry.published} <= {
            "changed"
        }


def test_figures_have_names_and_titles_of_their_own(figures):
    assert figures
    for texts in ([figure.name for figure in figures], [figure.title for figure in figures]):
        assert len({text.lower() for text in texts}) == len(texts)
    assert all(len(figure.name) <= 31 for figure in figures)  # it is a sheet's


@pytest.mark.parametrize("kind", [PlatformKind.NAMESPACES, PlatformKind.REAL])
def test_texts_mention_simulation_only_on_simulated_platforms(entry, kind):
    for figure in entry.figures(nothing(kind)):
        texts = [figure.title, figure.caption, figure.reason]
        texts += [text for numbers in figure.numbers for text in (numbers.title, *numbers.columns)]
        assert not [
            text for text in texts if "simulated" in text.replace("simulated packet by packet", "")
        ]


def test_platforms_that_were_measured_are_named(figures):
    assert all(
        isinstance(figure.measured, tuple) and set(figure.measured) <= {"somewhere"}
        for figure in figures
    )


def test_tables_have_the_papers_numbers_and_ours(figures):
    for figure in figures:
        assert figure.numbers, figure.name
        printed = [isfinite(row.paper) for numbers in figure.numbers for row in numbers.rows]
        assert any(printed) or all(numbers.source == NO_NUMBER for numbers in figure.numbers), (
            figure.name
        )
        for numbers in figure.numbers:
            assert numbers.rows, (figure.name, numbers.title)
            assert numbers.source
            assert not numbers.source.endswith(".")
            assert {len(row.subject) for row in numbers.rows} == {len(numbers.subjects)}
            assert {len(row.ours) for row in numbers.rows} == {len(numbers.columns)}
            assert len(set(numbers.columns)) == len(numbers.columns) >= 1


def test_lines_are_drawn_by_axes_with_units(figures):
    for panel in (panel for figure in figures for panel in figure.panels):
        assert panel.lines
        assert set(panel.log) <= set("xy")
        for line in panel.lines:
            assert len(line.x) == len(line.y)
            assert line.style in STYLES
        assert len({line.name for line in panel.lines}) == len(panel.lines)
