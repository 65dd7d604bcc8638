"""Layouts: every rank has one node, no node exceeds its limit, and a complete spec needs no
platform; mapping of ranks by their traffic; and the sixteen layouts of the τ–Lop paper."""

import re
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.measure.program_starts import Start
from commodel.patterns.build import build_schedule, complete_layout
from commodel.patterns.layouts import (
    NODE,
    PlatformDefaults,
    assigns_cores,
    complete_spec,
    count_layout_ranks,
    find_layout,
    list_cores,
    list_devices,
    list_gpus,
    list_process_kinds,
    place_ranks,
)
from commodel.patterns.layouts.regular import make_nodes_spec
from commodel.patterns.point_digests import add_digests
from commodel.patterns.points import PlatformResources, make_library_points, make_point
from commodel.patterns.rank_mapping import make_traffic_graph, map_ranks
from commodel.plan.config import find_config_file, load_platform
from commodel.plan.planning import list_named_files, make_resources
from commodel.platforms.tools import ROOT
from commodel.registry import discover
from tests.configfiles import NETWORK
from tests.refusals import catch_error_message

Q = st.integers(1, 12)  # ranks per node
SPECS = {  # specs of every layout for any number of ranks up to 200
    "block": st.builds("block:{}".format, Q),
    "cyclic": st.builds("cyclic:{}".format, Q),
    "block-cyclic": st.builds(lambda size, blocks: f"block-cyclic:{size * blocks}x{size}", Q, Q),
    "random": st.builds("random:{}@{}".format, Q, st.integers(0, 99)),
    "pack": st.builds("pack:leaf:{}@4-90/0-3/91+93-399/92".format, Q),
    "scatter": st.builds("scatter:leaf:{}@4-90/0-3/91+93-399/92".format, Q),
    "kinds": st.builds("kinds:{}core+{}accelerator@3,0@2,{}core@300".format, Q, Q, Q),
}
DEFAULTS = PlatformDefaults(per_node=4, types=(("fat", 4), ("thin", 4)), hosts=("a", "b", "c", "d"))


def test_every_layout_is_known_here():
    assert set(discover("patterns.layouts", "LAYOUT")) == {*SPECS, "file", "nodes", "processes"}


@given(st.one_of(SPECS.values()), st.integers(1, 200))
def test_every_rank_is_placed_on_one_node(spec, ranks):
    node = place_ranks(spec, ranks)
    assert node.shape == (ranks,)
    assert node.min() >= 0
    assert complete_spec(spec, DEFAULTS) == spec  # nothing is left open, whatever the platform
    assert place_ranks(spec, ranks).tolist() == node.tolist()


