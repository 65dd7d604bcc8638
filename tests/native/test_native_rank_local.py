"""Random schedules whose ranks count their own steps, through the player: the data arrive, and SimGrid takes as long as
the replay says."""

import numpy as np
import pytest
from tests.patterns.rank_local import built
from tests.patterns.slow_events import Message

from commodel.errors import UserError
from commodel.models.pricing.replay import Costs, finish_times
from commodel.patterns.schedule import Schedule
from commodel.patterns.schedule_files import write_play

OVERHEAD, HOP, PER_BYTE = 1.5e-6, 10e-6, 1e-10  # of the simulated cluster
SYNCHRONOUS = ("smpi/async-small-thresh:0", "smpi/send-is-detached-thresh:0")  # a send waits for its receive


def random_program(rng, ranks: int, messages: int) -> Schedule | None:
    """None where a rank would wait for ever. A message that is posted late is posted late at both ends, mostly."""
    rows = []
    for number in range(messages):
        src, ahead, step = rng.integers(0, ranks), rng.integers(1, ranks), rng.integers(0, messages // ranks + 3)
        out, back = step + rng.integers(0, 2, 2)
        ends = out, out + rng.integers(0, 3), back, back + rng.integers(0, 3)
        rows.append(Message(src, (src + ahead) % ranks, number, *ends))
    work = [(rng.integers(0, ranks), rng.integers(0, 6), 1e-6 * rng.random() * 30) for _ in range(rng.integers(0, 6))]
    try:
        return built(ranks, rows, work, rng.integers(0, 3000, messages))
    except UserError:
        return None


def programs(seed: int, count: int, ranks: int, messages: int) -> dict[str, Schedule]:
    rng, kept = np.random.default_rng(seed), {}
    while len(kept) < count:
        if pattern := random_program(rng, ranks, rng.integers(1, messages)):
            kept[f"p{len(kept)}"] = pattern
    return kept


def cases(folder, patterns: dict[str, Schedule]):
    for name, pattern in patterns.items():
        write_play(folder / f"{name}.play", pattern)
    path = folder / "cases.csv"
    path.write_text("".join(["id,schedule,finish\n", *(f"{name},{name}.play,all\n" for name in patterns)]))
    return path


def played(result, patterns: dict[str, Schedule]):
    assert result.code == 0, result.err
    assert not result.errors
    assert len(result.files()) == len(patterns)


def test_simulated_ranks_play_what_the_replay_prices(simulated, tmp_path):
    patterns = programs(1, 60, 16, 60)
    assert sum(pattern.ends is not None for pattern in patterns.values()) > 50
    result = simulated(16, "player", cases(tmp_path, patterns), "--warmup", 1)
    played(result, patterns)
    for name, pattern in patterns.items():
        costs = Costs(OVERHEAD, OVERHEAD, HOP + PER_BYTE * pattern.bytes, OVERHEAD, OVERHEAD)
        price = finish_times(pattern, costs, pattern.work_seconds(0.0)).max()
        assert result.median(name) == pytest.approx(price, rel=0.01), name


def test_no_message_has_to_be_kept_where_no_wait_comes_before_its_receive(simulated, tmp_path):
    patterns = programs(2, 60, 16, 60)
    patient = {name: pattern for name, pattern in patterns.items() if (pattern.src_wait >= pattern.dst_step).all()}
    assert len(patient) > 10
    played(simulated(16, "player", cases(tmp_path, patient), "--warmup", 1, settings=SYNCHRONOUS), patient)


def test_the_data_arrive_on_real_mpi(real, tmp_path):
    patterns = programs(3, 40, 2, 40)
    played(real(2, "player", cases(tmp_path, patterns), "--max-seconds", 0.01, "--warmup", 1), patterns)


def test_a_rank_sends_to_itself_on_real_mpi(real, tmp_path):
    """In one step, and taken in a later one; then rank 0 sends to rank 1."""
    (tmp_path / "self.csv").write_text(
        "step,wait,kind,rank,peer,peer_step,peer_wait,bytes,seconds,runs\n"
        "0,,send,0,0,,,8,,\n0,2,send,0,0,1,2,100000,,\n3,,send,0,1,,,8,,\n"
    )
    (tmp_path / "cases.csv").write_text("id,schedule,finish\na,self.csv,all\n")
    result = real(2, "player", tmp_path / "cases.csv", "--max-seconds", 0.01, "--warmup", 1)
    assert result.code == 0, result.err
    assert not result.errors
    assert result.files() == ["a.csv"]
