"""SimGrid XML from unknown sources describes hosts and links; any other content is refused with its
line.

Values of SimGrid's settings are refused before a run if SimGrid would fail on them or misread
them."""

import subprocess

import pytest

from commodel.errors import UserError
from commodel.plan.config import load_platform
from commodel.platforms.simulated_networks import (
    check_value,
    read_network,
    write_network_with_traces,
)
from commodel.platforms.tools import ROOT

HEAD = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    '<platform version="4.1">\n'
)
CLUSTER = (
    '<cluster id="c" prefix="node-" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="1us"/>\n'
    "</platform>\n"
)
REFUSED = {
    "an entity": (
        HEAD.replace('simgrid.dtd"', 'simgrid.dtd" [<!ENTITY a "b">]') + CLUSTER,
        2,
        "found a DOCTYPE with declarations",
    ),
    "a setting that writes": (
        HEAD + '<config><prop id="tracing/filename" value="/tmp/x"/></config>' + CLUSTER,
        4,
        "found the setting 'tracing/filename', which is not passed to SimGrid",
    ),
    "a value of a setting": (
        HEAD + '<config><prop id="smpi/wtime" value="1us"/></config>' + CLUSTER,
        4,
        "smpi/wtime: found '1us', wanted a number without a unit",
    ),
    "a trace file": (
        HEAD + '<trace id="t" file="/etc/passwd"/>' + CLUSTER,
        4,
        "found file= of <trace>",
    ),
    "a line of a trace": (
        HEAD + '<trace id="t" periodicity="1">\n0 x\n</trace>' + CLUSTER,
        6,
        "found '0 x' in a <trace>",
    ),
    "an endless trace": (
        HEAD + '<trace id="t">\n0 1\n</trace>' + CLUSTER,
        4,
        "without periodicity=",
    ),
    "a trace of no link": (
        HEAD
        + '<trace id="t" periodicity="1">0 1</trace><trace_connect trace="t" element="l" kind="LATENCY"/>',
        4,
        "found element='l', wanted the id of a <link> above",
    ),
    "a trace of a host's state": (
        HEAD + '<trace_connect trace="t" element="l" kind="STATE"/>',
        4,
        "found kind='STATE'",
    ),
    "a file of speeds": (
        HEAD + '<host id="h" speed="1f" speed_file="/etc/passwd"/>' + CLUSTER,
        4,
        "found speed_file=",
    ),
    "a program": (HEAD + '<actor host="node-0" function="x"/>' + CLUSTER, 4, "found <actor>"),
    "another file": (HEAD + '<include file="x.xml"/>' + CLUSTER, 4, "found <include>"),
    "too many hosts": (
        HEAD + CLUSTER.replace("0-3", "0-99999999"),
        4,
        "found 100000000 hosts, wanted at most",
    ),
    "endless numbers": (
        HEAD + CLUSTER.replace("0-3", "0-" + "9" * 30),
        4,
        "wanted numbers such as 0-31",
    ),
    "another root": ("<html/>", 1, "wanted <platform>"),
    "a library": ("\x7fELF", 1, "not XML"),
    "an unknown encoding": (
        '<?xml version="1.0" encoding="nonsense"?><platform/>',
        None,
        "not XML",
    ),
}


