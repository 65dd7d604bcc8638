"""Filters at each level, parameters of running streams, waves made by user functions, and filter
state that survives a loss."""

import subprocess
import sys

import pytest

from commodel.platforms.tools import ROOT
from tests.overlay.building import CHECKED, FLAGS, SOURCES, build_filters, run_clean
from tests.overlay.conftest import kary, kill
from tests.overlay.wire import sent
from tests.processes import command_name

EXAMPLES = ROOT / "examples" / "overlay"
LINES = [
    "0 ms: 4 of 4 above, 4 so far",
    "1500 ms: 2 of 4 above, 6 so far",
    "2500 ms: 1 of 4 above, 7 so far",
]

OWN = """
#include "overlay.h"
#include <stdlib.h>
#include <string.h>
/* What a process has added up so far; nothing but every tenth wave goes up. */
int tenth(OverlayWave *wave)
{
  int64_t *sums = wave->state ? wave->state : calloc(2, sizeof *sums), value;
  wave->state = sums;
  for (int i = 0; i < wave->count; i++) {
    if (overlay_unpack(wave->in[i], "%ld", &value) != OVERLAY_OK) return OVERLAY_FAILED;
    sums[0] += value;
  }
  if (!wave->root && ++sums[1] % 10) return OVERLAY_OK;
  int64_t sum = sums[0];
  sums[0] = 0;
  return overlay_emit(wave, "%ld", &(OverlayValue){.d = sum});
}
void tenth_end(void *state) { free(state); }
OverlayPacket *tenth_save(void *state) { return overlay_pack(0, "%ld", *(int64_t *)state); }
int tenth_load(void **state, OverlayPacket *saved)
{
  int64_t *sums = *state ? *state : calloc(2, sizeof *sums), sum;
  *state = sums;
  if (overlay_unpack(saved, "%ld", &sum) != OVERLAY_OK) return OVERLAY_FAILED;
  sums[0] += sum;
  return OVERLAY_OK;
}
int tag(OverlayWave *wave) { return overlay_emit(wave, "%s", &(OverlayValue){.s = wave->argument}); }
int twice(OverlayWave *wave) { return overlay_forward(wave, wave->in[0]), overlay_forward(wave, wave->in[0]); }
int fails(OverlayWave *wave) { return overlay_fail("this filter fails: %s", wave->argument); }
int never(OverlayArrivals *arrivals) { return overlay_fail("no wave of %d", arrivals->count); }
int late(OverlayArrivals *arrivals)
{
  if (arrivals->since < 0.2) return arrivals->again = 0.05, OVERLAY_OK;
  for (int i = 0; i < arrivals->count; i++) arrivals->take[i] = 1;
  return OVERLAY_OK;
}
"""


@pytest.fixture
def own(tmp_path, checked_programs):
    (tmp_path / "own.c").write_text(OWN)
    return build_filters(tmp_path / "own.c", tmp_path / "own.so", CHECKED)


@pytest.fixture
def live_filters(tmp_path):
    (tmp_path / "tree").write_text(kary(2, 2))
    return build_filters(EXAMPLES / "live_filters.c", tmp_path / "live.so")


def test_the_example_in_c(live_filters, tmp_path, overlay_programs):
    link = [
        overlay_programs / "liboverlay.so",
        f"-Wl,-rpath,{overlay_programs}",
        "-o",
        tmp_path / "live",
    ]
    run_clean(["cc", *FLAGS, "-I", SOURCES, EXAMPLES / "live.c", *link])
    assert (
        run_clean([tmp_path / "live", tmp_path / "tree", live_filters]).stdout.splitlines() == LINES
    )


