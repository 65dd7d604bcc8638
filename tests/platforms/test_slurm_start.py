"""The proof that Slurm starts MPI programs, with commands that behave as a site's do."""

import os
import shutil
import time
from contextlib import chdir
from pathlib import Path

import pytest

import commodel
from commodel.platforms.slurm_start import StartCheck, make_script
from tests.cli.running import refused, run
from tests.platforms.slurm_commands import (
    PMI2_AND_PMIX,
    RANK,
    install_commands,
    write_command,
    write_script,
    write_start,
)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A project whose partition `main` has four nodes; returns the folder of the commands."""
    commands = tmp_path / "bin"
    install_commands(commands, "main", nodes=4)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    run(f"init {tmp_path}/own --slurm")
    with chdir(tmp_path / "own"):
        yield commands


def check(code=1, options="", seconds=20) -> dict[str, tuple[str, str, str]]:
    """Return state, found and remedy of each property."""
    text = run(f"doctor --slurm {options} --wait {seconds}", code=code).stdout
    rows = commodel.check_slurm(seconds=seconds).rows
    assert rows[0]["check"] in text
    return {row["check"]: (row["state"], row["found"], row["remedy"]) for row in rows}


def test_a_start_that_works_is_proved(site):
    text = run("doctor --slurm").stdout
    assert text.startswith("Slurm starts MPI programs.\n")
    found = check(code=0)
    assert {state for state, _, _ in found.values()} == {"ok"}
    assert "srun --mpi=pmi2 (params/platforms/main.yaml); MPICH Version: 4.2.1" in found["start"][1]
    assert found["hosts"][1] == "2 on n0, 2 on n1"
    assert found["within a node"][1] == "400 ns a message; MPICH: shared memory"
    assert found["between nodes"][1] == "1.5 µs a message; OFI, provider verbs"
    assert found["clock"][1] == "resolution 20 ns, source tsc"


def test_the_job_has_the_options_of_the_profile_and_of_batches(site):
    script = '#!/bin/sh\necho "$*" > ../arguments\nexit 1\n'
    write_script(site, "sbatch", script.replace("../arguments", str(site / "arguments")))
    profile = Path("profiles/slurm/config.yaml")
    key = "default-resources:\n"
    profile.write_text(profile.read_text().replace(key, f"{key}  slurm_account: astro\n"))
    check()
    arguments = (site / "arguments").read_text()
    assert "--nodes=2 --ntasks=4 --ntasks-per-node=2 --partition=main" in arguments
    assert "--account=astro --exclusive " in arguments


def test_a_partition_that_slurm_does_not_have_is_one_line(site):
    message = refused("doctor --slurm mian")
    assert "found partition 'mian', which Slurm does not have; did you mean 'main'?" in message


def test_a_refused_job_has_a_remedy(site):
    error = "sbatch: error: Batch job submission failed: Invalid account or account/partition"
    write_script(site, "sbatch", f"#!/bin/sh\necho '{error}' >&2\nexit 1\n")
    found = check()
    assert found["job"][0] == "wrong"
    assert "Invalid account" in found["job"][1]
    assert "`slurm_account` in profiles/slurm/config.yaml" in found["job"][2]
    assert found["clock"][:2] == ("unknown", "no job")


@pytest.mark.parametrize(
    ("reason", "state", "remedy"),
    [
        ("Resources", "unknown", "--wait 600 waits longer"),
        ("PartitionNodeLimit", "wrong", "scontrol show partition"),
        ("AssocGrpNodeLimit", "wrong", "a limit of your account"),
        ("ReqNodeNotAvail", "wrong", "sinfo -R"),
    ],
)
def test_a_job_that_is_pending_for_ever_is_cancelled(site, reason, state, remedy):
    write_script(site, "sbatch", "#!/bin/sh\necho 7\n")
    write_command(site, "squeue", {"jobs": f"PENDING {reason}"})
    write_script(site, "scancel", f'#!/bin/sh\necho "$*" >> {site}/cancelled\n')
    began = time.monotonic()
    rows = commodel.check_slurm(seconds=2).rows
    assert time.monotonic() - began < 60
    assert rows[0]["state"] == state
    assert f"job 7 is still pending ({reason}) and was cancelled" in rows[0]["found"]
    assert remedy in rows[0]["remedy"]
    assert (site / "cancelled").read_text() == "7\n"


def test_commands_that_hang_end_with_the_check(site):
    write_script(site, "sbatch", "#!/bin/sh\necho 7\n")
    write_script(site, "squeue", "#!/bin/sh\nexec sleep 60\n")
    answer = commodel.check_slurm(seconds=2)
    assert answer.rows[0]["state"] == "wrong"
    assert "squeue" in answer.rows[0]["found"] or "in time" in answer.rows[0]["found"]


def test_a_job_that_hangs_is_cancelled(site):
    write_script(site, "sbatch", "#!/bin/sh\necho 7\n")
    write_command(site, "squeue", {"jobs": "RUNNING None"})
    lines = []
    found = commodel.check_slurm(seconds=2, progress=lines.append).rows[0]
    assert "did not end in time" in found["found"]
    assert "ranks hang" in found["remedy"]
    assert lines[0].startswith("job 7: running, ")


def test_with_a_wrong_value_of_mpi_the_right_one_is_named(site):
    alone = "\n".join([RANK.format(0, 1, "n0")] * 2 + [RANK.format(0, 1, "n1")] * 2)
    answers = {"mpi=list": PMI2_AND_PMIX, "mpi=pmi2": alone, "mpi=pmix": write_start()}
    write_command(site, "srun", answers)
    found = check()
    assert found["start"][0] == "wrong"
    assert "world size 1: each of 4 processes is rank 0 of 1" in found["start"][1]
    assert "`slurm: {mpi: pmix}` in params/platforms/main.yaml" in found["start"][2]
    assert found["hosts"][0] == "ok"
    # no value works
    write_command(site, "srun", answers | {"mpi=pmix": alone})
    found = check()
    assert "--mpi=pmi2 is not the protocol of MPICH" in found["start"][2]
    assert found["hosts"][:2] == ("unknown", "no common start")


def test_ranks_on_one_host_are_wrong(site):
    answers = {"mpi=list": PMI2_AND_PMIX, "mpi=pmi2": write_start(["n0"] * 4)}
    write_command(site, "srun", answers)
    found = check()
    assert found["hosts"][:2] == ("wrong", "4 on n0; wanted 2 on each of 2")
    assert "SLURM_HOSTFILE" in found["hosts"][2]
    assert found["between nodes"][:2] == ("unknown", "all ranks are on one node")


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("job.sh: 9: srun: not found", "jobs have no srun on PATH"),
        ("srun: error: Couldn't find the specified plugin name for mpi/pmi9", "srun --mpi=list"),
        ("./start: error while loading shared libraries: libmpi.so.12", "is not on the nodes"),
        ("slurmstepd: error: execve(): ./start: No such file or directory", "do not see this"),
        ("a message of another kind", "look at the files in build/slurm-check"),
    ],
)
def test_a_start_that_fails_has_a_remedy(site, error, remedy):
    write_script(site, "srun", f'#!/bin/sh\necho "{error}" >&2\nexit 1\n')
    found = check()
    assert found["start"][0] == "wrong"
    assert error[:20] in found["start"][1]
    assert remedy in found["start"][2]


def test_a_folder_that_nodes_do_not_see_is_named(site, monkeypatch):
    monkeypatch.setattr("commodel.platforms.slurm_start.FILE_SECONDS", 0.1)
    write_script(site, "sbatch", "#!/bin/sh\necho 7\n")
    found = check()
    assert "wrote no file" in found["job"][1]
    assert "file system that they share" in found["job"][2]


def test_without_whole_nodes_or_a_fine_clock_or_the_fast_card_each_has_a_remedy(site):
    text = write_start().replace("2.000e-08 tsc 0", "2.000e-06 hpet 1").replace("verbs", "tcp")
    text = text.replace("pair 1 4.000e-07", "pair 1 1.400e-06")
    write_command(site, "srun", {"mpi=list": PMI2_AND_PMIX, "mpi=pmi2": text})
    scontrol = (site / "scontrol").read_text().replace("OverSubscribe=NO\nX", "OverSubscribe=OK\nX")
    write_script(site, "scontrol", scontrol)
    found = check()
    assert {name for name, (state, _, _) in found.items() if state == "wrong"} == {
        "within a node",
        "between nodes",
        "clock",
        "exclusive",
    }
    assert "--exclusive" in found["exclusive"][2]
    assert "clock source tsc" in found["clock"][2]
    assert "this MPI uses IP" in found["between nodes"][2]


@pytest.mark.parametrize("name", ["sbatch", "squeue"])
def test_a_missing_command_of_slurm_is_one_line(site, monkeypatch, name):
    find = shutil.which
    monkeypatch.setattr(
        "shutil.which", lambda *given, **more: given[0] != name and find(*given, **more)
    )
    message = f"found no {name} on PATH, wanted a login node of the cluster"
    assert message in refused("doctor --slurm")


def test_names_with_blanks_are_quoted(tmp_path):
    script = make_script(StartCheck(tmp_path / "a folder", "main"))
    assert f"cd '{tmp_path}/a folder' || exit 1" in script
