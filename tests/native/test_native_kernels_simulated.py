"""Kernels where time is simulated: samples are those of the player, and nothing is computed."""

from math import prod
from pathlib import Path

import pytest
from tests.native.test_native_kernels import HEADER, PARTITIONS, SUMMA, WAVE

from commodel.patterns.build import schedule
from commodel.patterns.points import Setting, make_point
from commodel.patterns.schedule_files import write_play


def test_a_simulated_sample_is_the_player_s(simulated, tmp_path, monkeypatch):
    """Of each iteration to a few ns, as flows are rounded; all of them are the sum of each. Beside a product that takes
    as long on all ranks it is what that does not hide."""
    monkeypatch.chdir(tmp_path)
    ranks, rows = PARTITIONS["columns"]
    Path("p").write_text(f"{HEADER}\n{rows}\n")
    names = [f"summa:partition=p:iteration={k}" for k in range(8)] + ["summa:partition=p:iteration=4:overlapped=yes"]
    products = {"q": 4e-6, "r": 40e-6}
    for path, seconds in products.items():
        areas = [prod(map(int, row.split(",")[3:])) for row in rows.split()]
        fast = (f"{row},{area / seconds or 1:.9g}\n" for row, area in zip(rows.split(), areas, strict=True))
        Path(path).write_text(f"{HEADER},speed\n{''.join(fast)}")
        names.append(f"summa:partition={path}:iteration=4:overlapped=yes")
    played, own = ["id,schedule,finish"], [SUMMA, "all,p,8192,all,0,1,0"]
    for number, name in enumerate([*names, "wave2d:partition=p"]):
        size = 8 if name.startswith("wave") else 8192
        point = make_point(Setting.unlimited(), {"operation": name, "algorithm": "paper", "bytes": size})
        write_play(Path(f"{number}.play"), schedule(point), point.operation, point.bytes)
        played.append(f"c{number},{number}.play,all")
    own += [f"c{k},p,8192,{k},0,1,0" for k in range(8)] + [f"c{k},{p},8192,4,1,1,0" for k, p in enumerate("pqr", 8)]
    player = simulated(ranks, "player", "\n".join(played), out="played")
    kernel = simulated(ranks, "summa", "\n".join(own), out="own")
    wave = simulated(ranks, "wave2d", f"{WAVE}\nc11,p,8,0", out="wave")
    assert not player.errors + kernel.errors + wave.errors
    for case in [f"c{k}" for k in range(9)]:
        assert kernel.median(case) == pytest.approx(player.median(case), abs=2e-8), case
    for case, seconds in zip(("c9", "c10"), products.values(), strict=True):
        assert kernel.median(case) == pytest.approx(player.median(case) - seconds, abs=2e-8), case
        assert float(kernel.rows(case)[0]["computation"]) == pytest.approx(seconds), case
    assert wave.median("c11") == pytest.approx(player.median("c11"), abs=2e-8)
    assert kernel.median("all") == pytest.approx(sum(kernel.median(f"c{k}") for k in range(8)), abs=8e-8)
    refused = simulated(ranks, "summa", f"{SUMMA}\na,p,8192,all,0,1,1", out="none")
    assert "nothing is computed where time is simulated" in refused.errors[0]
