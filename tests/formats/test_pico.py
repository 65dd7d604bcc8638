"""Runs of PICO: a folder or its archive, metadata, allocations. Archives may come from unknown
sources.

Algorithm names of PICO: the project's name if the messages are the same, and the names that a
library ignored."""

import pytest

from commodel.errors import UserError
from commodel.interchange import StatedProperties, read_all_times
from commodel.interchange.folders.reading import FolderProperties, read_folder
from commodel_formats import pico
from commodel_formats.pico import find_equal_to_default, translate_algorithm
from tests.cli.running import output
from tests.formats.samples import CUDA, HEAD, RUN, alloc, line, packed, samples
from tests.refusals import catch_error_message


@pytest.fixture
def run(tmp_path):
    """Return a function that writes metadata and files as PICO does and returns the folder of the
    run."""

    def written(metadata, files):
        folder = tmp_path / "results" / "mare_nostrum" / RUN
        (tmp_path / "results" / "mare_nostrum_metadata.csv").parent.mkdir(exist_ok=True)
        (tmp_path / "results" / "mare_nostrum_metadata.csv").write_text(HEAD + "".join(metadata))
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return folder

    return written


def rows(path, **given):
    return [
        (time.operation, time.algorithm, time.layout, time.ranks, time.bytes, time.seconds)
        for time in pico.read_file(path, StatedProperties(**given)).times
    ]


FILES = {
    # the first of five warms up
    "0/64_ring_over_int32.csv": samples(9_000_000, 2000, 3000, 4000, 5000),
    "0/64_k_bruck_over_int32.csv": samples(7000),
    "0/64_brucks_mpich_double.csv": samples(8000, columns=",rank0,rank1").replace(
        "8000", "8000,1,2"
    ),
    "0/2_ring_over_int32.csv": samples(100),  # blocks of 0 elements
    "0/64_sparbit_over_int32.csv": samples(100),
    "0/64_ring_over_int32_instrument.csv": "rank0,send\n1,2\n",
    "0/64_empty_over_int32.csv": "",
    "0/8_allreduce_nccl_tree.csv": samples(1, 2, "-> Buffer: 8 byte"),
    # no warm-up
    "1/8_ring_ompi_int32.csv": samples(*range(1000, 11000, 1000), "Average runtime: 0.0055"),
    "slurm_1.out": "not,read",
}
TESTS = [line(0, 4, 1, "ALLGATHER"), line(1, 4, 1, "ALLREDUCE")]
TIMES = [
    ("allgather", "bruck", "block:1", 4, 128, 8e-6),
    ("allgather", "bruck", "block:1", 4, 64, 7e-6),
    ("allgather", "ring", "block:1", 4, 64, 3.5e-6),
    ("allreduce", "ring", "block:1", 4, 32, 5.5e-6),
]


def test_a_pico_folder_and_archive_give_the_same_times(run):
    folder = run(TESTS, FILES)
    for path in (folder, packed(folder), folder.parent):
        imported = pico.read_file(path, StatedProperties())
        assert rows(path) == [pytest.approx(row) for row in TIMES]
        assert imported.left_out == {
            "allgather of 0 bytes": 1,
            "allgather sparbit": 1,
            "empty file": 1,
            "file with lines that are no times": 1,
        }
        assert any(
            "0/8_allreduce_nccl_tree.csv line 4: found '-> Buffer: 8 byte'" in remark
            for remark in imported.remarks
        )
        assert {time.setting for time in imported.times} == {f"job={RUN} lib=OMPI-4.1.5 rails=1"}
        assert imported.times[0].source == f"{path.name} 0/64_brucks_mpich_double.csv"


def test_a_single_pico_test_folder_or_file_can_be_read(run):
    folder = run(TESTS, FILES)
    assert rows(folder / "1") == [pytest.approx(TIMES[3])]
    assert rows(folder / "0" / "64_ring_over_int32.csv") == [pytest.approx(TIMES[2])]


