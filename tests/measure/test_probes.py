"""All probes on platforms of several shapes: their cases fit the platform, and their columns are
distinct."""

import json
import subprocess

import pytest

from commodel.measure.program_starts import list_starts
from commodel.models.probes import PLAYER, Site, find_probe, plans
from commodel.patterns.layouts import count_case_nodes, place_ranks
from commodel.records import Batch
from commodel.results.collection import NOT_SETTINGS

SITES = {
    "this machine": Site(1, 2),
    "big node": Site(1, 16),
    "two nodes": Site(2, 1),
    "cluster": Site(32, 1),
    "fat cluster": Site(8, 8),
    "two types": Site(9, 4, {"fat": 6, "thin": 3}),
    "one of each": Site(3, 2, {"a": 1, "b": 1, "c": 1}),
    "simulated": Site(64, 2, simulated=True),
}
SIZES = [1, 64, 1024, 65536]
PROBES = sorted(plans.PROBES)


@pytest.fixture(params=PROBES)
def name(request):
    return request.param


@pytest.mark.parametrize("site", SITES.values(), ids=SITES)
def test_the_cases_of_every_probe_fit_on_the_platform(name, site):
    entry = find_probe(name)
    cases = list(entry.cases("x", site, SIZES))
    assert cases or entry.optional
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        assert set(case.settings) == set(entry.columns)
        assert 2 <= case.ranks <= site.ranks
        nodes = [
            case.where[node] if case.where else node
            for node in place_ranks(case.layout, case.ranks)
        ]
        assert max(nodes) < count_case_nodes(case) <= site.nodes
        assert max(nodes.count(node) for node in nodes) <= site.cores
        members = site.members()
        if case.pair and not case.pair.endswith(".same") and name != "triplet":
            assert {site.find_type(node) for node in nodes} == set(case.pair.split("."))
        assert not case.pair or case.pair.split(".")[0] in members


def test_every_probe_is_started_on_the_nodes_named_by_the_cases(name, tmp_path):
    cases = {case.id: case for case in find_probe(name).cases("x", SITES["two types"], SIZES)}
    for start in list_starts(Batch("b", "x", 9, cases=tuple(cases.values())), tmp_path):
        for case in map(cases.get, start.ids):
            nodes = place_ranks(case.layout, case.ranks)
            assert start.nodes == tuple(case.where[node] if case.where else node for node in nodes)


def test_no_column_of_a_probe_means_something_else_in_the_table(name):
    assert not set(find_probe(name).columns) & (
        NOT_SETTINGS | {"ranks", "layout", "pair", "alternative"}
    )


def test_the_program_reads_these_columns(name, mpi_programs):
    if find_probe(name).program_name == PLAYER:
        pytest.skip("the player reads schedules")
    command = [mpi_programs / find_probe(name).program_name, "--describe"]
    description = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    assert [column["name"] for column in description["columns"]] == list(find_probe(name).columns)


def test_the_player_gets_a_schedule_of_every_case(name):
    entry = find_probe(name)
    if entry.program_name != PLAYER:
        pytest.skip("it has a program of its own")
    for case in entry.cases("x", SITES["cluster"], SIZES):
        pattern = entry.pattern(case.settings)
        assert pattern.ranks <= case.ranks
        assert len(pattern.src)
