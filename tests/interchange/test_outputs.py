"""Output of OSU 7.4 and IMB 2021.11, as these programs printed it on two ranks of MPICH: the newest
columns, types of data and tests."""

from collections import Counter
from pathlib import Path

import pytest

from commodel.interchange import StatedProperties, read_all_times
from commodel.registry import lookup

FOLDER = Path(__file__).parent / "outputs"


def read(name):
    entry = lookup("interchange", "FORMAT", name.partition("-")[0])
    return read_all_times(entry, [FOLDER / f"{name}.txt"], StatedProperties(ranks=2))


def select(times, **wanted):
    return [
        (time.bytes, str(time.statistic), time.setting, time.seconds * 1e6)
        for time in times
        if all(getattr(time, name) == value for name, value in wanted.items())
    ]


def test_osu_7_4_prints_full_statistics_types_of_data_and_percentiles():
    imported = read("osu-7.4")
    operations = Counter(time.operation for time in imported.times)
    assert operations == {
        "allreduce": 27,  # three sizes, types of data and statistics
        "bcast": 9 + 3,  # with three ping-pongs
        "barrier": 3,
        "reduce-scatter": 2,
        "pairs": 3 + 3,
        "pairs:directions=2": 3,
        "pairs:messages=1:directions=2": 3,
    }
    assert imported.left_out == {
        "MPI Multiple Bandwidth / Message Rate": 4,  # of windows of several lengths
        "All-to-Allv Personalized Exchange": 2,
    }
    in_types = [row[2:] for row in select(imported.times, operation="allreduce", bytes=4)]
    types = [kind for kind in ("MPI_CHAR", "MPI_INT", "MPI_FLOAT") for _ in range(3)]
    assert [kind for kind, _ in in_types] == types
    # least, median and largest
    assert [time for _, time in in_types[:3]] == pytest.approx([0.33, 0.33, 0.40])
    barrier = select(imported.times, operation="barrier")
    assert [row[:3] for row in barrier] == [
        (0, "first rank", ""),
        (0, "rank mean", ""),
        (0, "last rank", ""),
    ]


def test_osu_7_4_prints_bandwidths_with_percentiles():
    times = read("osu-7.4").times
    windows = select(times, operation="pairs")
    # 64 messages at 0.53, 1.15 and 3.04 MB/s, then by the message rate
    expected = [64 / 0.53, 128 / 1.15, 256 / 3.04, 64e6 / 657526.43]
    assert [row[3] for row in windows[:4]] == pytest.approx(expected)
    assert [row[3] for row in select(times, operation="pairs:directions=2")] == pytest.approx(
        [2 * 64 / 1.01, 2 * 128 / 2.06, 2 * 256 / 2.27]
    )


def test_imb_2021_11_is_read_with_its_new_headers():
    imported = read("imb-2021.11")
    operations = Counter(time.operation for time in imported.times)
    assert operations == {
        "allreduce": 6,
        "reduce-scatter": 6,
        "barrier": 3,
        "bcast": 3 + 2,  # ping-pongs, and the means of a root that rotates
        "pairs:messages=1:directions=2": 3,
        "pairs:messages=256:directions=2": 3,
    }
    # the size of a block, times the number of ranks
    assert {row[0] for row in select(imported.times, operation="reduce-scatter")} == {16, 32}
    assert imported.left_out["Iallreduce"] == 3
    assert imported.left_out["Alltoallv"] == 3


DEVICE = """# OSU MPI-CUDA Bandwidth Test v5.8
# Send Buffer on {0} and Receive Buffer on {0}
# Size      Bandwidth (MB/s)
4                       4.00
# OSU MPI-CUDA Allreduce Latency Test v5.8
# Size       Avg Latency(us)
4                     337.07
"""


@pytest.mark.parametrize(("buffer", "setting"), [("DEVICE (D)", "CUDA"), ("HOST (H)", "")])
def test_buffers_on_a_device_are_part_of_the_setting(tmp_path, buffer, setting):
    (tmp_path / "osu.txt").write_text("0.037s: flux-shell[1]: 3\n" + DEVICE.format(buffer))
    entry = lookup("interchange", "FORMAT", "osu")
    times = read_all_times(entry, [tmp_path / "osu.txt"], StatedProperties(ranks=8)).times
    assert [(time.operation, time.setting) for time in times] == [
        ("pairs", setting),
        ("allreduce", "CUDA"),
    ]


def test_imb_for_devices_is_a_setting(tmp_path):
    text = (FOLDER / "imb-2021.11.txt").read_text().replace("MPI-1 part", "MPI-1 part (GPU)")
    (tmp_path / "imb.txt").write_text(text)
    entry = lookup("interchange", "FORMAT", "imb")
    times = read_all_times(entry, [tmp_path / "imb.txt"], StatedProperties()).times
    assert {time.setting for time in times} == {"GPU"}
