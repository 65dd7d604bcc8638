"""Every filter over random trees, compared with plain Python."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.overlay.building import CHECKED, FLAGS, SOURCES, build_filters, run_clean
from tests.overlay.conftest import flat, kary
from tests.overlay.wire import classes, leaves_of, reduced, sent

FORMATS = [
    "%d",
    "%ld",
    "%uld",
    "%ud",
    "%hd",
    "%f",
    "%lf",
    "%ad",
    "%ald",
    "%aud",
    "%af",
    "%alf",
    "%ahd",
]
STRINGS = ["%s", "%as", "%c", "%ac", "%auc", "%uhd"]


@st.composite
def trees(draw):
    """Draw the parent of each node of a tree of up to 201 nodes of any shape; -1 for the root."""
    nodes = draw(st.one_of(st.integers(2, 12), st.integers(2, 120), st.just(201)))
    near = draw(st.sampled_from((1, 3, 1000)))  # chains, bushes, flat trees
    if nodes == 201:
        return [-1, *[0] * 200]
    return [-1, *(draw(st.integers(max(0, node - near), node - 1)) for node in range(1, nodes))]


def table(parents: list[int]) -> str:
    return "node,parent\n" + "".join(
        f"{node},{parent if node else ''}\n" for node, parent in enumerate(parents)
    )


def check(answer: dict, name: str, formats: list[str], packets: list[list]) -> None:
    assert answer["leaves"] == len(packets)
    assert answer["source"] == 0
    wanted = reduced(name, packets)
    if name == "concat":
        assert answer["format"].split() == [
            word if word[1] == "a" else "%a" + word[1:] for word in formats
        ]
    elif name == "average":
        assert answer["format"].split() == ["%alf" if word[1] == "a" else "%lf" for word in formats]
        got = [
            x for value in answer["values"] for x in (value if isinstance(value, list) else [value])
        ]
        flat_wanted = [
            x for value in wanted for x in (value if isinstance(value, list) else [value])
        ]
        assert got == pytest.approx(flat_wanted, rel=1e-12, abs=1e-12)
        return
    else:
        assert answer["format"].split() == formats
    assert answer["values"] == wanted


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(
    trees(),
    st.lists(st.sampled_from(FORMATS), min_size=1, max_size=4),
    st.integers(0, 4),
    st.integers(0, 1 << 30),
)
def test_filters_over_random_trees(start, parents, formats, count, seed):
    tool = start(table(parents))
    leaves = leaves_of(parents)
    assert tool.up["names"] == [str(node) for node in leaves]
    packets = [
        [sent(seed, backend, wave, count, formats) for backend in range(len(leaves))]
        for wave in range(2)
    ]
    for number, name in enumerate(("min", "max", "sum", "average", "concat")):
        tool.execute_ok(f"open {name} 0 0 0")
        tool.execute_ok(f"ask {number} {seed} 2 {count} {' '.join(formats)}")
    for number, name in enumerate(("min", "max", "sum", "average", "concat")):
        for wave in range(2):
            check(tool.execute_ok(f"recv {number} 30"), name, formats, packets[wave])
    tool.execute_ok("open bin 0 0 0")
    tool.execute_ok(f"ask 5 {seed} 1 1 %uld")
    checksums = {backend: sent(seed, backend, 0, 1, ["%uld"])[0] for backend in range(len(leaves))}
    assert tool.execute_ok("recv 5 30")["values"] == classes(checksums)
    assert tool.end() == 0


@pytest.mark.parametrize(
    "topology",
    [flat(5), kary(2, 2), "h:0 => h:1 ;\nh:1 => h:2 ;\n", "a:0 => b:0 c:0 ;\nc:0 => d:0 e:0 f:0 ;"],
)
def test_every_type_is_packed_sent_and_joined(start, topology):
    tool = start(topology, checked=True)
    formats = FORMATS + STRINGS
    leaves = tool.up["backends"]
    tool.execute_ok("open concat 0 0 0")
    tool.execute_ok(f"ask 0 3 1 3 {' '.join(formats)}")
    check(
        tool.execute_ok("recv 0 30"),
        "concat",
        formats,
        [sent(3, backend, 0, 3, formats) for backend in range(leaves)],
    )
    tool.execute_ok("open sum 0 0 0")
    tool.execute_ok(f"ask 1 3 1 5 {' '.join(FORMATS)}")
    check(
        tool.execute_ok("recv 1 30"),
        "sum",
        FORMATS,
        [sent(3, backend, 0, 5, FORMATS) for backend in range(leaves)],
    )


@pytest.mark.parametrize(
    ("name", "formats", "why"),
    [
        ("sum", "%s", "found a string"),
        ("bin", "%d", "wanted a checksum"),
        ("work:soon", "%d", "wanted seconds"),
        ("usage", "%d", "wanted '%lf'"),
        ("OWN", "%d", "the third wave is too much"),
        ("OWN:internal", "%d", "internal processes only"),
        ("OWN:root", "%d", "the front-end only"),
    ],
)
def test_a_failing_filter_ends_only_that_stream(start, own_filter, name, formats, why):
    """On every error path: the stream reports the reason, no process is lost, and a second stream
    still works."""
    tool = start(kary(2, 2), checked=True)
    tool.execute_ok("open sum 0 0 0")
    tool.execute_ok(f"open {name.replace('OWN', str(own_filter))} 0 0 0")
    tool.execute_ok(f"ask 1 1 3 1 {formats}")
    answer = tool.execute("recv 1 30")
    while answer["code"] == "ok":
        answer = tool.execute("recv 1 30")
    assert answer["code"] == "failed"
    assert why in answer["error"]
    assert_ended_alone(tool)


def assert_ended_alone(tool):
    assert tool.execute("ask 1 1 1 1 %d")["code"] == "failed"
    tool.execute_ok("close 1")
    tool.execute_ok("ask 0 1 1 1 %d")
    assert tool.execute_ok("recv 0 30")["leaves"] == 4
    assert tool.execute_ok("lost 0")["lost"] == []


def test_a_filter_missing_on_other_processes_ends_only_that_stream(start, own_filter):
    tool = start(kary(2, 2), checked=True)
    tool.execute_ok("open sum 0 0 0")
    tool.execute_ok(f"open {own_filter} 0 0 0")  # sent with the next turn
    own_filter.unlink()
    answer = tool.execute("recv 1 30")
    assert answer["code"] == "failed"
    assert "own.so: cannot open" in answer["error"]
    assert_ended_alone(tool)


def test_unknown_filters_are_refused_at_once(start):
    tool = start(flat(2))
    answer = tool.execute("open median 0 0 0")
    assert answer["code"] == "failed"
    assert "found the filter 'median', wanted none, min" in answer["error"]
    assert "no-such.so" in tool.execute("open ./no-such.so 0 0 0")["error"]


def test_the_work_filter_takes_the_given_time_at_every_level(start):
    tool = start("h:0 => h:1 ;\nh:1 => h:2 ;\nh:2 => h:3 h:4 ;\n")
    tool.execute_ok("open work:0.05 0 0 0")
    assert tool.execute_ok("pump 0 2")["seconds"] >= 2 * 3 * 0.05


def test_usage_adds_processor_seconds_of_all_processes(start):
    tool = start(kary(2, 2))
    tool.execute_ok("open work:0.1 0 0 0")
    tool.execute_ok("pump 0 2")
    tool.execute_ok("open usage 0 0 0")
    tool.execute_ok("ask 1 5 1 1 %lf")
    numbers = sum(sent(5, backend, 0, 1, ["%lf"])[0] for backend in range(4))
    seconds = tool.execute_ok("recv 1 30")["values"][0] - numbers
    # 0.6 on an idle machine; who waits for a processor meanwhile uses less
    assert 0.01 < seconds < 60


OWN = """
#include "overlay.h"
#include <stdlib.h>
#include <string.h>
int overlay_filter(OverlayWave *wave)
{
  uint32_t *waves = wave->state ? wave->state : calloc(1, sizeof *waves);
  wave->state = waves;
  if (!strcmp(wave->argument, "internal") && !wave->root) return overlay_fail("internal processes only");
  if (!strcmp(wave->argument, "root") && wave->root) return overlay_fail("the front-end only");
  OverlayValue values[] = {{.ud = ++*waves}, {.ud = (uint64_t)wave->count}, {.s = wave->argument}};
  if (*waves == 3 && strcmp(wave->argument, "root")) return overlay_fail("the third wave is too much");
  return overlay_emit(wave, "%ud %ud %s", values);
}
void overlay_filter_end(void *state) { free(state); }
"""


@pytest.fixture
def own_filter(tmp_path, checked_programs):
    (tmp_path / "own.c").write_text(OWN)
    return build_filters(tmp_path / "own.c", tmp_path / "own.so", CHECKED)


def test_an_own_filter_has_a_state_of_each_stream(start, own_filter):
    tool = start(kary(3, 2), checked=True)
    for stream in range(2):
        tool.execute_ok(f"open {own_filter}:x=1 0 0 0")
        tool.execute_ok(f"ask {stream} 1 2 1 %d")
        for wave in (1, 2):
            assert tool.execute_ok(f"recv {stream} 30")["values"] == [wave, 3, "x=1"]
    tool.execute_ok("ask 0 1 1 1 %d")
    answer = tool.execute("recv 0 30")
    assert answer["code"] == "failed"
    assert "the third wave is too much" in answer["error"]


@pytest.mark.parametrize("how", [0, 1])
def test_skews_of_clocks_are_found(start, how):
    offsets = [0, 0.5, -3, 12.25, 1000, -0.125, 7]  # by node, depth first
    tool = start(kary(2, 2), OVERLAY_CLOCKS=",".join(map(str, offsets)))
    leaves = (2, 3, 5, 6)
    answer = tool.execute_ok(f"skew {how} 30")
    assert answer["seconds"] == pytest.approx([offsets[node] for node in leaves], abs=0.005)
    for node, seconds, uncertainty in zip(
        leaves, answer["seconds"], answer["uncertainty"], strict=True
    ):
        assert 0 < uncertainty < 0.1
        # which doubles of a date do not hold
        assert abs(seconds - offsets[node]) <= uncertainty + 2e-6


def test_skews_go_on_without_lost_back_ends(start):
    tool = start(kary(2, 2))
    tool.execute_ok("open none 2 0 0")
    tool.execute_ok("tell 0 kill 0 1")
    for how in (0, 1):
        for _ in range(100):
            seconds = tool.execute_ok(f"skew {how} 5")["seconds"]
            if math.isnan(seconds[1]):
                break
        assert [math.isnan(value) for value in seconds] == [False, True, False, False]


FRAMES = r"""
#include "frames.h"
#include <assert.h>
#include <stdlib.h>
static OverlayPacket *came;
static void emit(void *target, const OverlayPacket *packet)
{
  void *copy = frame_copy(packet);
  came = packet_of_frame(copy, frame_bytes(packet));
  free(copy), (void)target;
}
int main(void)
{
  void *state = NULL;
  OverlayPacket *in[2], *sent = overlay_pack(FIRST_TAG, "%d", 21);
  for (int i = 0; i < 2; i++) in[i] = packet_from(sent, 5 - i);
  int sum = 0;
  assert(reduce_wave(&state, "sum", in, 2, emit, NULL) == OVERLAY_OK && came);
  assert(overlay_unpack(came, "%d", &sum) == OVERLAY_OK && sum == 42 && overlay_tag(came) == FIRST_TAG);
  assert(overlay_source(came) == 4 && overlay_leaves(came) == 2);
  assert(!packet_of_frame(came, 8) && reduce_wave(&(void *){NULL}, "no such", in, 2, emit, NULL) != OVERLAY_OK);
  return 0;
}
"""


def test_packets_and_filters_for_processes_of_mrnet(overlay_programs, tmp_path):
    """The sources for MRNet are compiled and run without MRNet."""
    (tmp_path / "frames.c").write_text(FRAMES)
    folder = SOURCES.parent / "mrnet"
    sources = [
        tmp_path / "frames.c",
        folder / "frames.c",
        overlay_programs / "liboverlay.a",
        "-ldl",
        "-lm",
        "-lpthread",
    ]
    run_clean(["cc", *FLAGS, "-I", SOURCES, "-I", folder, *sources, "-o", tmp_path / "frames"])
    run_clean([tmp_path / "frames"])
