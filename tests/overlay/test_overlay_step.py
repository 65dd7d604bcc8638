"""One command starts all processes but the front-end. Each has its number from its rank, and
receives its parent from the front-end."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commodel_overlay import Network
from tests.overlay.conftest import flat, kary, kill
from tests.overlay.wire import sent
from tests.processes import command_name, family

LAUNCHER = f"{sys.executable} {Path(__file__).parent / 'many.py'} {{tasks}}"
MPIEXEC = Path(sys.executable).with_name("mpiexec.hydra")
UNBALANCED = "h:0 => h:1 h:2 ;\nh:2 => h:3 h:4 ;\nh:4 => h:5 h:6 ;\n"
LAUNCHES = {"pmi": LAUNCHER, "hydra": f"{MPIEXEC} -n {{tasks}}"}


def check_waves(tool, leaves: int, waves: int = 1, interrupt=lambda wave: None) -> None:
    tool.execute_ok("open concat 0 0 0")
    tool.execute_ok(f"ask 0 7 {waves} 1 %ld")
    for wave in range(waves):
        interrupt(wave)
        wanted = [sent(7, backend, wave, 1, ["%ld"])[0] for backend in range(leaves)]
        assert tool.execute_ok("recv 0 60")["values"][0] == wanted


@pytest.mark.parametrize("launcher", LAUNCHES)
@pytest.mark.parametrize(("topology", "leaves"), [(flat(3), 3), (kary(2, 3), 8), (UNBALANCED, 4)])
def test_one_command_starts_all_processes(start, tmp_path, launcher, topology, leaves):
    if launcher == "hydra" and not MPIEXEC.exists():
        pytest.skip("no mpiexec.hydra here")
    file = tmp_path / "connection"
    tool = start(
        topology, up=False, DRIVE_FILE=str(file), DRIVE_STEP="1", DRIVE_LAUNCH=LAUNCHES[launcher]
    )
    assert [tool.answer()["code"] for _ in range(2)] == ["waiting", "ok"]
    assert not file.exists()
    check_waves(tool, leaves)
    assert tool.end() == 0
    assert tool.read_stderr() == ""


@pytest.mark.parametrize("tags", [{}, {"DRIVE_TAGS": "1"}])
def test_another_program_may_start_the_step_and_ancestors_replace_lost_processes(
    start, tmp_path, checked_programs, tags
):
    file = tmp_path / "connection"
    tool = start(kary(2, 3), checked=True, up=False, DRIVE_FILE=str(file), DRIVE_STEP="1", **tags)
    command = [
        *LAUNCHER.format(tasks=14).split(),
        checked_programs / "overlay-node",
        "--step",
        file,
    ]
    step = subprocess.Popen([*command, checked_programs / "drive", "back-end"])
    assert [tool.answer()["code"] for _ in range(2)] == ["waiting", "ok"]
    nodes = [process for process in family(step.pid) if command_name(process) == "overlay-node"]
    assert len(nodes) == 6

    def interrupt(wave):
        if wave == 50:
            kill(nodes[0])

    check_waves(tool, 8, 200, interrupt)
    assert tool.execute_ok("lost 0")["lost"] == []
    assert tool.end() == 0
    step.wait(60)


def test_a_step_that_fails_or_ends_too_early_is_reported(start, tmp_path):
    for command, why in (
        ("false", "failed before they had attached"),
        ("no-such-launcher", "cannot start"),
    ):
        tool = start(
            flat(2), up=False, DRIVE_FILE=str(tmp_path / "c"), DRIVE_STEP="1", DRIVE_LAUNCH=command
        )
        answer = tool.answer()
        assert answer["code"] == "failed"
        assert tool.end() == 2
        assert why in answer["error"] + tool.read_stderr()
    assert not (tmp_path / "c").exists()


def test_a_task_without_a_number_ends_with_an_error(overlay_programs, tmp_path):
    file = tmp_path / "connection"
    file.write_text(
        "commodel overlay 1\ntoken " + "0" * 64 + "\n0 127.0.0.1 1 1 internal\n1 127.0.0.1 1 2\n"
    )
    file.chmod(0o600)
    node = shutil.which("overlay-node", path=str(overlay_programs))

    def task(*arguments, **settings):
        environment = os.environ | settings
        done = subprocess.run(
            [node, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 2
        return done.stderr

    assert "found no back-end 2" in task("--step", str(file), "true", PMI_RANK="2")
    assert "found no rank" in task("--step", str(file), "true")
    assert "cannot connect to the parent" in task("--step", str(file), "true", PMI_RANK="0")
    assert "cannot start no-such" in task("--step", str(file), "no-such", PMI_RANK="1")
    assert "wanted --boot, --step FILE COMMAND" in task("--step", str(file))


def test_python_starts_one_step_and_refuses_incomplete_options(
    overlay_programs, tmp_path, monkeypatch
):
    monkeypatch.setenv("COMMODEL_OVERLAY", str(overlay_programs))
    program = tmp_path / "leaf.py"
    program.write_text(
        "from commodel_overlay import attach\n"
        "with attach() as network:\n"
        "    for question, stream in network:\n"
        "        stream.send('%d', network.number)\n"
    )
    file, backend = tmp_path / "connection", [sys.executable, str(program)]
    network = Network(kary(2, 2), backend, LAUNCHER.split(), connection_file=file, one_step=True)
    with network, network.stream(filter="sum") as stream:
        stream.send("%d", 1)
        assert stream.receive(60).values == (6,)
    # In a separate process: with several builds of the library in one process, errors are mixed up.
    for options, message in (
        (f"connection_file={str(file)!r}", "both `launch` and `backend`, or none"),
        (f"launch={LAUNCHER.split()!r}", "wanted, for one step, a connection file"),
    ):
        script = (
            f"from commodel_overlay import Network\nNetwork({flat(2)!r}, {backend!r}, "
            f"one_step=True, {options})"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode
        assert message in done.stderr