@pytest.mark.parametrize(
    ("hosts", "layout", "words"),
    [
        ("abcd", "block:1", ""),
        (
            "aabbccdd",
            "block:2",
            "has 4 ranks on 4 nodes, alloc.csv 8 ranks on 4 nodes, which is used",
        ),
        ("abcdabcd", "cyclic:2", "alloc.csv 8 ranks on 4 nodes"),
        ("aabbccd", "nodes:0x2,1x2,2x2,3", "alloc.csv 7 ranks on 4 nodes"),
        ("aabc", "nodes:0x2,1,2", "alloc.csv 4 ranks on 3 nodes"),
    ],
)
def test_the_pico_allocation_overrides_ranks_and_layout_of_the_metadata(run, hosts, layout, words):
    imported = pico.read_file(run(TESTS, FILES | {"alloc.csv": alloc(*hosts)}), StatedProperties())
    assert {(time.ranks, time.layout) for time in imported.times} == {(len(hosts), layout)}
    block = 64 // len(hosts) * 4
    assert {time.bytes for time in imported.times if time.algorithm == "ring"} == {block, 32}
    remarks = [remark for remark in imported.remarks if "ranks on" in remark]
    assert len(remarks) == bool(words)
    assert all(
        f"{RUN} tests 0, 1: mare_nostrum_metadata.csv" in remark and words in remark
        for remark in remarks
    )


def test_each_pico_test_uses_the_allocation_with_matching_ranks(run):
    """The third test has no allocation file for its ranks; its layout is that of the metadata."""
    ring = {f"{test}/64_ring_over_int32.csv": samples(5000) for test in (0, 1, 2)}
    tests = [line(test, 2, per_node, "REDUCE_SCATTER") for test, per_node in enumerate((1, 2, 4))]
    names = {
        "alloc_2.csv": alloc(*"ab"),
        "alloc_4.csv": alloc(*"abab"),
        "alloc_4_GPU.csv": alloc(*"aabb"),
    }
    assert [row[2] for row in rows(run(tests, ring | names))] == ["block:1", "cyclic:2", "block:4"]


def test_the_only_allocation_of_an_older_run_belongs_to_the_first_test(run):
    ring = {f"{test}/64_ring_over_int32.csv": samples(5000) for test in (0, 1)}
    tests = [line(0, 2, 1, "REDUCE_SCATTER"), line(1, 2, 2, "REDUCE_SCATTER")]
    assert [row[2:4] for row in rows(run(tests, ring | {"alloc.csv": alloc(*"aabbcc")}))] == [
        ("block:2", 6),
        ("block:2", 4),
    ]


def test_a_torus_and_a_gpu(run):
    imported = pico.read_file(
        run([line(0, "2x3x2", 1, "BCAST", CUDA)], {"0/8_linear_ompi_int32.csv": samples(5000)}),
        StatedProperties(),
    )
    assert [(time.ranks, time.setting) for time in imported.times] == [
        (12, f"job={RUN} lib=OMPI-4.1.6 gpu=CUDA-12.1")
    ]


def test_a_summary_is_read_in_nanoseconds(tmp_path):
    head = (
        "collective_type,array_dim,buffer_size,algo_name,datatype,mean,median,nnodes,tasks_per_node,timestamp,test_id,"
        "gpu_awareness,gpu_lib,gpu_lib_version,notes,mpi_lib,mpi_lib_version\n"
    )
    text = f"ALLGATHER,64,256,ring_over,int32,1,3500.0,2,2,{RUN},0,no,,,UCX_MAX_RNDV_RAILS=2,OMPI,4.1.5\n"
    (tmp_path / "summary.csv").write_text(head + text)
    assert rows(tmp_path / "summary.csv") == [
        pytest.approx(("allgather", "ring", "block:2", 4, 64, 3.5e-6))
    ]
    assert (
        pico.read_file(tmp_path / "summary.csv", StatedProperties()).times[0].setting
        == f"job={RUN} lib=OMPI-4.1.5 rails=2"
    )
    (tmp_path / "summary.csv").write_text(head + text.replace(",2,2,", ",2,many,"))
    with pytest.raises(
        UserError,
        match=r"summary.csv:2: tasks_per_node: found 'many', wanted a whole number above 0",
    ):
        rows(tmp_path / "summary.csv")


