"""Data sheets of networks: costs of messages in closed form, and common mistakes."""

import re

import numpy as np
import pytest
from click.testing import CliRunner

from commodel.api.fits import read_data_sheet
from commodel.cli import main
from commodel.errors import UserError
from commodel.files.parameter_sets import write_parameters
from commodel.patterns.schedule import Schedule
from commodel.plan.config import load_platform
from commodel.platforms.tools import ROOT
from commodel.predictions.model import Model
from commodel.predictions.predictions import predict
from tests.patterns.catalogue import point

# seconds of a link, of a link up, of software; bytes a second
NODE, UP, AT_END, FAST = 1e-6, 2e-6, 5e-7, 1e9
HEAD = "launcher: slurm\nnodes: 32\ncores: 2\nlevels: {leaf: 8, pod: 16}\n"
LEAF = "{bandwidth: 8 Gbit/s, latency: 2us, uplinks: 4}"
SHEET = HEAD + (
    "data_sheet:\n"
    "  links:\n"
    "    node: {bandwidth: 1 GB/s, latency: 1us}\n"
    f"    leaf: {LEAF}\n"
    "    pod: {bandwidth: 500 MB/s, latency: 2us, uplinks: 2}\n"
    "  overhead: 500ns\n"
    "  eager: 64 MB\n"
)


def written(tmp_path, text=SHEET):
    path = tmp_path / "planned.yaml"
    path.write_text(text)
    return path


def cost(parameters, src, dst, size):
    """Return the costs of messages that are sent at once; each rank is on its own node."""
    flows = np.arange(len(src))
    pattern = Schedule.of(2 * len(src), 0, flows, len(src) + flows, size)
    return Model.of_set(parameters).cost(pattern.place(np.array([*src, *dst])))[0]


@pytest.mark.parametrize("name", ["shares", "loggp", "hockney"])
@pytest.mark.parametrize(
    ("to", "links", "slowest"),
    [(1, 2 * NODE, FAST), (9, 2 * (NODE + UP), FAST), (31, 2 * (NODE + 2 * UP), FAST / 2)],
)
def test_one_flow_takes_all_link_latencies_and_the_lowest_bandwidth(
    tmp_path, name, to, links, slowest
):
    predicted = cost(read_data_sheet(name, written(tmp_path)), [0], [to], 10**6)
    assert predicted == pytest.approx(2 * AT_END + links + 10**6 / slowest, rel=1e-5)


@pytest.mark.parametrize("flows", [2, 4, 5, 8])
def test_flows_over_the_links_up_of_a_leaf_get_equal_shares(tmp_path, flows):
    predicted = cost(
        read_data_sheet("shares", written(tmp_path)), range(flows), range(8, 8 + flows), 10**6
    )
    shared = max(10**6 / FAST, flows * 10**6 / (4 * FAST))
    assert predicted == pytest.approx(2 * AT_END + 2 * (NODE + UP) + shared, rel=1e-5)


@pytest.mark.parametrize("count", ["oversubscription: 2", "ports: 12", "uplinks: 4"])
def test_uplink_capacity_can_be_given_as_oversubscription_ports_or_uplinks(tmp_path, count):
    other = written(tmp_path, SHEET.replace("uplinks: 4", count))
    assert read_data_sheet("shares", other).values["c_out.leaf.a"].value == pytest.approx(
        1 / (4 * FAST)
    )


def test_of_a_higher_level_groups_count_not_nodes(tmp_path):
    pods = SHEET.replace("500 MB/s, latency: 2us, uplinks: 2", "1 GB/s, latency: 2us, {}")
    for said, links in (("ports: 10", 2), ("oversubscription: 4", 2)):
        values = read_data_sheet("shares", written(tmp_path, pods.replace("{}", said))).values
        assert values["c_out.pod.a"].value == pytest.approx(1 / (links * FAST))


def test_predictions_from_data_sheets_state_that_values_are_not_measured(tmp_path):
    parameters = read_data_sheet("shares", written(tmp_path))
    (prediction,) = predict(parameters, [point("bcast", "linear", ranks=4, bytes=8)])
    assert prediction.validity_text == parameters.source == "from data sheets, not measured"
    (by_loggp,) = predict(
        read_data_sheet("loggp", written(tmp_path)), [point("bcast", "linear", ranks=4, bytes=8)]
    )
    assert by_loggp.validity_text == prediction.validity_text


def test_within_a_node_nothing_is_known_without_memory(tmp_path):
    two = point("bcast", "linear", ranks=2, bytes=8, layout="block:2")
    for name in ("shares", "loggp", "hockney"):
        (prediction,) = predict(read_data_sheet(name, written(tmp_path)), [two], strict=False)
        assert "not probed: ranks in same node" in prediction.validity_text
        memory = written(tmp_path, SHEET + "  memory: {bandwidth: 4 GB/s, latency: 0.2us}\n")
        (prediction,) = predict(read_data_sheet(name, memory), [two])
        assert prediction.seconds == pytest.approx(2 * AT_END + 2e-7 + 8 / 4e9, rel=1e-2)


