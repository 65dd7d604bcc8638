"""Every pattern of the catalogue in the player: all data arrive, and no send depends on
buffering."""

import numpy as np
import pytest

from commodel.patterns.build import build_schedule
from commodel.patterns.operations import find_base_name
from commodel.patterns.phases import join_stages, make_phase
from commodel.patterns.schedule_files import write_player_table
from tests.patterns.catalogue import catalogue

# a send waits for its receive
SYNCHRONOUS = ("smpi/async-small-thresh:0", "smpi/send-is-detached-thresh:0")


def case_file(folder, ranks, size):
    lines = ["id,schedule,finish"]
    for number, entry in enumerate(catalogue(ranks, size)):
        pattern = build_schedule(entry)
        if pattern.ranks > 16:
            continue
        name = f"{find_base_name(entry.operation)}-{number}"
        write_player_table(folder / f"{name}.play", pattern, entry.operation, entry.bytes)
        lines.append(f"{name},{name}.play,{'all' if pattern.root is None else pattern.root}")
    path = folder / "cases.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, len(lines) - 1


@pytest.mark.parametrize(("ranks", "size"), [(8, 7), (13, 100)])
def test_the_data_arrive_with_synchronous_sends(simulated, tmp_path, ranks, size):
    cases, count = case_file(tmp_path, ranks, size)
    options = ("--max-samples", 6, "--min-samples", 6, "--warmup", 1)
    result = simulated(16, "player", cases, *options, settings=SYNCHRONOUS)
    assert result.code == 0, result.err
    assert not result.errors
    assert len(result.files()) == count > 60


def test_the_data_arrive_on_real_mpi(real, tmp_path):
    entries = [entry for entry in catalogue(2, 100_000) if not entry.topology]
    lines = ["id,schedule,finish"]
    for number, entry in enumerate(entries):
        write_player_table(
            tmp_path / f"p{number}.play", build_schedule(entry), entry.operation, entry.bytes
        )
        lines.append(f"p{number},p{number}.play,all")
    (tmp_path / "cases.csv").write_text("\n".join(lines) + "\n")
    options = ("--sync", "barrier", "--min-samples", 2, "--max-samples", 2, "--warmup", 1)
    result = real(2, "player", tmp_path / "cases.csv", *options)
    assert result.code == 0, result.err
    assert len(result.files()) == len(entries)


def play(simulated, folder, pattern, operation, size):
    write_player_table(folder / "one.play", pattern, operation, size)
    return simulated(4, "player", "id,schedule,finish\na,one.play,all", "--warmup", 1)


def test_a_sum_that_lacks_a_rank_is_found(simulated, tmp_path):
    short = join_stages(4, make_phase(0, [1, 3], 0, 64, combines=True), root=0)
    result = play(simulated, tmp_path, short, "reduce", 64)
    assert any("rank 0 ends with a result that is not the sum" in line for line in result.errors)


def test_a_sum_that_counts_a_rank_twice_is_found(simulated, tmp_path):
    twice = join_stages(4, make_phase(0, [1, 2, 3, 3], 0, 64, combines=True), root=0)
    result = play(simulated, tmp_path, twice, "reduce", 64)
    assert any("not the sum" in line for line in result.errors)


def test_data_added_in_the_wrong_place_are_found(simulated, tmp_path):
    apart = join_stages(
        4, make_phase(0, [1, 2, 3], 0, 8, lambda: np.array([0, 8, 16]), combines=True), root=0
    )
    result = play(simulated, tmp_path, apart, "reduce", 24)
    assert any("not the sum" in line for line in result.errors)