def test_such_rows_are_the_librarys_and_stated_to_be(run, tmp_path):
    files = {
        f"0/{size}_{name}_mpich_int32.csv": samples(1000 * size)
        for size in [8 * 8**power for power in range(7)]
        for name in ("default", "recursive_doubling")
    }
    said = output("import", "pico", run(TESTS, files), "-o", tmp_path / "t.csv")
    assert "14 times of allgather" in said
    text = "at all sizes, or all but one, recursive_doubling_mpich takes the time of default_mpich"
    assert f"{RUN} test 0, allgather: {text}: counted as the library default" in said


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        (
            {"alloc.csv": "rank,host\n0,a\n"},
            "alloc.csv: found 'rank,host', wanted MPI_Rank,allocation",
        ),
        (
            {"alloc.csv": "MPI_Rank,allocation\n0,a\n0,b\n"},
            "alloc.csv line 3: found rank 0, wanted each from 0 on once",
        ),
        (
            {"alloc.csv": "MPI_Rank,allocation\n1,a\n"},
            "alloc.csv: found 1 ranks, wanted all from 0 on",
        ),
        (
            {"alloc.csv": "MPI_Rank,allocation\n-1,a\n"},
            "alloc.csv line 2: found '-1,a', wanted a rank and its host",
        ),
        (
            {"0/8_ring_over_int32.csv": "highest\n0\n"},
            "0/8_ring_over_int32.csv: found a time of 0 s, wanted one above 0",
        ),
    ],
)
def test_impossible_pico_allocations_and_times_are_refused_with_the_file(run, files, complaint):
    assert complaint in catch_error_message(
        pico.read_file, run([line(0, 4, 1, "ALLREDUCE")], FILES | files), StatedProperties()
    )


def test_metadata_are_requested(run, tmp_path):
    folder = run(TESTS, FILES)
    file = tmp_path / "results" / "mare_nostrum_metadata.csv"
    moved = file.rename(tmp_path / "elsewhere.csv")
    with pytest.raises(
        UserError, match=r"found no metadata of PICO, wanted SYSTEM_metadata.csv .* give --metadata"
    ):
        rows(folder)
    assert rows(folder, metadata=str(moved)) == [pytest.approx(row) for row in TIMES]
    moved.write_text(HEAD + line(0, "4x0", 1, "BCAST"))
    with pytest.raises(
        UserError, match=r"elsewhere.csv:2: nnodes: found '0', wanted a whole number above 0"
    ):
        rows(folder, metadata=str(moved))
    moved.write_text(HEAD + TESTS[1])
    left = pico.read_file(folder, StatedProperties(metadata=str(moved))).left_out
    assert left[f"test 0 of {RUN}, which is not in elsewhere.csv"] == 5
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        UserError, match="found no time of a known operation and algorithm; is it a file of PICO"
    ):
        read_all_times(pico.FORMAT, [tmp_path / "empty"], StatedProperties())


def test_nothing_in_a_folder_is_reached_by_a_link(run, tmp_path):
    folder = run(TESTS, FILES)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "64_linear_over_int32.csv").write_text(samples(1000))
    (folder / "1" / "64_ring_over_int32.csv").symlink_to(
        tmp_path / "outside" / "64_linear_over_int32.csv"
    )
    (folder / "2").symlink_to(tmp_path / "outside")
    assert rows(folder) == [pytest.approx(row) for row in TIMES]


