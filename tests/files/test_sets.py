"""Settings of a parameter set that predictions use: invalid values are refused in one line."""

import pytest

from commodel.errors import UserError
from commodel.files.parameter_sets import read_parameters

SET = "model: shares\nplatform: x\nsource: by hand\nsettings: {%s}\nparameters: {o_s: 1us}\n"
SINGLE = "single_messages: {node: {%s}}"

COPIES = (
    "memory_copies: {type: [%s], procs: [%s], sockets: [1], bytes: [64], rate: [1e9], low: [1e9], "
    "high: [1e9], fastest: [1e9]}"
)


@pytest.mark.parametrize(
    ("written", "key", "wanted"),
    [
        ("heterogeneity: x", "heterogeneity", "a number"),
        ("heterogeneity: 0", "heterogeneity", "greater than 0"),
        ("contention: 3", "contention", "a mapping"),
        ("contention: {nodes: 4}", "contention.nodes", "a mapping"),
        (
            "contention: {nodes: {from_bytes: a, ratio: 2}}",
            "contention.nodes.from_bytes",
            "a number",
        ),
        (
            "contention: {hosts: {}}",
            "contention.hosts",
            "'nodes', 'ranks', 'rounds', 'row' or 'fan'",
        ),
        ("single_messages: {beyond: 3}", "single_messages.beyond", "a mapping"),
        (
            "single_messages: {node: {bytes: [1], measured: [0], predicted: [1]}}",
            "single_messages.node.measured[0]",
            "greater than 0",
        ),
        (
            SINGLE % "bytes: [1, 8], measured: [1], predicted: [1]",
            "single_messages.node",
            "rising sizes",
        ),
        (
            "single_messages: {node: {bytes: [8, 1], measured: [1, 1], predicted: [1, 1]}}",
            "single_messages.node",
            "rising sizes",
        ),
        ("probed_classes: 7", "probed_classes", "a list"),
        ("distance_ratios: {leaf: [1]}", "distance_ratios.leaf", "more"),
        ("half_duplex: 5", "half_duplex", "a list"),
        ("links: {leaf: 0}", "links.leaf", "greater than or equal to 1"),
        ("links: {leaf: 1.5}", "links.leaf", "a whole number"),
        ("links: {leaf: 1000000000}", "links.leaf", "less than or equal to 4096"),
        ("types: 3", "types", "a mapping"),
        ("ranks: many", "ranks", "a whole number"),
        ("memory_bandwidth: {node: 0}", "memory_bandwidth.node", "greater than 0"),
        ("memory_bandwidth: {foo: 1}", "memory_bandwidth.foo", "'node' or 'host'"),
        ("memory_from: -1", "memory_from", "greater than or equal to 0"),
        (COPIES % ("node", "2, 4"), "memory_copies.procs", "1 as in"),
        (COPIES % ("", "2"), "memory_copies.type", "at least"),
    ],
)
def test_settings_that_predictions_rely_on(tmp_path, written, key, wanted):
    (tmp_path / "set.yaml").write_text(SET % written)
    with pytest.raises(UserError) as refused:
        read_parameters(tmp_path / "set.yaml")
    message = str(refused.value)
    assert f"set.yaml:4: settings.{key}: found" in message, message
    assert f"wanted {wanted}" in message, message
    assert "\n" not in message


def test_model_specific_settings_are_read_unchanged(tmp_path):
    (tmp_path / "set.yaml").write_text(SET % "links: {leaf: 2}, recipe: joint, where: node-1")
    settings = read_parameters(tmp_path / "set.yaml").settings
    assert settings == {"links": {"leaf": 2}, "recipe": "joint", "where": "node-1"}
