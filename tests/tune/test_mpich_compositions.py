"""Rules for MPICH's compositions: which are offered, the files, and MPICH under them.

`recorded/mpich-5.0.2-compositions.txt` has what MPICH 5.0.2 sent between nodes under such files: on
6 ranks of three nodes (MPIR_CVAR_NUM_CLIQUES=3, cyclic), with a flat algorithm below 1 KiB and a
composition from there on. Each line has the operation, bytes, the algorithm of the rule, and the
messages of each rank. Messages within nodes are in shared memory and not recorded."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from commodel.advice.evidence import combine_sets
from commodel.interchange.rules import NO_ASSUMPTIONS
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule
from commodel.patterns.points import PlatformResources
from commodel.platforms.mpi_libraries import find_kind, find_library_version
from commodel.records import LIBRARY, Choice, PlacedWorkload
from commodel_tune.dialects import MPICH_DIALECT, find_dialect, make_composition_rules
from commodel_tune.hierarchical import Placement
from commodel_tune.mpich_compositions import COMPOSITIONS, format_compositions
from commodel_tune.search import list_arms
from tests.patterns.catalogue import point
from tests.tune.test_native_library import on_communicator, rows

PLACES = {6: Placement(nodes=3, per_node=2)}
OWN = {"composition=own": {}}
BUILT_IN = {f"collective={name}": {"comm_type=intra": OWN} for name in COMPOSITIONS}
CHOICES = [
    Choice("bcast", 6, 64, "scatter-allgather-ring"),
    Choice("bcast", 6, 1024, "hier:inter=binomial"),
    Choice("bcast", 6, 65536, LIBRARY),
]


def make_dialect(places=PLACES):
    rules = make_composition_rules(BUILT_IN)
    return replace(MPICH_DIALECT, hierarchical=rules, placements=places)


def list_offered(dialect, operation, ranks=6):
    specs = dialect.list_further_specs(operation)
    return [spec for spec in specs if dialect.can_name(operation, spec, ranks)]


def test_the_file_names_a_composition_for_each_size_of_a_number_of_ranks():
    tree = json.loads(format_compositions(CHOICES, BUILT_IN))
    prefix = "composition=MPIDI_Bcast_intra_composition_"
    assert tree["collective=allreduce"] == BUILT_IN["collective=allreduce"]
    assert tree["collective=bcast"]["comm_type=intra"] == {
        "comm_hierarchy=parent": {
            "comm_size=node_comm_size": OWN,
            "comm_size<=5": OWN,
            "comm_size<=6": {
                "avg_msg_size<64": OWN,
                "avg_msg_size<1024": {f"{prefix}gamma": {}},
                "avg_msg_size<65536": {f"{prefix}alpha": {}},
                "avg_msg_size=any": OWN,
            },
            "comm_size=any": OWN,
        },
        "comm_hierarchy=any": OWN,
    }
    assert not format_compositions(CHOICES[:1], BUILT_IN)


def test_a_reduction_that_does_not_commute_is_the_library_s():
    choice = Choice("reduce", 6, 0, "hier:inter=binomial")
    tree = json.loads(format_compositions([choice], BUILT_IN))
    of_ranks = tree["collective=reduce"]["comm_type=intra"]["comm_hierarchy=parent"]["comm_size<=6"]
    assert of_ranks["is_commutative=no"] == OWN


def test_the_device_stays_on_for_operations_with_compositions(tmp_path):
    flat = Choice("allgather", 6, 0, "ring")
    settings = make_dialect().environment(tmp_path / "rules.json", [*CHOICES, flat])
    assert settings == {
        "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": str(tmp_path / "rules.json"),
        "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": str(tmp_path / "compositions.json"),
        "MPIR_CVAR_ALLGATHER_DEVICE_COLLECTIVE": "0",
    }
    assert set(make_dialect().further_files(CHOICES)) == {"compositions.json"}
    assert not make_dialect().further_files([flat])


def test_compositions_are_offered_on_several_nodes_of_several_ranks():
    assert list_offered(make_dialect(), "allreduce") == [
        "hier:inter=recursive-doubling",
        "hier:inter=rabenseifner",
    ]
    assert list_offered(make_dialect(), "bcast") == [
        "hier:inter=binomial",
        "hier:inter=scatter-allgather-ring",  # scatter-allgather needs a power of two nodes
    ]
    assert not list_offered(make_dialect(), "alltoall")
    assert not list_offered(make_dialect({6: Placement(1, 6)}), "allreduce")
    assert not list_offered(make_dialect({6: Placement(6, 1)}), "allreduce")
    assert not list_offered(replace(make_dialect(), hierarchical=None), "allreduce")
    assert make_dialect().assumptions == NO_ASSUMPTIONS


def test_mpich_sent_the_messages_of_the_algorithm_among_leaders():
    path = Path(__file__).parent / "recorded" / "mpich-5.0.2-compositions.txt"
    compared = set()
    for line in path.read_text().splitlines():
        operation, size, spec, sends = line.split(" ", 3)
        between = spec.partition("inter=")[2]
        if between == "rabenseifner":
            continue  # MPICH's differs if the ranks are no power of two
        schedule = build_schedule(point(operation, between, ranks=3, bytes=int(size)))
        sent = [[] for _ in range(6)]
        for source, target, bytes in zip(schedule.src, schedule.dst, schedule.bytes, strict=True):
            sent[source].append(f"{target}={int(bytes)}")
        assert "|".join(" ".join(messages) for messages in sent) == sends, line
        compared.add(operation)
    assert compared == set(COMPOSITIONS)


@pytest.mark.parametrize("operation", COMPOSITIONS)
def test_every_composition_of_mpich_is_right(oversubscribed, mpi_programs, tmp_path, operation):
    if find_kind(find_library_version([str(mpi_programs / "library")])) != "MPICH":
        pytest.skip("no MPICH here")
    dialect = replace(find_dialect(mpi_programs / "library"), placements=PLACES)
    cases = on_communicator(rows([operation], 6, (64,)), 6)
    for number, spec in enumerate(list_offered(dialect, operation)):
        choices = [Choice(operation, 6, 0, spec)]
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "rules.json").write_text(dialect.user_text(choices))
        for name, text in dialect.further_files(choices).items():
            (folder / name).write_text(text)
        settings = dialect.environment(folder / "rules.json", choices)
        result = oversubscribed(
            6, "verify", cases, out=f"out{number}", MPIR_CVAR_NUM_CLIQUES="3", **settings
        )
        assert result.code == 0, (spec, result.err)


def test_a_composition_is_tried_beside_a_flat_algorithm_with_the_same_messages():
    """A binomial broadcast over 6 ranks in blocks of 2 sends the messages of one among leaders."""
    values = ["L=2us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns/B"]
    dialect = make_dialect()
    arms = list_arms(
        [PlacedWorkload("bcast", 6, "block:2", 1024)],
        combine_sets([make_given_set("loggp", values)]),
        PlatformResources.unlimited(),
        dialect.can_name,
        print,
        True,
        dialect.list_further_specs,
    )
    names = {arm.algorithm for arm in arms.arms}
    assert {"hier", "hier:inter=scatter-allgather-ring"} <= names
    assert {"binomial", "scatter-allgather-ring"} <= names
