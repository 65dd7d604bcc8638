"""A folder of measurements: the format of each file, the placement of its ranks and where that comes
from, and one reason for each file that is not used. No file stops the others."""

import gzip
import os
import socket
import tarfile

import pytest

from commodel.errors import UserError
from commodel.interchange.folders.reading import FolderProperties, read_folder
from tests.interchange.format_reading import SAMPLES
from tests.interchange.samples import IMB

ALLREDUCE = """# OSU MPI Allreduce Latency Test v5.8
# Size       Avg Latency(us)
4                      10.00
8                      20.00
"""
LATENCY = """# OSU MPI Latency Test v5.8
# Size          Latency (us)
1                       1.55
"""
TABLE = "operation,algorithm,ranks,bytes,seconds\nbcast,binomial,8,64,1e-5\n"
JOB = (
    '{"resources": [{"type": "node", "count": 4, "with": [{"type": "slot", "count": 8}]}], '
    '"tasks": [{"count": {"per_slot": 1}}]}\n'
)


def read(folder, files, **stated):
    """Return the files of a folder by name, after these were written into it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = read_folder(folder, FolderProperties(**stated), set())
    return {file.path: file for file in found}


def summarize(file):
    """Return the format, operations, ranks and layouts of a file, and where they come from."""
    return (
        file.format,
        sorted({time.operation for time in file.times}),
        sorted({time.ranks for time in file.times}),
        sorted({time.layout for time in file.times}),
        str(file.source),
    )


def test_every_format_is_recognised(tmp_path):
    names = {"osu": "osu_np16.txt", "pico": "pico.csv", "mpiblib": "mpiblib/bcast_np16.out"}
    texts = {names.get(name, f"{name}.txt"): sample.text for name, sample in SAMPLES.items()}
    texts["csv.txt"] = TABLE
    files = read(tmp_path, texts)
    files |= read(tmp_path, {"csv_crlf.txt": TABLE.replace("\n", "\r\n")})
    assert [name for name, file in files.items() if not file.times] == []
    for name, file in files.items():
        assert name.startswith(file.format)


@pytest.mark.parametrize(
    ("name", "text", "ranks", "layout", "origin"),
    [
        ("osu_allreduce-4n-8ppn.out", ALLREDUCE, 32, "block:8", "file name"),
        ("p64/allreduce.txt", ALLREDUCE, 64, "", "folder name 'p64'"),
        (
            "n4/osu_ppn8.txt",
            ALLREDUCE,
            32,
            "block:8",
            "nodes: folder name 'n4'; ranks per node: file name",
        ),
        ("np64_ppn32/osu.txt", ALLREDUCE, 64, "block:32", "folder name 'np64_ppn32'"),
        ("osu_bcast_64.txt", ALLREDUCE, 64, "", "number in the file name"),
        ("a.txt", ALLREDUCE + JOB, 32, "block:8", "job specification"),
        (
            "b.txt",
            f"SLURM_NNODES=4\nSLURM_NTASKS=32\n{ALLREDUCE}",
            32,
            "block:8",
            "header",
        ),
        (
            "c.txt",
            f"mpirun -np 32 -ppn 8 osu_allreduce\n{ALLREDUCE}",
            32,
            "block:8",
            "command line",
        ),
    ],
)
def test_the_placement_has_an_origin(tmp_path, name, text, ranks, layout, origin):
    file = read(tmp_path, {name: text})[name]
    assert summarize(file) == ("osu", ["allreduce"], [ranks], [layout], origin)


def test_the_user_states_ranks_per_node_that_are_missing(tmp_path):
    files = {"osu-4n-17.out": ALLREDUCE, "osu-2n-8ppn.out": ALLREDUCE}
    read_files = read(tmp_path, files, per_node=16)
    assert summarize(read_files["osu-4n-17.out"])[2:4] == ([64], ["block:16"])
    assert summarize(read_files["osu-2n-8ppn.out"])[2:4] == ([16], ["block:8"])


def test_the_user_states_ranks_that_are_missing(tmp_path):
    read_files = read(tmp_path, {"osu.out": ALLREDUCE, "osu_np8.out": ALLREDUCE}, ranks=16)
    assert summarize(read_files["osu.out"])[2:] == ([16], [""], "given")
    assert summarize(read_files["osu_np8.out"])[2:] == ([8], [""], "file name")


def test_a_run_of_imb_also_measures_with_its_first_ranks(tmp_path):
    file = read(tmp_path, {"imb_np4_ppn2.txt": IMB})["imb_np4_ppn2.txt"]
    layouts = {(time.ranks, time.layout) for time in file.times}
    assert layouts == {(2, "block:2"), (3, "block:2"), (4, "block:2")}


def test_a_ping_pong_in_a_log_of_many_tests_is_of_two_nodes(tmp_path):
    file = read(tmp_path, {"osu-4n-8ppn.out": LATENCY + ALLREDUCE})["osu-4n-8ppn.out"]
    assert {(time.ranks, time.layout) for time in file.times} == {(2, ""), (32, "block:8")}


def test_rows_without_a_number_of_ranks_are_left_out(tmp_path):
    files = read(tmp_path, {"log.txt": LATENCY + ALLREDUCE, "osu.txt": ALLREDUCE})
    assert len(files["log.txt"].times) == 1
    assert "2 Allreduce of an unknown number of ranks" in files["log.txt"].remark
    assert "np64 or 4n-16ppn" in files["osu.txt"].reason


def test_the_library_is_the_setting(tmp_path):
    names = ["openmpi-5.0.3/osu_np8.txt", "mpich/osu_np8.txt"]
    files = read(tmp_path, dict.fromkeys(names, ALLREDUCE))
    assert [files[name].library for name in names] == ["Open MPI 5.0.3", "MPICH"]
    assert {time.setting for time in files[names[0]].times} == {"Open MPI 5.0.3"}
    stated = read(tmp_path, {}, library="X MPI 1", setting="monday")
    assert {file.library for file in stated.values()} == {"X MPI 1"}
    assert {time.setting for file in stated.values() for time in file.times} == {"monday"}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("osu.txt", b"", "empty"),
        ("osu.txt", b"# OSU MPI\x00\x01", "a binary file"),
        ("notes.txt", b"nothing of the kind\n", "no output of a known benchmark"),
        ("times.csv", b"size,time\n1,2\n", "a table without columns operation and seconds"),
        ("osu_np8.txt", ALLREDUCE.encode() + b"16 nan\n", "found a time of nan s"),
        ("osu_np8.txt", b"4 10.00\n" + ALLREDUCE.encode(), "line 1: found numbers before a title"),
        ("osu_np8_n2_ppn2.txt", ALLREDUCE.encode(), "which contradict each other"),
        ("osu_np8.txt", b"# nprocs = 16\n" + ALLREDUCE.encode(), "16 ranks in the file and 8 in"),
        ("run.zip", b"PK\x03\x04\x00\x00", "an archive: unpack it"),
        ("run.tar", 257 * b"\x00" + b"ustar", "an archive: unpack it"),
        ("osu_np8.txt.gz", b"\x1f\x8bbroken", "cannot be unpacked"),
        (
            "osu_np8.txt",
            b"# OSU MPI Exscan Latency Test v7\n# Size Avg Latency(us)\n4 1.0\n",
            "Exscan",
        ),
    ],
)
def test_a_file_that_is_not_used_has_one_reason(tmp_path, name, content, reason):
    files = read(tmp_path, {name: content, "good_np8.txt": ALLREDUCE})
    assert len(files["good_np8.txt"].times) == 2
    assert reason in files[name].reason
    assert "\n" not in files[name].reason
    assert not files[name].times


def test_links_and_special_files_are_not_opened(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "loop").symlink_to(tmp_path)
    (tmp_path / "link_np8.txt").symlink_to(tmp_path / "good_np8.txt")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        files = read(tmp_path, {"good_np8.txt": ALLREDUCE, ".git/osu_np8.txt": ALLREDUCE})
    reasons = {name: file.reason for name, file in files.items()}
    assert reasons == {
        "good_np8.txt": "",
        "inside/loop": "a link, which is not followed",
        "link_np8.txt": "a link, which is not followed",
        "pipe": "a pipe, a socket or a device",
        "socket": "a pipe, a socket or a device",
    }


def test_depth_number_and_size_are_bounded(tmp_path, monkeypatch):
    deep = "/".join(["d"] * 60) + "/osu_np8.txt"
    files = read(tmp_path, {deep: ALLREDUCE})
    assert [file.reason for file in files.values()] == ["more than 40 folders in one another"]
    folder = "commodel.interchange.folders.reading"
    monkeypatch.setattr(f"{folder}.MAX_TOTAL_BYTES", 100)
    files = read(tmp_path, {"a_np8.txt": ALLREDUCE, "b_np8.txt": ALLREDUCE})
    assert "the files before it have" in files["b_np8.txt"].reason
    monkeypatch.setattr(f"{folder}.MAX_ENTRIES", 2)
    files = read(tmp_path, {"c_np8.txt": ALLREDUCE})
    assert "beyond the first 2" in files["c_np8.txt"].reason


def test_a_packed_file_is_read(tmp_path):
    packed = gzip.compress(ALLREDUCE.encode())
    assert len(read(tmp_path, {"osu_np8.txt.gz": packed})["osu_np8.txt.gz"].times) == 2
    with tarfile.open(tmp_path / "run.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "osu_np8.txt.gz", "osu_np8.txt.gz")
    assert read(tmp_path, {})["run.tar.gz"].reason


def test_a_name_that_is_no_text_is_shown_and_read(tmp_path):
    (tmp_path / os.fsdecode(b"osu_np8_\xff\n.txt")).write_text(ALLREDUCE)
    (file,) = read(tmp_path, {}).values()
    assert len(file.times) == 2
    assert file.path.isprintable()


def test_a_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UserError, match="wanted a folder of measurements"):
        read(tmp_path / "none", {})