@pytest.mark.parametrize(("text", "line", "message"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_simgrid_network_file_is_refused(tmp_path, text, line, message):
    path = tmp_path / "net.xml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(UserError) as caught:
        read_network(path)
    assert caught.value.message.startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert message in caught.value.message


@pytest.mark.parametrize(
    "path",
    sorted([*ROOT.glob("params/**/*.xml"), *ROOT.glob("tests/**/*.xml")]),
    ids=lambda path: path.stem,
)
def test_the_networks_of_this_project_are_read(path):
    assert read_network(path).content == path.read_bytes()


def test_a_platform_with_such_a_network_names_both_files(tmp_path):
    (tmp_path / "net.xml").write_text(HEAD + "<actor/></platform>")
    platform = tmp_path / "machine.yaml"
    platform.write_text("launcher: simgrid\nnodes: 2\ncores: 1\nsimgrid:\n  file: net.xml\n")
    with pytest.raises(
        UserError, match=f"^{platform}:5: simgrid.file: {tmp_path}/net.xml:4: found <actor>"
    ):
        load_platform(platform)


FOUR = '<host id="one-0" speed="1f"/>' + CLUSTER.replace("0-3", "0,1,3")
HOSTS = {
    "all of them": ("node-", 2, FOUR, ""),
    "a prefix that ends with a digit": ("node-1", 2, FOUR.replace("0,1,3", "10-11"), ""),
    "clusters that differ in a digit": (
        "node-",
        2,
        FOUR.replace("node-", "node-0").replace("0,1,3", "7"),
        "no host 'node-0'",
    ),
    "one by one": ("one-", 1, FOUR, ""),
    "another name": (
        "nod-",
        2,
        FOUR,
        r":5: simgrid.prefix: found 'nod-', but net.xml has no host 'nod-0'; wanted the prefix of hosts like 'one-0'",
    ),
    "too many": (
        "node-",
        3,
        FOUR,
        r":2: nodes: found 3, but net.xml has no host 'node-2'; wanted at most 2 nodes",
    ),
    "a suffix": ("node-", 1, FOUR.replace('suffix=""', 'suffix=".x"'), "has no host 'node-0'"),
    "no host at all": ("node-", 1, "</platform>", "wanted hosts in it"),
}


@pytest.mark.parametrize(("prefix", "nodes", "network", "message"), HOSTS.values(), ids=HOSTS)
def test_the_network_has_the_hosts_of_the_platform(tmp_path, prefix, nodes, network, message):
    (tmp_path / "net.xml").write_text(HEAD + network)
    platform = tmp_path / "machine.yaml"
    platform.write_text(
        f"launcher: simgrid\nnodes: {nodes}\ncores: 1\nsimgrid:\n  prefix: {prefix}\n  file: net.xml\n"
    )
    if message:
        with pytest.raises(UserError, match=message):
            load_platform(platform)
    else:
        assert load_platform(platform).node_names[-1] == f"{prefix}{nodes - 1}"


TAKEN = [
    ("smpi/os", "0:6e-6:0"),
    ("smpi/os", "0:6us:0;1500:4e-5:2e-9"),
    ("smpi/lat-factor", "0:1;65536:1.2"),
    ("smpi/wtime", "1e-6"),
    ("smpi/async-small-thresh", "65536"),
    ("smpi/host-speed", "1Gf"),
    ("smpi/host-speed", "1.5gigaflops"),
    ("smpi/simulate-computation", "no"),
    ("smpi/bcast", "binomial_tree"),
    ("network/bandwidth-factor", "0.97"),
    ("maxmin/concurrency-limit", "-1"),
    ("contexts/stack-size", "8192"),
]
FATAL = [
    ("smpi/os", "6us"),
    ("smpi/os", "0:x:0"),
    ("smpi/os", "0:"),
    ("smpi/bw-factor", "0:90%"),
    ("smpi/bw-factor", "0:1;2147483648:0.5"),
    ("smpi/wtime", "1us"),
    ("smpi/async-small-thresh", "64KiB"),
    ("smpi/host-speed", "1GHz"),
    ("smpi/host-speed", "1Gflops"),
    ("smpi/simulate-computation", "maybe"),
    ("network/loopback-bw", "1GBps"),
    ("maxmin/concurrency-limit", "x"),
    ("contexts/stack-size", "8MiB"),
]
MISREAD = [
    ("smpi/os", "0:6e-6"),
    ("smpi/bw-factor", "0:0.5:0.7"),
    ("smpi/os", "1KiB:6e-6:0"),
    ("smpi/os", "1e3:6e-6:0"),
    ("smpi/os", "-1:6e-6:0"),
    ("smpi/wtime", "-1"),
]


@pytest.mark.parametrize(("name", "value"), TAKEN)
def test_safe_simgrid_options_are_accepted(name, value):
    check_value(name, value)


@pytest.mark.parametrize(("name", "value"), FATAL + MISREAD)
def test_fatal_or_misread_simgrid_options_are_refused(name, value):
    with pytest.raises(UserError, match=f"^found '{value}', wanted "):
        check_value(name, value)


PROGRAM = """#include <mpi.h>
int main(int argc, char **argv) {
  int rank, word = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank) MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  return MPI_Finalize();
}
"""


@pytest.mark.parametrize(
    ("name", "value", "passed"),
    [
        ("smpi/bw-factor", "0.9", "0:0.9"),
        ("smpi/lat-factor", "2", "0:2"),
        ("smpi/lat-factor", "65536:1.2;0:1", "65536:1.2;0:1"),
        ("smpi/os", "0.001", "0:0.001:0"),
        ("smpi/or", "0:6us;1500:4e-5:2e-9;65536:0", "0:6us:0;1500:4e-5:2e-9;65536:0:0"),
        ("network/bandwidth-factor", "0.97", "0.97"),
    ],
)
def test_a_single_number_is_passed_in_the_form_that_every_simgrid_reads(
    tmp_path, name, value, passed
):
    (tmp_path / "net.xml").write_text(HEAD + CLUSTER)
    text = (
        "launcher: simgrid\nnodes: 4\ncores: 1\nsimgrid: "
        f"{{file: net.xml, config: {{{name}: VALUE}}}}\n"
    )
    for number, written in enumerate((value, passed)):
        (tmp_path / f"net{number}.yaml").write_text(text.replace("VALUE", written))
    platforms = [load_platform(tmp_path / f"net{number}.yaml") for number in (0, 1)]
    assert [platform.simgrid.config for platform in platforms] == [{name: passed}] * 2
    assert platforms[0].digest == platforms[1].digest


@pytest.mark.parametrize("value", ["0,9", "6us", "0:1:2;x", "-1"])
def test_an_error_shows_the_value_of_the_file(tmp_path, value):
    (tmp_path / "net.xml").write_text(HEAD + CLUSTER)
    text = (
        "launcher: simgrid\nnodes: 4\ncores: 1\nsimgrid: "
        f"{{file: net.xml, config: {{smpi/os: '{value}'}}}}\n"
    )
    (tmp_path / "net.yaml").write_text(text)
    with pytest.raises(UserError, match=f"smpi/os: found '{value}'"):
        load_platform(tmp_path / "net.yaml")


def test_a_wrong_last_piece_of_hundreds_is_refused_at_once(tmp_path):
    """The time to refuse a value must not double with each piece. Sizes of ten digits up to an int
    are accepted."""
    pieces = ";".join(f"{size}:0.5" for size in range(10, 400))
    check_value("smpi/bw-factor", f"{pieces};2146999999:1")
    for last in ("2147483648:1", "12345678901:1", "500:x"):
        with pytest.raises(UserError, match="SIZE:FACTOR"):
            check_value("smpi/bw-factor", f"{pieces};{last}")


LOAD = """<zone id="z" routing="Full"><host id="node-0" speed="1Gf"/><host id="node-1" speed="1Gf"/>
<link id="l" bandwidth="100MBps" latency="1us"/><route src="node-0" dst="node-1"><link_ctn id="l"/></route></zone>
<trace id="load" periodicity="0.5">
0 1e8
  0.25 2e7
</trace><trace_connect trace="load" element="l" kind="BANDWIDTH"/></platform>"""


def test_traces_become_files_that_links_name(tmp_path):
    (tmp_path / "net.xml").write_text(HEAD + LOAD)
    (tmp_path / "work").mkdir()
    written = write_network_with_traces(tmp_path / "net.xml", tmp_path / "work")
    assert (tmp_path / "work" / "net-0.trace").read_text() == "PERIODICITY 0.5\n0 1e8\n0.25 2e7\n"
    text = written.read_text()
    assert 'bandwidth_file="net-0.trace"' in text
    assert "<trace" not in text
    (tmp_path / "still.xml").write_text(HEAD + CLUSTER)
    assert write_network_with_traces(tmp_path / "still.xml", tmp_path / "work") is None


@pytest.mark.slow
def test_simgrid_agrees(simgrid_programs, tmp_path):
    for name, text in (
        ("net.xml", HEAD + CLUSTER),
        ("hosts", "node-0\nnode-1\n"),
        ("one.c", PROGRAM),
    ):
        (tmp_path / name).write_text(text)
    subprocess.run(["smpicc", "one.c", "-o", "one"], cwd=tmp_path, check=True)
    start = ["smpirun", "-np", "2", "-platform", "net.xml", "-hostfile", "hosts"]
    for name, value in TAKEN + FATAL:
        run = subprocess.run(
            [*start, f"--cfg={name}:{value}", "./one"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert (run.returncode == 0) == ((name, value) in TAKEN), (name, value)