@pytest.mark.parametrize(
    ("collective", "called", "ranks", "elements", "ours"),
    [
        ("allgather", "k_bruck_over", 6, 60, "bruck"),
        ("allgather", "k_bruck_ompi", 6, 60, "k_bruck_ompi"),
        ("allreduce", "rabenseifner_mpich", 8, 80, "rabenseifner"),
        ("allreduce", "rabenseifner_mpich", 6, 60, "rabenseifner_mpich"),
        ("alltoall", "pairwise_mpich", 8, 80, "pairwise_mpich"),
        ("alltoall", "pairwise_mpich", 6, 60, "pairwise"),
        ("allreduce", "ring_ompi", 8, 80, "ring"),
        ("allreduce", "ring_ompi", 8, 4, "ring_ompi"),
        ("allreduce", "ring_over", 8, 4, "ring"),
        ("alltoall", "linear_sync_ompi", 8, 80, "linear"),
        ("gather", "default_craympich", 8, 80, "library"),
    ],
)
def test_names_are_mapped_where_messages_are_the_same(collective, called, ranks, elements, ours):
    assert translate_algorithm(collective, called, ranks, elements) == ours


SIZES = [8 * 8**power for power in range(7)]


def measured(**factors):
    return {name: {size: factor * (1 + size) for size in SIZES} for name, factor in factors.items()}


def test_algorithms_ignored_by_the_library_are_found_by_equal_times():
    equal = measured(
        default_ompi=1, ring_ompi=1.01, rabenseifner_ompi=0.98, recursive_doubling_ompi=2
    )
    followers = {"ring_ompi": "default_ompi", "rabenseifner_ompi": "default_ompi"}
    assert find_equal_to_default("allreduce", equal) == followers
    equal["ring_ompi"][SIZES[2]] *= 3  # a hiccup
    assert find_equal_to_default("allreduce", equal) == followers
    equal["ring_ompi"][SIZES[3]] *= 3
    assert not find_equal_to_default("allreduce", equal)  # one may be what the library chooses
    assert not find_equal_to_default(
        "gather", measured(default_ompi=1, binomial_ompi=1, binomial_over=1)
    )
    alike = measured(default_mpich=1, recursive_doubling_mpich=1)
    assert find_equal_to_default("allreduce", alike) == {
        "recursive_doubling_mpich": "default_mpich"
    }
    few = {name: {size: times[size] for size in SIZES[:3]} for name, times in alike.items()}
    assert not find_equal_to_default("allreduce", few)
    assert not find_equal_to_default(
        "alltoall", measured(default_ompi=1, linear_ompi=1, linear_sync_ompi=1)
    )


def test_a_run_in_an_imported_folder_is_read_as_a_whole(run, tmp_path):
    run(TESTS, FILES)
    files = list(read_folder(tmp_path / "results", FolderProperties(), set()))
    used = [file for file in files if file.times]
    assert [(file.path, file.format) for file in used] == [(f"mare_nostrum/{RUN}", "pico")]
    assert len(used[0].times) == len(TIMES)
    assert [file.path for file in files if not file.times] == ["mare_nostrum_metadata.csv"]
    (alone,) = read_folder(tmp_path / "results" / "mare_nostrum" / RUN, FolderProperties(), set())
    assert alone.digest == used[0].digest


def test_an_archive_that_is_none_has_this_reason_and_stops_no_other_file(tmp_path):
    (tmp_path / "run.tar.gz").write_bytes(b"not an archive")
    (tmp_path / "good_np8.txt").write_text(
        "# OSU MPI Allreduce Latency Test v5.8\n# Size  Avg Latency(us)\n4  10.00\n8  20.00\n"
    )
    files = {file.path: file for file in read_folder(tmp_path, FolderProperties(), set())}
    assert len(files["good_np8.txt"].times) == 2
    reason = files["run.tar.gz"].reason
    assert "unpack it, unless it is of PICO (found no tar archive" in reason
    assert "\n" not in reason
    assert not files["run.tar.gz"].times
