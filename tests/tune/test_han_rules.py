"""Rules for the hierarchical algorithms of Open MPI's han: which are offered, and the files.

`recorded/openmpi-5.0.11-han-rules.txt` has what Open MPI 5.0.11 sent under such files, on nodes that
were names of one host (UTS namespaces) with TCP between them. Each line has the operation, the
algorithm of the rule, nodes, ranks a node, bytes, and a digest of the sorted messages of each rank.
The program `verify` was right in all 360 cases of each of three files. Open MPI 4.1.8 sent the same
under rules for one size, and crashed in its han under files that change between components."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from commodel.errors import UserError
from commodel.interchange.rules import NO_ASSUMPTIONS, Assumptions
from commodel.patterns.build import build_schedule
from commodel.patterns.points import PlatformResources
from commodel.records import LIBRARY, Choice, PlacedWorkload
from commodel_tune.dialects import HAN_RULES, OPEN_MPI_DIALECT, find_dialect
from commodel_tune.han_rules import (
    OPERATIONS_WITHIN,
    add_inner_choices,
    find_inner_algorithms,
    format_han_rules,
    list_inner_calls,
)
from commodel_tune.hierarchical import Placement
from commodel_tune.search import list_arms
from tests.patterns.catalogue import point

ALL = Assumptions(commutative=True, same_types=True)
PLACES = {12: Placement(nodes=3, per_node=4)}
HIER = "hier:inter=rabenseifner:intra=binomial+binomial-near"
CHOICES = [
    Choice("allreduce", 12, 64, "recursive-doubling"),
    Choice("allreduce", 12, 1024, HIER),
    Choice("allreduce", 12, 65536, LIBRARY),
]


def make_dialect(places=PLACES, assumptions=ALL):
    return replace(
        OPEN_MPI_DIALECT, hierarchical=HAN_RULES, assumptions=assumptions, placements=places
    )


def list_offered(dialect, operation, ranks):
    specs = dialect.list_further_specs(operation)
    return [spec for spec in specs if dialect.can_name(operation, spec, ranks)]


def test_open_mpi_sent_the_messages_of_the_algorithms_in_the_rules():
    offered = set()
    for nodes, per_node in ((4, 3), (3, 4), (5, 2)):
        dialect = make_dialect({nodes * per_node: Placement(nodes, per_node)})
        for operation in OPERATIONS_WITHIN:
            specs = list_offered(dialect, operation, nodes * per_node)
            offered |= {(operation, spec, nodes, per_node) for spec in specs}
    recorded = set()
    path = Path(__file__).parent / "recorded" / "openmpi-5.0.11-han-rules.txt"
    for line in path.read_text().splitlines():
        operation, spec, *numbers, digest = line.split(" ")
        nodes, per_node, size = map(int, numbers)
        ranks = nodes * per_node
        schedule = build_schedule(
            point(operation, spec, ranks=ranks, bytes=size, layout=f"block:{per_node}")
        )
        sent = [[] for _ in range(ranks)]
        for source, target, bytes in zip(schedule.src, schedule.dst, schedule.bytes, strict=True):
            sent[source].append(f"{target}={int(bytes)}")
        text = "|".join(" ".join(sorted(messages)) for messages in sent)
        assert hashlib.blake2b(text.encode(), digest_size=5).hexdigest() == digest, line
        recorded.add((operation, spec, nodes, per_node))
    assert offered <= recorded


def test_the_file_of_han_names_the_sizes_of_hierarchical_algorithms():
    text = format_han_rules(CHOICES)
    assert text.splitlines()[0] == "7 # collectives"
    of_allreduce = text.partition("2 # allreduce\n")[2].partition("6 # barrier")[0]
    assert of_allreduce == (
        "1 # level\n2 # the whole communicator\n3 # communicator sizes\n"
        "1 # ranks and more\n1 # message sizes\n0 tuned\n"
        "12 # ranks and more\n4 # message sizes\n0 tuned\n64 tuned\n1024 han\n65536 tuned\n"
        "13 # ranks and more\n1 # message sizes\n0 tuned\n"
    )
    assert text.count("tuned") == 4 + 1 + 6
    assert not format_han_rules([Choice("allreduce", 12, 64, "ring")])


def test_rules_of_tuned_name_the_inner_algorithms():
    choices = set(add_inner_choices(CHOICES, PLACES, list_inner_calls))
    assert choices == {
        Choice("allreduce", 12, 64, "recursive-doubling"),
        Choice("allreduce", 12, 1024, LIBRARY),
        Choice("allreduce", 12, 65536, LIBRARY),
        Choice("allreduce", 3, 1024, "rabenseifner"),
        Choice("allreduce", 3, 65536, LIBRARY),
        Choice("allreduce", 4, 0, LIBRARY),
        Choice("reduce", 4, 1024, "binomial"),
        Choice("reduce", 5, 0, LIBRARY),
        Choice("bcast", 4, 1024, "binomial-near"),
        Choice("bcast", 5, 0, LIBRARY),
    }
    spec = "hier:inter=ring:intra=binomial+binomial-near"
    of_blocks = add_inner_choices([Choice("allgather", 12, 8, spec)], PLACES, list_inner_calls)
    assert Choice("allgather", 3, 32, "ring") in of_blocks
    assert Choice("gather", 4, 8, "binomial") in of_blocks
    assert Choice("bcast", 4, 96, "binomial-near") in of_blocks


def test_rules_for_inner_algorithms_leave_other_choices_as_they_are():
    """Rules of leaders, or of the ranks of a node, end at the next number of ranks: it may have a
    choice of its own. And those above the largest number of ranks may begin at that of leaders."""
    places = {2: Placement(2, 1), 8: Placement(2, 4), 21: Placement(3, 7)}
    hierarchical = Choice("bcast", 21, 0, "hier:inter=linear:intra=binomial-near")
    choices = [Choice("bcast", 8, 0, "binomial"), hierarchical]
    assert set(add_inner_choices(choices, places, list_inner_calls)) == {
        Choice("bcast", 3, 0, "linear"),
        Choice("bcast", 4, 0, LIBRARY),
        Choice("bcast", 7, 0, "binomial-near"),
        Choice("bcast", 8, 0, "binomial"),
        Choice("bcast", 21, 0, LIBRARY),
    }
    spec = "hier:inter=ring:intra=binomial+binomial-near"
    small = [Choice("gather", 2, 0, "linear"), Choice("bcast", 2, 0, "chain")]
    places = {2: Placement(2, 1), 12: Placement(4, 3)}
    choices = [*small, Choice("allgather", 12, 0, spec)]
    rules = make_dialect(places).text(choices)
    assert rules.count("# binomial\n") == 1
    assert rules.count("# binomial-near\n") == 1
    assert rules.count("# chain\n") == 1


def test_two_inner_algorithms_of_one_call_are_refused():
    other = "hier:inter=ring:intra=linear+linear"
    choices = [
        Choice("allgather", 12, 8, other),
        Choice("bcast", 12, 96, "hier:intra=binomial-near"),
    ]
    with pytest.raises(UserError, match="found two algorithms of bcast over 4 ranks, 96 B"):
        add_inner_choices(choices, PLACES, list_inner_calls)


def test_a_hierarchical_algorithm_is_left_out_for_ranks_whose_nodes_are_unknown():
    choices = [Choice("allreduce", ranks, 0, HIER) for ranks in (2, 3, 12)]
    text = make_dialect().further_files(choices)["han.conf"]
    assert text.count("han") == 1
    rules = make_dialect().text(choices)
    assert "rabenseifner" in rules
    assert "hier" not in rules


def test_variables_select_the_simple_algorithms_of_han(tmp_path):
    settings = make_dialect().environment(tmp_path / "rules.conf", CHOICES)
    assert settings["OMPI_MCA_coll_han_dynamic_rules_filename"] == str(tmp_path / "han.conf")
    assert settings["OMPI_MCA_coll_han_use_simple_allreduce"] == "1"
    priorities = [settings[f"OMPI_MCA_coll_{name}_priority"] for name in ("tuned", "han")]
    assert int(priorities[0]) < int(priorities[1])
    flat = make_dialect().environment(tmp_path / "rules.conf", CHOICES[:1])
    assert not any("han" in name for name in flat)
    assert not make_dialect().further_files(CHOICES[:1])


@pytest.mark.parametrize(
    "places",
    [
        {12: Placement(1, 12)},
        {12: Placement(12, 1)},
        {12: Placement(5, 3)},  # unequal
        {16: Placement(4, 4)},  # a rule for 4 ranks would be for both
        {12: Placement(3, 4), 4: Placement(1, 4)},  # 4 ranks have rules of their own
        {},
    ],
)
def test_hierarchical_algorithms_are_offered_only_where_rules_can_name_them(places):
    assert not list_offered(make_dialect(places), "allreduce", 16 if 16 in places else 12)
    assert list_offered(make_dialect(), "allreduce", 12)


def test_without_assumptions_a_reduction_keeps_its_order_within_nodes():
    assert list_offered(make_dialect(assumptions=NO_ASSUMPTIONS), "allreduce", 12) == [
        "hier:inter=recursive-doubling:intra=linear+binomial-near",
        "hier:inter=rabenseifner:intra=linear+binomial-near",
    ]


@pytest.mark.parametrize(("version", "has_rules"), [("4.1.8", False), ("5.0.11", True)])
def test_han_of_open_mpi_5_alone_has_rules(monkeypatch, version, has_rules):
    monkeypatch.setattr(
        "commodel_tune.dialects.find_library_version",
        lambda command: f"Open MPI v{version}, package",
    )
    dialect = replace(find_dialect(Path("library")), placements=PLACES, assumptions=ALL)
    assert bool(list_offered(dialect, "allreduce", 12)) == has_rules
    assert bool(dialect.further_files(CHOICES)) == has_rules


def test_parts_that_are_left_out_are_the_defaults():
    assert find_inner_algorithms("gather", "hier") == find_inner_algorithms(
        "gather", "hier:inter=binomial:intra=binomial"
    )
    assert make_dialect().can_name("gather", "hier", 12)


def test_the_search_has_hierarchical_arms():
    dialect = make_dialect()
    workload = PlacedWorkload("allreduce", 12, "block:4", 1024)
    arms = list_arms(
        [workload],
        None,
        PlatformResources.unlimited(),
        dialect.can_name,
        print,
        True,
        dialect.list_further_specs,
    )
    assert HIER in {arm.algorithm for arm in arms.arms}