@given(
    st.sampled_from(sorted(set(SPECS) - {"kinds", "pack", "scatter"})).flatmap(SPECS.get),
    st.integers(1, 200),
)
def test_nodes_are_filled_within_their_limit(spec, ranks):
    layout, arguments = find_layout(spec)
    per_node, counts = layout.ranks_per_node(arguments), np.bincount(place_ranks(spec, ranks))
    assert len(counts) == -(-ranks // per_node)
    assert counts.min() >= 1
    assert counts.max() <= per_node


@given(st.one_of(SPECS.values()), st.integers(1, 60))
def test_the_node_usage_of_a_tree_follows_the_layout(spec, leaves):
    """The node usage is the number of ranks per node in the spec, however few ranks there are;
    without one, it is the largest number of ranks on a node."""
    entry = {"operation": "bcast", "topology": f"flat:{leaves}", "bytes": 8, "layout": spec}
    point = make_point(PlatformResources("big", 1000, 1000), entry)
    most = int(np.bincount(place_ranks(spec, leaves + 1)).max())
    requested = None if spec.startswith("kinds") else int(re.search(r"\d+", spec)[0])
    assert point.node_usage == f"{requested or most} a node"
    assert most == min(requested or most, leaves + 1) or spec.startswith(
        ("cyclic", "block-cyclic", "scatter")
    )
    assert most <= int(point.node_usage.split()[0])


def test_layouts_place_ranks_as_their_docstrings_state():
    assert place_ranks("block:2", 6).tolist() == [0, 0, 1, 1, 2, 2]
    assert place_ranks("cyclic:2", 6).tolist() == [0, 1, 2, 0, 1, 2]
    assert place_ranks("block-cyclic:4x2", 8).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    spec = complete_spec("kinds:fat=4core+1accelerator,thin=2core", DEFAULTS)
    assert spec == "kinds:4core+1accelerator@4,2core@4"
    assert place_ranks(spec, 24).tolist() == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 5 + [4, 4, 5, 5]
    assert list_devices(spec, 24).tolist() == (["core"] * 4 + ["accelerator"]) * 4 + ["core"] * 4
    assert complete_spec("kinds:thin=2core", DEFAULTS) == "kinds:0@4,2core@4"
    assert place_ranks("kinds:0@4,2core@4", 3).tolist() == [4, 4, 5]
    assert list_devices("block:2", 4) is None


@given(Q, st.integers(1, 200))
def test_block_cyclic_with_block_size_q_is_block_and_with_1_is_cyclic(per_node, ranks):
    assert (
        place_ranks(f"block-cyclic:{per_node}x{per_node}", ranks).tolist()
        == place_ranks(f"block:{per_node}", ranks).tolist()
    )
    assert (
        place_ranks(f"block-cyclic:{per_node}x1", ranks).tolist()
        == place_ranks(f"cyclic:{per_node}", ranks).tolist()
    )


def test_omitted_parts_of_a_layout_come_from_the_platform():
    assert complete_spec("block", DEFAULTS) == "block:4"
    assert complete_spec("cyclic:2", DEFAULTS) == "cyclic:2"
    assert complete_spec("cyclic", DEFAULTS, requested=4) == "cyclic:4"
    assert "do not agree" in catch_error_message(complete_spec, "block:2", DEFAULTS, 4)
    assert "do not agree" in catch_error_message(complete_spec, "random:2@1", DEFAULTS, 4)
    assert "ranks_per_node" in catch_error_message(complete_spec, "kinds:fat=2core", DEFAULTS, 2)


@pytest.mark.parametrize(
    "spec",
    [
        *[
            "blok:2",
            "block:0",
            "block:-1",
            "block:two",
            "cyclic:1.5",
            "block-cyclic:4",
            "block-cyclic:4x3",
        ],
        *[
            "block-cyclic:",
            "random:2",
            "random:2@x",
            "random:@1",
            "file:/no/such/file",
            "file:a\0b",
            "file:",
            "processes:/no/such/file",
            "kinds:",
            "kinds:4core",
        ],
        *[
            "kinds:4cor@2",
            "kinds:core@2",
            "kinds:4core@0",
            "kinds:fat=4core",
            "kinds:1core@1",
            "kinds:0@4",
        ],
    ],
)
def test_a_wrong_layout_is_refused_in_one_line(spec):
    catch_error_message(place_ranks, spec, 4)


def platform(tmp_path, text: str) -> PlatformResources:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return make_resources(load_platform(path))


def test_a_layout_has_to_fit_the_platform(tmp_path):
    resources = platform(
        tmp_path,
        "launcher: slurm\nnodes: 4\ncores: 4\ntypes: {fat: 2, thin: 2}\nslurm: {features: {fat: f, thin: t}}\n",
    )

    def layout(spec, ranks):
        wanted = {"operation": "barrier", "algorithm": "linear", "ranks": ranks, "layout": spec}
        point = make_point(resources, wanted)
        return point.layout, point.nodes

    assert layout("kinds:fat=3core+1accelerator,thin=2core", 10) == (
        "kinds:3core+1accelerator@2,2core@2",
        3,
    )
    assert layout("kinds:thin=2core", 2) == ("kinds:0@2,2core@2", 3)
    assert layout("random:2@1", 8) == ("random:2@1", 4)
    assert "need 2 nodes of 5 cores; platform 'mine' has 4 of 4" in catch_error_message(
        layout, "kinds:fat=5core", 6
    )
    assert "need 5 nodes" in catch_error_message(layout, "random:2@1", 10)
    assert "room for 8" in catch_error_message(layout, "kinds:fat=4core", 9)


def test_nodes_of_a_type_may_have_fewer_cores(tmp_path):
    text = (
        "launcher: simgrid\nnodes: 3\ncores: 4\ntypes: {fat: 2, thin: 1}\nfewer_cores: {thin: 2}\n"
    )
    (tmp_path / "net.xml").write_text(NETWORK)
    resources = platform(tmp_path, text + "simgrid: {file: net.xml}\n")

    def fits(spec, ranks):
        return complete_layout(resources, spec, ranks).obstacle

    assert not fits("block:4", 10)
    assert fits("block:4", 11) == "as block:4 need 3 cores of node 2; platform 'mine' has 2 there"


def test_case_files_of_program_starts_of_different_layouts_have_different_names():
    layouts = [
        "block:2",
        "cyclic:2",
        "block-cyclic:4x2",
        "random:2@1",
        "random:2@11",
        "file:a/b",
        "file:a_b",
        "kinds:1core@2",
    ]
    names = {Start("player", 4, layout, (), ()).name for layout in layouts}
    assert len(names) == len(layouts)
    assert all(re.fullmatch("[a-z0-9-]+", name) for name in names)
    assert "player-4r-block2" in names


def test_host_names_of_a_platform_become_node_numbers(tmp_path):
    hosts = platform(tmp_path, "launcher: hosts\nnodes: 2\ncores: 2\nhosts: {names: [x, y, z]}\n")
    assert hosts.hosts == ("x", "y")
    (tmp_path / "ranks.txt").write_text("y\nx\n")
    assert complete_layout(hosts, f"file:{tmp_path / 'ranks.txt'}", 2).layout.endswith(
        "ranks.txt@1,0"
    )


@given(
    st.sampled_from([*SPECS, "file", "processes"]),
    st.text("0123456789@x:,.=+ coreatnl", max_size=9) | st.text(max_size=9),
)
@settings(deadline=None)
def test_no_text_gives_a_traceback(name, text):
    with suppress(UserError):
        assert len(place_ranks(complete_spec(f"{name}:{text}", DEFAULTS), 5)) == 5


LEVELS = (("leaf", (0, 1, 0, 1, 0, 1)), ("group", (0, 0, 0, 0, 0, 0)))


@pytest.mark.parametrize(
    ("spec", "written", "nodes"),
    [
        ("pack:leaf", "pack:leaf:1@0+2+4/1+3+5", [0, 2, 4, 1]),
        ("pack:leaf:2", "pack:leaf:2@0+2+4/1+3+5", [0, 0, 2, 2]),
        ("scatter:leaf", "scatter:leaf:1@0+2+4/1+3+5", [0, 1, 2, 3]),
        ("scatter:leaf:2", "scatter:leaf:2@0+2+4/1+3+5", [0, 1, 0, 1]),
        ("scatter:group:2", "scatter:group:2@0-5", [0, 0, 1, 1]),
    ],
)
def test_layouts_by_level_are_filled_in_from_the_platform(spec, written, nodes):
    assert complete_spec(spec, PlatformDefaults(levels=LEVELS)) == written
    assert place_ranks(written, 4).tolist() == nodes


@pytest.mark.parametrize(
    ("layout", "levels_crossed"),
    [
        ("block:2", "node"),
        ("pack:leaf", "node/leaf"),
        ("scatter:leaf", "node/leaf/group"),
    ],
)
def test_a_point_has_the_farthest_distance_class_of_the_ranks(layout, levels_crossed):
    combination = {
        "operation": "bcast",
        "algorithm": "linear",
        "ranks": 2,
        "bytes": 8,
        "layout": layout,
    }
    resources = PlatformResources("p", nodes=6, cores=2, levels=LEVELS)
    points = [make_point(resources, combination)]
    assert [point.reach for point in [*points, *make_library_points(resources, points)]] == [
        levels_crossed
    ] * 2
    flat = make_point(
        PlatformResources("p", nodes=6, cores=2), combination | {"layout": points[0].layout}
    )
    assert (flat.reach, flat.id) == ("", points[0].id)


def test_a_layout_by_level_skips_full_groups():
    assert place_ranks("scatter:leaf:1@0/1-3", 4).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ("pack:leaf", "whose file has `levels`"),
        ("pack:leaf:1@0-3/3", "every node once"),
        ("pack:leaf:0@0-3", "Q ranks a node"),
        ("scatter:leaf:1@3-0", "groups of nodes"),
        ("scatter:leaf:1@0", "has room for 1"),
        ("nodes:0x4", "places 4"),
        ("nodes:0x", "wanted nodes:NODE"),
        ("nodes:0x99999999", "at most"),
    ],
)
def test_a_wrong_layout_by_level_is_refused_with_the_reason(spec, wanted):
    assert wanted in catch_error_message(place_ranks, spec, 2)


