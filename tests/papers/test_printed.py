"""Every number of `printed/`, copied from the papers, compared with the corresponding number of
commodel. `where` is a published parameter set, a layout of table 1 of the τ–Lop paper, a pattern,
or `figure/table` of a report."""

import csv
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from commodel.files.parameter_sets import read_parameters
from commodel.platforms.tools import ROOT
from commodel.predictions.papers import find_paper, list_papers
from tests.papers.test_contract import nothing

PRINTED = Path(__file__).parent / "printed"
UNITS = {"": 1.0, "us": 1e-6, "ms": 1e-3, "M": 1e6}
LARGER_NODES = 9  # of the sixteen, those with 12 cores come first


def rows(name):
    with (PRINTED / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


@cache
def tables(name):
    """Return the paper's numbers of all tables of a report, by subject."""
    figures = find_paper(name).figures(nothing())
    return {
        f"{figure.name}/{numbers.title}": {
            "|".join(map(str, row.subject)): row.paper for row in numbers.rows
        }
        for figure in figures
        for numbers in figure.numbers
    }


@cache
def published(name):
    return {
        key: value.value
        for key, value in read_parameters(ROOT / f"params/published/{name}.yaml").values.items()
    }


def table(path):
    with (ROOT / path).open(newline="") as stream:
        return list(csv.DictReader(stream))


@cache
def layout(name):
    """Return the numbers of nodes, GPUs and ranks of a layout file, as table 1 of the τ–Lop paper
    has them."""
    ranks = table(f"params/layouts/fermi/{name}.csv")
    nodes = {int(rank["node"]) for rank in ranks}
    larger = sum(node < LARGER_NODES for node in nodes)
    cores = Counter(f"c={rank['cores']}" for rank in ranks if rank["device"] == "cpu")
    devices = Counter(rank["device"] for rank in ranks)
    about = {
        "nodes of 12": larger,
        "nodes of 8": len(nodes) - larger,
        "GPU": devices["gpu"],
        "P": len(ranks),
    }
    return about | {f"c={count}": cores[f"c={count}"] for count in range(2, 7)}


@cache
def sent(file, rank):
    """Return the number of doubles of each message of a rank, in order."""
    return {
        str(number): int(row["bytes"]) / 8
        for number, row in enumerate(
            row for row in table(f"params/patterns/{file}") if row["rank"] == rank
        )
    }


def ours(name, where):
    kind, _, rest = where.partition(" ")
    if kind == "set":
        return published(rest)
    if kind == "layout":
        return layout(rest)
    if kind == "pattern":
        file, _, rank = rest.split()
        return sent(file, rank)
    return tables(name)[where]


@pytest.mark.parametrize("name", list_papers())
def test_numbers_are_the_printed_ones(name):
    wrong = [
        (row, ours(name, row["where"]).get(row["what"]))
        for row in rows(name)
        if ours(name, row["where"]).get(row["what"])
        != pytest.approx(float(row["value"]) * UNITS[row["unit"]], rel=1e-9)
    ]
    assert not wrong


def test_all_layouts_are_compared_and_250_numbers_in_all():
    compared = Counter(row["where"] for row in rows("taulop"))
    assert sum(where.startswith("layout M") for where in compared) == 16
    assert sum(len(rows(name)) for name in list_papers()) >= 250