def test_the_example_in_python(live_filters, tmp_path, overlay_programs):
    done = run_clean([sys.executable, EXAMPLES / "live.py", tmp_path / "tree", live_filters])
    *lines, first = done.stdout.splitlines()
    assert lines == LINES
    # who is quickest
    assert first in {f"first: the maximum {backend}, without the slow one" for backend in (1, 2, 3)}
    wrong = subprocess.run(
        [sys.executable, EXAMPLES / "live.py", tmp_path / "tree", "./no.so"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (1, 1)


def test_each_tree_level_can_have_a_separate_filter(start, own):
    tool = start(kary(2, 3), checked=True)
    tool.execute_ok(f"live concat - {own}@tag:leaf - -")
    tool.execute_ok("ask 0 1 1 1 %ld")
    assert tool.execute_ok("recv 0 60")["values"] == [["leaf"] * 8]
    tool.execute_ok(f"live {own}@tag:inside concat - - -")
    tool.execute_ok("ask 1 1 1 1 %ld")
    assert tool.execute_ok("recv 1 60")["values"] == [["inside"] * 2]
    tool.execute_ok(f"live none {own}@tag:root - - -")
    tool.execute_ok("ask 2 1 1 1 %ld")
    assert tool.execute_ok("recv 2 60")["values"] == ["root"]


def test_a_running_stream_gets_another_argument_at_all_levels(start, own):
    tool = start(kary(2, 2), checked=True)
    tool.execute_ok(f"live concat - {own}@tag:first - -")
    tool.execute_ok(f"live {own}@tag:first concat - - -")
    for stream, width in ((0, 4), (1, 2)):
        tool.execute_ok(f"ask {stream} 1 1 1 %ld")
        assert tool.execute_ok(f"recv {stream} 60")["values"] == [["first"] * width]
        tool.execute_ok(f"argument {stream} second")
        tool.execute_ok(f"ask {stream} 1 1 1 %ld")
        assert tool.execute_ok(f"recv {stream} 60")["values"] == [["second"] * width]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("{own}@fails:at=all - - - -", "this filter fails: at=all"),
        ("none {own}@fails:at=root - - -", "this filter fails: at=root"),
        ("none - {own}@fails:at=leaf - -", "this filter fails: at=leaf"),
        ("none - - {own}@fails:at=down -", "this filter fails: at=down"),
        ("none - - {own}@twice -", "gave 2 packets for one"),
        ("none - - - {own}@never", "no wave of 2"),
    ],
)
def test_a_filter_failure_at_any_level_ends_only_that_stream(start, own, names, why):
    tool = start(kary(2, 2), checked=True)
    tool.execute_ok("open sum 0 0 0")
    tool.execute_ok(f"live {names.format(own=own)}")
    answer = tool.execute("ask 1 1 3 1 %ld")
    answer = tool.execute("recv 1 60") if answer["code"] == "ok" else answer
    assert answer["code"] == "failed"
    assert why in answer["error"]
    assert tool.execute("ask 1 1 1 1 %ld")["code"] == "failed"
    assert tool.execute("argument 1 x")["code"] == "failed"
    tool.execute_ok("close 1")
    tool.execute_ok("ask 0 1 1 1 %d")
    assert tool.execute_ok("recv 0 60")["leaves"] == 4
    assert tool.execute_ok("lost 0")["lost"] == []


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("{own}@absent - - - -", "found no function absent"),
        ("none {own}@absent - - -", "found no function absent"),
        ("none - median - -", "found the filter 'median'"),
        ("none - - none sum", "wanted FILE.so"),
    ],
)
def test_filters_that_are_none_are_refused_at_once(start, own, names, why):
    tool = start(kary(2, 2), checked=True)
    assert why in tool.execute(f"live {names.format(own=own)}")["error"]


def test_an_own_function_makes_waves_after_a_while(start, own):
    tool = start(kary(2, 2), checked=True)
    tool.execute_ok(f"live concat - - - {own}@late")
    for seed in range(3):
        tool.execute_ok(f"ask 0 {seed} 1 1 %ld")
        got = []
        while len(got) < 4:  # a process may have to make two waves of what comes in two pieces
            got += tool.execute_ok("recv 0 60")["values"][0]
        assert sorted(got) == sorted(sent(seed, backend, 0, 1, ["%ld"])[0] for backend in range(4))


@pytest.mark.parametrize("kill_after", [3, 10, 17])
def test_filter_state_survives_the_loss_of_an_internal_process(start, own, kill_after):
    """Every tenth wave goes up; the sum of the others is in the lost process when it is killed."""
    tool = start(
        "h:0 => h:1 ;\nh:1 => h:2 h:3 ;\nh:2 => h:4 h:5 ;\nh:3 => h:6 h:7 ;\n", checked=True
    )
    tool.execute_ok(f"live {own}@tenth - - - -")
    tool.execute_ok("open none 2 0 0")
    for seed in range(kill_after):
        tool.execute_ok(f"ask 0 {seed} 1 1 %ld")
    for seed in range(4):
        tool.execute_ok(f"ask 1 {seed} 1 1 %ld")  # what was sent before has been answered, too
    for _ in range(16):
        tool.execute_ok("recv 1 60")
    assert tool.execute("any 0.3")["code"] == "timeout"
    victim = next(
        process for process in tool.processes() if command_name(process) == "overlay-node"
    )
    kill(victim)
    total = 0
    for seed in range(kill_after, 100):
        tool.execute_ok(f"ask 0 {seed} 1 1 %ld")
    while (answer := tool.execute("recv 0 3"))["code"] == "ok":
        total += answer["values"][0]
    wanted = [sent(seed, backend, 0, 1, ["%ld"])[0] for seed in range(100) for backend in range(4)]
    assert answer["code"] == "timeout"
    assert total == sum(wanted), (total, sum(wanted))