HEADER = "rank,node,cores,device\n"
TYPES = {"fat": 1, "thin": 2}
HOSTS = PlatformDefaults(hosts=("a", "b", "c", "d"))


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a rank file, or a table of processes, and returns its
    layout."""

    def write(text: str) -> str:
        (tmp_path / "mine.csv").write_text(text)
        return f"{'processes' if text.startswith('rank,') else 'file'}:{tmp_path / 'mine.csv'}"

    return write


def test_processes_have_nodes_cores_and_kinds(written):
    spec = written(HEADER + "0,0,6,cpu\n1,0,1,gpu\n\n2,2,3,cpu\n")
    assert place_ranks(spec, 3).tolist() == [0, 0, 2]
    assert list_cores(spec, 3).tolist() == [6, 1, 3]
    assert list_devices(spec, 3).tolist() == ["core", "accelerator", "core"]
    assert list_process_kinds(spec, 3, TYPES) == ["fat/6", "fat/gpu", "thin/3"]
    assert list_process_kinds(spec, 3, {}) == ["node/6", "node/gpu", "node/3"]
    assert (count_layout_ranks(spec), assigns_cores(spec)) == (3, True)
    assert "found a node beyond the 2 of the platform's types" in catch_error_message(
        list_process_kinds, spec, 3, {"fat": 2}
    )


def test_other_layouts_have_one_core_a_rank():
    assert list_cores("block:2", 3).tolist() == [1, 1, 1]
    assert list_process_kinds("block:2", 3, TYPES) == ["fat/1", "fat/1", "thin/1"]
    assert list_process_kinds("kinds:1core+1accelerator@1,1core@2", 3, TYPES) == [
        "fat/1",
        "fat/gpu",
        "thin/1",
    ]
    assert (count_layout_ranks("block:2"), assigns_cores("block:2")) == (None, False)


def test_hosts_of_a_process_table_are_mapped_to_nodes_of_the_platform(written):
    spec = complete_spec(
        written(HEADER + "0,c,2,cpu\n1,a,2,cpu\n"),
        PlatformDefaults(hosts=("a", "b", "c"), max_cores=2),
    )
    assert spec.endswith("mine.csv@2,0")
    assert place_ranks(spec, 2).tolist() == [2, 0]
    assert list_cores(spec, 2).tolist() == [2, 2]


def test_a_process_table_that_uses_more_cores_than_a_node_has_is_refused(written):
    spec = written(HEADER + "0,0,6,cpu\n1,1,5,cpu\n2,0,6,cpu\n3,1,1,gpu\n")
    room = {"types": (("fat", 1), ("thin", 1)), "max_cores": 12}
    assert complete_spec(spec, PlatformDefaults(**room, fewer_cores=(("thin", 6),))) == spec
    assert (
        "mine.csv:5: found 6 cores in use on node 1, wanted at most its 5"
        in catch_error_message(
            complete_spec, spec, PlatformDefaults(**room, fewer_cores=(("thin", 5),))
        )
    )
    assert (
        "mine.csv:4: found 12 cores in use on node 0, wanted at most its 11"
        in catch_error_message(complete_spec, spec, PlatformDefaults(max_cores=11))
    )


def test_a_process_table_with_more_gpus_than_a_node_has_is_refused(written):
    spec = written(HEADER + "0,0,1,gpu\n1,1,1,gpu\n2,0,1,cpu\n3,1,1,gpu\n")
    assert complete_spec(spec, PlatformDefaults(gpus=((NODE, 2),))) == spec
    text = catch_error_message(complete_spec, spec, PlatformDefaults(gpus=((NODE, 1),)))
    assert "mine.csv:5: device: found 2 times device gpu on node 1, wanted at most 1 GPU" in text
    typed = PlatformDefaults(types=(("fat", 1), ("thin", 1)), gpus=(("fat", 2),))
    text = catch_error_message(complete_spec, spec, typed)
    assert "mine.csv:3: device: found 1 times device gpu on node 1, wanted at most 0 GPUs" in text


def test_processes_share_a_gpu_by_its_number(written):
    spec = written(
        HEADER + "0,0,1,gpu:0\n1,0,0,gpu:0\n2,0,1,gpu:2\n3,1,1,gpu\n4,1,1,gpu\n5,1,1,cpu\n"
    )
    assert complete_spec(spec, PlatformDefaults(gpus=((NODE, 3),))) == spec
    assert list_gpus(spec, 6) == (0, 0, 2, 0, 1, -1)
    assert list_cores(spec, 6).tolist() == [1, 0, 1, 1, 1, 1]
    assert list_process_kinds(spec, 6, {}) == [
        "node/gpu/2",
        "node/gpu/2",
        "node/gpu",
        "node/gpu",
        "node/gpu",
        "node/1",
    ]
    text = catch_error_message(complete_spec, spec, PlatformDefaults(gpus=((NODE, 2),)))
    assert "mine.csv:4: device: found gpu:2 on node 0, wanted at most 2 GPUs" in text
    assert "processes share a GPU as gpu:0" in text


def test_a_process_without_a_core_of_its_own_fits_where_all_cores_are_in_use(written):
    spec = written(HEADER + "0,0,0,gpu\n1,0,1,cpu\n2,0,1,cpu\n")
    resources = PlatformResources("two", nodes=1, cores=2)
    assert complete_layout(resources, spec, 3).obstacle == ""
    more = written(HEADER + "0,0,0,gpu\n1,0,2,cpu\n2,0,1,cpu\n")
    text = catch_error_message(complete_spec, more, PlatformDefaults(max_cores=2))
    assert "found 3 cores in use on node 0, wanted at most its 2" in text


def test_a_process_table_sets_the_ranks_and_the_cores_change_the_point_id(written):
    def point(text: str):
        wanted = {
            "operation": "bcast",
            "algorithm": "binomial",
            "bytes": 8,
            "layout": written(HEADER + text),
        }
        (own,) = add_digests([make_point(PlatformResources("p", 2, 8), wanted)])
        return own

    before, after = point("0,0,6,cpu\n1,1,2,cpu\n"), point("0,0,6,cpu\n1,1,3,cpu\n")
    assert before.ranks == 2
    assert before.id != after.id
    assert before.id == point("0,0,6,cpu\n1,1,2,cpu\n").id


def test_rank_files(written):
    rankfile = written("# mine\nrank 1=x slot=0\nrank 0=y slot=0:1-2\nrank 2=x slot=1\n")
    assert place_ranks(rankfile, 3).tolist() == [1, 0, 0]  # as they appear
    assert place_ranks(written("y\n\nx\ny\n"), 3).tolist() == [0, 1, 0]
    assert place_ranks(written("3\n0\n3\n"), 3).tolist() == [3, 0, 3]
    assert place_ranks(written("rank 0=+n2 slots=1\nrank 1=+n0 slots=1\n"), 2).tolist() == [2, 0]


def test_hosts_of_a_rank_file_are_mapped_to_nodes_of_the_platform(written):
    spec = complete_spec(written("rank 0=c slot=0\nrank 1=a slot=0\nrank 2=c slot=1\n"), HOSTS)
    assert spec.endswith("mine.csv@2,0")
    assert place_ranks(spec, 3).tolist() == [2, 0, 2]
    assert complete_spec(spec, HOSTS) == spec
    assert "mine.csv:2: found host 'e'" in catch_error_message(
        complete_spec, written("a\ne\n"), HOSTS
    )


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("rank,node,cores\n0,0,1\n", 1, "no column 'device'"),
        (HEADER, None, "no rows"),
        (HEADER + "0,0,1\n", 2, "device: found '', wanted cpu, gpu, or"),
        (HEADER + "0,0,1,cpu\n2,0,1,cpu\n", 3, "found rank 2, but none 1"),
        (HEADER + "0,0,1,cpu\n0,0,1,cpu\n", 3, "found rank 0 again, first on line 2"),
        (HEADER + "0,-1,1,cpu\n1,x/y,1,cpu\n", 3, "node: found 'x/y'"),
        (
            HEADER + "0,0,1,cpu\n1,a,1,cpu\n",
            3,
            "found 'a', wanted all hosts by name or all by number",
        ),
        (HEADER + "0,0,0,cpu\n", 2, "cores: found '0', wanted a whole number from 1"),
        (HEADER + "0,0,1.5,cpu\n", 2, "cores: found '1.5'"),
        (HEADER + "0,0,²,cpu\n", 2, "cores"),
        (HEADER + "0,0,99999,cpu\n", 2, "cores: found 99999, wanted at most 65536"),
        (HEADER + "0,0,2,gpu\n", 2, "cores: found 2, wanted at most 1 for a gpu"),
        (HEADER + "0,0,-1,gpu\n", 2, "cores: found '-1', wanted 1, or 0 without a core of its own"),
        (
            HEADER + "0,0,1,gpu:\n",
            2,
            "device: found 'gpu:', wanted cpu, gpu, or a GPU by its number",
        ),
        (HEADER + "0,0,1,gpu:0\n1,0,1,gpu\n", 3, "device: found devices gpu and gpu:N on node 0"),
        (HEADER + "0,0,1,tpu\n", 2, "device: found 'tpu', wanted cpu, gpu, or"),
        (HEADER + '0,"0,1,cpu\n', 2, "found '0,1,cpu'"),
        (HEADER + "0,99999999,1,cpu\n", 2, "found node 99999999"),
        (HEADER + "0,0,1,=cmd()\n", 2, "device: found '=cmd()'"),
        (HEADER + "0,0,1,cpu\n", None, "found 1 ranks, wanted 2"),
        ("rank 0=a slot=0\nrank 0=b slot=0\n", 2, "first on line 1"),
        ("rank 0=a slot=0\nrank 2=b slot=0\n", 2, "none 1"),
        ("rank 0=a slot=0\nb\n", 2, "in every line"),
        ("a\n\nrank 1=b\n", 3, "in every line"),
        ("a\n$(id)\n", 2, "$(id)"),
        ("rank x=a\n", 1, "wanted"),
        ("a\n1\n", 2, "by number"),
        ("99999999\n0\n", 1, "99999999"),
        ("\n", None, "no ranks"),
        ("a\nb\nc\n", None, "found 3 ranks, wanted 2"),
    ],
)
def test_a_mistake_in_a_file_is_reported_with_the_line_number(text, line, word, written):
    spec = written(text)
    found = catch_error_message(place_ranks, spec, 2)
    assert word in found
    path = spec.partition(":")[2]
    assert found.startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_a_changed_rank_file_is_another_point(written):
    def point():
        barrier = {"operation": "barrier", "algorithm": "linear", "ranks": 4}
        return add_digests([make_point(PlatformResources.unlimited(), barrier | layout)])[0]

    layout = {"layout": written("0\n0\n1\n1\n")}
    first = point()
    written("0\n1\n1\n0\n\n")
    assert point().layout == first.layout
    assert point().id != first.id
    assert first.nodes == 2


def test_the_process_table_of_a_layout_is_listed_as_an_input_file(written):
    """The suffix `@1,0` (nodes) of a complete spec is not part of the path."""
    spec = written(HEADER + "0,a,1,cpu\n1,b,1,cpu\n")
    wanted = {"operation": "bcast", "algorithm": "binomial", "bytes": 8, "layout": spec}
    point = make_point(PlatformResources("p", 2, 1, hosts=("b", "a")), wanted)
    assert point.layout.endswith("@1,0")
    assert list(list_named_files([point])) == [("layout", spec.partition(":")[2])]


def make_traffic(operation, algorithm, ranks, size=4096):
    point = make_point(
        PlatformResources.unlimited(),
        {"operation": operation, "algorithm": algorithm, "ranks": ranks, "bytes": size},
    )
    return make_traffic_graph(build_schedule(point))


def crossing(weights, node, hierarchy=None):
    """Return the traffic between nodes, or between the outermost groups of a hierarchy."""
    group = node if hierarchy is None else list(hierarchy.groups.values())[-1][node]
    dense = weights.toarray()
    return dense[group[:, None] != group].sum() / 2


def test_a_grid_is_cut_into_tiles():
    """8×8 ranks on four nodes of 16: nodes of two rows have 3 × 8 pairs across nodes, tiles of 4×4
    have 2 × 8."""
    weights = make_traffic("halo:grid=8x8", "nonblocking", 64)
    rows, pair = np.arange(64) // 16, weights.max()
    assert crossing(weights, rows) == pytest.approx(24 * pair)
    assert crossing(weights, map_ranks(weights, rows)) == pytest.approx(16 * pair)


def test_mapping_places_heavy_pairs_of_shuffled_ranks_on_one_node():
    """16 disjoint pairs with heavy traffic, under a random rank numbering."""
    shuffled = np.random.default_rng(3).permutation(32)
    dense = np.zeros((32, 32))
    for rank, partner in zip(shuffled[0::2], shuffled[1::2], strict=True):
        dense[rank, partner] = dense[partner, rank] = 1.0
    node = map_ranks(csr_array(dense), np.arange(32) // 2)
    assert crossing(csr_array(dense), node) == 0


def test_mapping_keeps_clusters_of_ranks_within_groups_of_nodes():
    """Two clusters of ranks with heavy internal traffic are mapped to the two leaves, although node
    numbers alternate between leaves."""
    hierarchy = Hierarchy.of({"leaf": [0, 1, 0, 1]})
    dense = np.full((16, 16), 1.0)
    odd = np.arange(16) % 2 == 1
    dense[odd[:, None] == odd] = 50.0
    np.fill_diagonal(dense, 0)
    node = map_ranks(csr_array(dense), np.arange(16) // 4, list(hierarchy.groups.values()))
    assert crossing(csr_array(dense), node, hierarchy) == 64
    assert (
        len({tuple(sorted(set(node[odd]))), tuple(sorted(set(node[~odd])))} & {(0, 2), (1, 3)}) == 2
    )


@pytest.mark.parametrize(
    ("operation", "algorithm", "ranks"),
    [
        ("bcast", "binomial", 64),
        ("allgather", "ring", 48),
        ("alltoall", "pairwise", 16),
        ("halo:grid=16x16", "shift", 256),
    ],
)
def test_mapping_never_sends_more_between_nodes_than_block(operation, algorithm, ranks):
    weights, slots = make_traffic(operation, algorithm, ranks), np.arange(ranks) // 8
    assert crossing(weights, map_ranks(weights, slots)) <= crossing(weights, slots) * (1 + 1e-9)


@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_mapping_uses_every_slot_once(ranks, per_node, seed):
    rng = np.random.default_rng(seed)
    dense = rng.random((ranks, ranks)) * (rng.random((ranks, ranks)) < 0.2)
    slots = np.arange(ranks) // per_node
    group_of_node = rng.integers(0, 3, slots.max() + 1)
    node = map_ranks(csr_array(dense + dense.T), slots, [group_of_node])
    assert np.bincount(node).tolist() == np.bincount(slots).tolist()
    assert place_ranks(make_nodes_spec(node), ranks).tolist() == node.tolist()


# Nodes of 12 and of 8 cores; processes on 6, 5, 4, 3 and 2 cores, GPU processes, all
TABLE_1 = {
    "M1": (1, 0, 2, 0, 0, 0, 0, 0, 2),
    "M2": (2, 0, 3, 1, 0, 0, 0, 1, 5),
    "M3": (2, 1, 3, 1, 2, 0, 0, 1, 7),
    "M4": (3, 1, 4, 1, 3, 0, 0, 3, 11),
    "M5": (3, 2, 4, 1, 4, 1, 0, 4, 14),
    "M6": (3, 3, 4, 1, 5, 1, 1, 6, 18),
    "M7": (4, 3, 6, 1, 5, 1, 1, 6, 20),
    "M8": (8, 0, 11, 3, 2, 0, 0, 7, 23),
    "M9": (9, 0, 12, 3, 3, 0, 0, 9, 27),
    "M10": (9, 1, 12, 3, 5, 0, 0, 9, 29),
    "M11": (9, 2, 12, 3, 6, 1, 0, 10, 32),
    "M12": (9, 3, 12, 3, 7, 1, 1, 12, 36),
    "M13": (9, 4, 12, 3, 9, 1, 1, 12, 38),
    "M14": (9, 5, 12, 3, 10, 2, 1, 13, 41),
    "M15": (9, 6, 12, 3, 11, 2, 2, 15, 45),
    "M16": (9, 7, 12, 3, 13, 2, 2, 15, 47),
}
FERMI = load_platform(find_config_file("platform", "fermi", ROOT))


def test_all_layouts_of_table_1_exist():
    assert {path.stem for path in ROOT.glob("params/layouts/fermi/*.csv")} == set(TABLE_1)


@pytest.mark.parametrize("name", TABLE_1)
def test_layouts_of_table_1(name):
    fat, thin, *processes, gpu, total = TABLE_1[name]
    spec = f"processes:{ROOT}/params/layouts/fermi/{name}.csv"
    resources = make_resources(FERMI)
    kinds = list_process_kinds(
        complete_spec(
            spec,
            PlatformDefaults(
                types=resources.types, max_cores=12, fewer_cores=resources.fewer_cores
            ),
        ),
        total,
        FERMI.types,
    )
    cores_of_process, node = list_cores(spec, total), place_ranks(spec, total)
    processes_by_cores = Counter(
        count
        for count, kind in zip(cores_of_process, kinds, strict=True)
        if not kind.endswith("gpu")
    )
    assert [processes_by_cores[count] for count in (6, 5, 4, 3, 2)] == processes
    assert sum(kind.endswith("gpu") for kind in kinds) == gpu
    assert (len(kinds), count_layout_ranks(spec)) == (total, total)
    used = np.unique(node)
    assert (np.sum(used < 9), np.sum(used >= 9)) == (fat, thin)
    # no core is left over
    assert np.bincount(node, cores_of_process)[used].tolist() == [12] * fat + [8] * thin
