"""The synthetic study with the results of each stage, and its report: made once, shared by all
tests."""

import hashlib
import pickle
import shutil

import openpyxl
import pytest

from commodel.compare import recommended
from commodel.reports import evaluated_campaign
from tests.once import made_once
from tests.reports.reading import Page, make_report
from tests.reports.study import (
    FAMILIES,
    make_comparison,
    make_distributions,
    make_parameters,
    make_raw,
    make_round_trips,
    write_results,
)


@pytest.fixture(scope="session", autouse=True)
def evaluate_once():
    """Evaluate the recommended predictions of equal comparisons once. This takes a third of the
    time of a report, and most tests change other tables."""
    known = {}

    def evaluate(comparison):
        key = (*comparison, hashlib.sha256(pickle.dumps(comparison.to_dict("list"))).digest())
        if key not in known:
            known[key] = recommended.recommend_points(comparison)
        return known[key].copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluated_campaign, "recommend_points", evaluate)
        yield


def make_families():
    about = {
        "title": "LogGP",
        "equation": "T(m) = L + 2·o + (m − 1)·G",
        "ignores": "contention in the network",
    }
    about |= {
        "citation": "A. Alexandrov et al., LogGP: incorporating long messages into the LogP model, SPAA 1995"
    }
    return {name: about | {"title": name.capitalize()} for name in FAMILIES}


def make_provenance():
    common = {
        "experiment": "b1946ac92492",
        "commit": "4f2a91c",
        "dirty": False,
        "compiler": "gcc 12.2.0 -O2",
    }
    real = {
        "platform": "ether16",
        "mpi": "MPICH 5.0.2",
        "cpu": "Intel Xeon E5-2670 v3",
        "kernel": "6.1.0-40-amd64",
    }
    simulated = {
        "platform": "fattree",
        "mpi": "SimGrid SMPI 4.0",
        "cpu": "simulated",
        "kernel": "simulated",
    }
    return {
        "ether16-0": common
        | real
        | {"hosts": ["n001", "n002"], "date": "2026-10-02T11:03:09Z", "seed": 17},
        "ether16-1": common
        | real
        | {"hosts": ["n001", "n003"], "date": "2026-10-02T12:40:41Z", "seed": 18},
        "fattree-0": common | simulated | {"hosts": [], "date": "2026-10-02T09:00:00Z", "seed": 17},
    }


@pytest.fixture(scope="session")
def parse():
    return Page


@pytest.fixture(scope="session")
def comparison():
    return make_comparison()


@pytest.fixture(scope="session")
def fewer(comparison):
    """Return the comparison with three message sizes, whose report takes a third of the time."""
    return comparison[comparison["bytes"].isin([1, 4096, 65536])].reset_index(drop=True)


@pytest.fixture(scope="session")
def small(fewer):
    """Return the comparison with three message sizes and three models."""
    return fewer[fewer["model"].isin(["loggp", "hockney", "pmnf"])].reset_index(drop=True)


@pytest.fixture(scope="session")
def inputs(comparison):
    return {
        "comparison": comparison,
        "parameter_sets": make_parameters(),
        "raw": make_raw(comparison),
        "provenance": make_provenance(),
        "distributions": make_distributions(),
        "models": make_families(),
        "experiment": "trees-2026",
        "title": "Broadcast, allreduce and reduction trees on two clusters",
    }


@pytest.fixture(scope="session")
def round_trips():
    return make_round_trips()


@pytest.fixture(scope="session")
def report(inputs):
    return make_report(**inputs)


@pytest.fixture(scope="session")
def workbook(report, tmp_path_factory):
    """Return the path of the report's workbook, which no test may edit."""
    from commodel.reports import write_xlsx

    return (
        made_once(
            tmp_path_factory, "workbook", lambda folder: write_xlsx(report, folder / "e.xlsx")
        )
        / "e.xlsx"
    )


@pytest.fixture(scope="session")
def book(workbook):
    return openpyxl.load_workbook(workbook)


@pytest.fixture(scope="session")
def original(inputs, tmp_path_factory):
    """Return a folder of results; its workbook is beside the folder."""
    from commodel.reports import build_stored_report, write_xlsx

    folder = write_results(tmp_path_factory.mktemp("results") / "trees", inputs)
    write_xlsx(build_stored_report(folder), folder.parent / "trees.xlsx")
    return folder


@pytest.fixture
def folder(original, tmp_path):
    """Return a copy of the results, which a test may edit."""
    return shutil.copytree(original, tmp_path / "trees")


@pytest.fixture
def path(original, tmp_path):
    """Return the path of a copy of the workbook, which a test may edit."""
    return shutil.copy(original.parent / "trees.xlsx", tmp_path / "trees.xlsx")