def test_one_switch_without_levels(tmp_path):
    flat = (
        "launcher: slurm\nnodes: 4\ncores: 1\ndata_sheet:\n  links: {node: {bandwidth: 1 GB/s, "
        "latency: 1us}}\n"
    )
    for name in ("shares", "loggp", "hockney"):
        assert cost(
            read_data_sheet(name, written(tmp_path, flat)), [0], [3], 1000
        ) == pytest.approx(3e-6, rel=1e-3)


REFUSED = {
    "no count": (
        ", uplinks: 4",
        "",
        8,
        "data_sheet.links.leaf: found only its bandwidth and latency, wanted one of",
    ),
    "two counts": (
        "uplinks: 4",
        "uplinks: 4, ports: 12",
        8,
        "found uplinks and ports, wanted one of",
    ),
    "few ports": ("uplinks: 4", "ports: 8", 8, "found 8 ports, wanted more than the 8 links down"),
    "a level too few": (
        "    leaf: " + LEAF + "\n",
        "",
        6,
        "found links of node, pod, wanted one of each of node, leaf",
    ),
    "no unit": (
        "1 GB/s",
        "100",
        7,
        "found '100', wanted a bandwidth such as 100 Gbit/s or 12.5 GB/s",
    ),
    "another unit": ("1 GB/s", "1 GB", 7, "found the unit 'GB' in '1 GB'"),
    "endless": ("1 GB/s", "1e999 GB/s", 7, "wanted 1 B/s to 1024 TiB/s"),
    "all goes up": ("uplinks: 4", "oversubscription: 1e9", 8, "wanted a number from 0.001 to 1000"),
    "nothing a second": ("1 GB/s", "0 GB/s", 7, "wanted more than 0"),
    "uneven groups": ("nodes: 32", "nodes: 28", None, ""),
    "ports of a node": ("latency: 1us", "latency: 1us, ports: 3", 7, "found ports, wanted uplinks"),
    "a time without a unit": ("overhead: 500ns", "overhead: 500", 10, "wanted a unit with it"),
}


@pytest.mark.parametrize(("old", "new", "line", "message"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_one_line(tmp_path, old, new, line, message):
    text = SHEET.replace(old, new)
    if line is None:
        text, line, message = (
            text.replace("uplinks: 4", "ports: 12"),
            8,
            "found groups of 4 and of 8, wanted uplinks",
        )
    path = written(tmp_path, text)
    with pytest.raises(UserError) as caught:
        load_platform(path)
    assert str(caught.value).startswith(f"{path}:{line}: "), caught.value
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--model", "tan"],
            "data sheets do not contain the parameters of model tan; wanted shares, hockney, loggp",
        ),
        (["--model", "shares", "t.csv"], "Got unexpected extra argument (t.csv)"),
    ],
)
def test_invalid_fit_arguments_with_a_data_sheet_are_refused(tmp_path, options, message):
    command = [
        "fit",
        "sheet",
        *options,
        "--platform",
        str(written(tmp_path)),
        "--out",
        str(tmp_path / "s.yaml"),
    ]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "s.yaml").exists()


def test_advice_and_rules_from_data_sheets_state_the_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_parameters(tmp_path / "s.yaml", read_data_sheet("shares", written(tmp_path)))
    ask = [
        "advise",
        "--params",
        "s.yaml",
        "--platform",
        "planned.yaml",
        "--operation",
        "bcast",
        "--ranks",
        "8",
    ]
    ask += ["--bytes", "8", "--layout", "block:1"]
    shown = CliRunner().invoke(main, ask).output
    assert "FROM DATA SHEETS: values of shares are not measured" in shown
    assert CliRunner().invoke(main, [*ask, "--out", "rules.conf"]).exit_code == 0
    assert (
        "(from data sheets, not measured)" in (tmp_path / "rules.conf").read_text().splitlines()[0]
    )


def test_a_platform_without_sheets_is_named(tmp_path):
    path = written(tmp_path, HEAD)
    with pytest.raises(UserError, match="found no section data_sheet"):
        read_data_sheet("shares", path)


def test_the_page_s_example_is_predicted(tmp_path):
    text = (ROOT / "docs/platforms.md").read_text(encoding="utf-8")
    example, with_sockets = [
        block
        for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
        if "data_sheet:" in block
    ]
    values = read_data_sheet("shares", written(tmp_path, example)).values
    assert values["c_out.leaf.a"].value == pytest.approx(2 / (16 * 12.5e9))
    assert values["L.beyond.a"].value == pytest.approx(2 * (300 + 350 + 500) * 1e-9)
    planned = written(tmp_path, f"launcher: slurm\n{with_sockets}")
    assert read_data_sheet("shares", planned).settings["sockets"] == 2
