"""Start-up by fork and by a command that runs programs on hosts, refused starts, and the build of
the library."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from commodel.platforms.tools import ROOT
from tests.overlay.building import FLAGS, SOURCES, run_clean
from tests.overlay.conftest import flat, kary
from tests.processes import arguments, command_name

AGENT = """#!/bin/sh
# As ssh does it: the first word is a host, the rest goes to a shell.
echo "$1 $2" >> "$AGENT_LOG"
shift
exec sh -c "$*"
"""


@pytest.mark.parametrize("checked", [False, True])
def test_phases_follow_one_another(start, checked):
    tool = start(kary(3, 2), checked)
    assert tool.up["backends"] == 9
    assert 0 < tool.up["launch"] <= tool.up["tree"] <= tool.up["all"]
    names = sorted(command_name(process) for process in tool.processes())
    assert names == ["drive"] * 10 + ["overlay-node"] * 3
    assert tool.end() == 0
    assert tool.read_stderr() == ""


def test_the_token_is_in_no_command_line_and_no_back_end_environment(start):
    tool = start(kary(2, 2))
    for process in tool.processes():
        assert not [
            word
            for word in arguments(process)
            if len(word) > 40 and set(word) <= set("0123456789abcdef")
        ]
    tool.execute_ok("open none 2 0 0")
    tool.execute_ok("tell 0 facts 0")
    assert {tool.execute_ok("recv 0 30")["values"][2] for _ in range(4)} == {"has none"}


def test_processes_have_no_files_of_others(start):
    tool = start(flat(20))
    tool.execute_ok("open none 2 0 0")
    tool.execute_ok("tell 0 facts 0")
    files = [tool.execute_ok("recv 0 30")["values"][1] for _ in range(20)]
    assert len(set(files)) == 1  # the last has not more than the first
    own = tool.execute_ok("files")["files"][0]
    assert own == files[0] + 19


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """Return a program that takes the place of ssh and logs its arguments."""
    path = tmp_path / "agent"
    path.write_text(AGENT)
    path.chmod(0o755)
    monkeypatch.setenv("AGENT_LOG", str(tmp_path / "log"))
    return path


def test_an_agent_starts_internal_processes_and_back_ends_on_hosts(start, agent, tmp_path):
    text = "localhost:0 => localhost:1 127.0.0.1:0 ;\nlocalhost:1 => localhost:2 localhost:3 ;\n"
    tool = start(text, DRIVE_LAUNCH=f"{agent} {{host}}")
    tool.execute_ok("open concat 0 0 0")
    tool.execute_ok("ask 0 1 1 1 %s")
    assert tool.execute_ok("recv 0 30")["leaves"] == 3
    assert tool.end() == 0
    lines = (tmp_path / "log").read_text().split("\n")[:-1]
    assert sorted(line.split()[0] for line in lines) == [
        "127.0.0.1",
        "localhost",
        "localhost",
        "localhost",
    ]
    # back-ends, too: then it becomes one
    assert {line.split()[1].rpartition("/")[2] for line in lines} == {"overlay-node"}


def test_hosts_with_unresolvable_names_still_join_the_network(start, agent):
    """A batch system may have node names that the network cannot resolve."""
    text = (
        "no.such.invalid:0 => no.such.invalid:1 no.such.invalid:2 ;\nno.such.invalid:1 => "
        "no.such.invalid:3 ;\n"
    )
    tool = start(text, DRIVE_LAUNCH=f"{agent} {{host}}")
    tool.execute_ok("open concat 0 0 0")
    tool.execute_ok("ask 0 1 1 1 %s")
    assert tool.execute_ok("recv 0 30")["leaves"] == 2
    assert tool.end() == 0


@pytest.mark.parametrize(
    "settings", [{"DRIVE_BACKEND": "/no/such/program"}, {"DRIVE_BACKEND": "/bin/false"}]
)
@pytest.mark.parametrize("topology", [flat(3), kary(2, 2)])
def test_back_ends_that_end_at_once_end_the_start(start, topology, settings):
    tool = start(topology, up=False, **settings)
    answer = tool.answer()
    assert answer["code"] == "failed"
    code = 127 if "no" in settings["DRIVE_BACKEND"] else 1
    assert "the back-end of h:" in answer["error"]
    assert f"ended with code {code} before it attached" in answer["error"]
    assert tool.end() == 2


def test_back_ends_that_never_attach_end_the_start_in_time(start, tmp_path):
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 1000\n")
    sleeper.chmod(0o755)
    tool = start(kary(2, 2), up=False, DRIVE_BACKEND=str(sleeper), DRIVE_START="1")
    answer = tool.answer()
    assert (
        "back-ends not up after 1 s: no word of 2 of 2 sub-trees, h:1 the first" in answer["error"]
    )
    assert tool.end() == 2


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("h:0 => -oProxyCommand=x:1 ;", "1: found '-oProxyCommand=x:1', wanted host:NUMBER or ;"),
        ("h:0 => $(id):1 ;", "1: found '$(id):1', wanted host:NUMBER"),
        ("h:0 ;", "1: found ';', wanted =>"),
        (
            "h:0 => h:1 ;\nh:2 => h:3 ;",
            "2: found a second root 'h:2', the first is 'h:0' on line 1",
        ),
        (
            "h:0 => h:1 ;\n\nh:2 => h:1 ;",
            "3: 'h:1' has a second parent 'h:2', the first is 'h:0' on line 1",
        ),
        ("h:0 => h:1 ;\nh:1 => h:0 ;", "1: a cycle: every node has a parent, 'h:0' too"),
        (
            "h:9 => h:8 ;\nh:0 => h:1 ;\nh:1 => h:0 ;",
            "2: a cycle: 'h:0' cannot be reached from the root 'h:9'",
        ),
        ("h:0 => h:1", "1: the statement of 'h:0' has no end: wanted host:NUMBER or ;"),
        ("", "found no nodes"),
        ("node,parent\n0,\n", "found a topology of one node"),
        ("node,parent\n0,\n1,0\nx y,0\n", "4: found 'x y,0', wanted NODE,PARENT"),
    ],
)
def test_an_invalid_topology_is_refused_with_the_reason(start, text, error):
    tool = start(text, up=False)
    assert error in tool.answer()["error"]
    assert tool.end() == 2


@pytest.mark.parametrize(
    "spec", ["kary:3^3", "binomial:5", "groups:6,6,5", "random:60@7", "chain:4", "knomial:3@40"]
)
def test_every_spec_of_commodel_topology_is_a_tree_here(start, spec):
    exported = {}
    for form in ("mrnet", "csv"):
        command = [sys.executable, "-m", "commodel", "show", "topology", spec, "--format", form]
        exported[form] = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
    names = []
    for text in exported.values():
        tool = start(text)
        names.append([name.removeprefix("node").removesuffix(":0") for name in tool.up["names"]])
        assert tool.end() == 0
    assert names[0] == names[1]
    parents = [row.partition(",")[2] for row in exported["csv"].split()[1:]]
    assert sorted(names[0], key=int) == [
        str(node) for node in range(len(parents)) if str(node) not in parents
    ]


def test_the_example_is_an_uptime(tmp_path, overlay_programs):
    program = overlay_programs / "uptime"
    link = [overlay_programs / "liboverlay.so", f"-Wl,-rpath,{overlay_programs}", "-o", program]
    run_clean(["cc", *FLAGS, "-I", SOURCES, ROOT / "examples" / "overlay" / "uptime.c", *link])
    (tmp_path / "tree").write_text(kary(2, 2))
    assert run_clean([program, tmp_path / "tree"]).stdout.startswith("4 hosts, load average: ")
    refused = subprocess.run(
        [program, tmp_path / "none"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "none: cannot read the topology: No such file" in refused.stderr


def test_the_shared_library_exports_the_header_and_nothing_else(overlay_programs):
    symbols = run_clean(
        ["nm", "-D", "--defined-only", overlay_programs / "liboverlay.so"]
    ).stdout.split("\n")[:-1]
    names = {line.split()[2] for line in symbols}
    header = (SOURCES / "overlay.h").read_text()
    assert names == {name for name in names if f" {name}(" in header or f"*{name}(" in header}
    assert len(names) == 48
    assert header.count("\n") <= 120
    reference = (ROOT / "docs" / "overlay-reference.md").read_text()
    assert not [name for name in names if f"`{name}`" not in reference]


def test_processes_that_have_nothing_to_do_do_nothing(start):
    tool = start(kary(3, 3))
    tool.execute_ok("open sum 0 0 0")
    tool.execute_ok("pump 0 3")

    def ticks():
        texts = [Path(f"/proc/{process}/stat").read_text() for process in tool.processes()]
        rows = [text.rpartition(")")[2].split() for text in texts]
        return sum(int(row[11]) + int(row[12]) for row in rows)

    before = ticks()
    time.sleep(2)
    assert ticks() - before <= 10  # of 10 ms, in 40 processes
