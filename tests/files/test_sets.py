"""Settings of a parameter set that predictions use: invalid values are refused in one line."""

import pytest

from commodel.errors import UserError
from commodel.files.parameter_sets import read_parameters, write_parameters

SET = "family: shares\nplatform: x\nsource: by hand\nsettings: {%s}\nparameters: {o_s: 1us}\n"
SINGLE = "single_messages: {node: {%s}}"


@pytest.mark.parametrize(
    ("written", "key", "wanted"),
    [
        ("heterogeneity: x", "heterogeneity", "a number"),
        ("heterogeneity: 0", "heterogeneity", "greater than 0"),
        ("contention: 3", "contention", "a mapping"),
        ("contention: {nodes: 4}", "contention.nodes", "a mapping"),
        ("contention: {nodes: {from_bytes: a, ratio: 2}}", "contention.nodes.from_bytes", "a number"),
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
        (SINGLE % "bytes: [1, 8], measured: [1], predicted: [1]", "single_messages.node", "rising sizes"),
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


OLD = """family: loggp
platform: p
source: by hand
settings:
  probed: [beyond]
  uneven: 2.0
  apart: {beyond: [1, 2]}
  crowded: {nodes: {from: 8, times: 3}}
  alone:
    beyond: {bytes: [8], took: [2.0], priced: [1.0]}
parameters: {L: 1us, o: 1us, g: 1us, G: 1ns}
errors:
  all:
    {low: -1, high: 1, groups: 9, jobs: 2, operations: [bcast], seen: {ranks: [4], bytes: [8]},
     wider: {ranks: 0, bytes: 0, operation: 0}, growth: {ranks: 0, bytes: 0}}
"""


def test_old_keys_are_read_with_one_notice(tmp_path, capsys):
    (tmp_path / "old.yaml").write_text(OLD)
    parameters = read_parameters(tmp_path / "old.yaml")
    assert parameters.settings == {
        "probed_classes": ["beyond"],
        "heterogeneity": 2.0,
        "distance_ratios": {"beyond": [1, 2]},
        "contention": {"nodes": {"from_bytes": 8, "ratio": 3}},
        "single_messages": {"beyond": {"bytes": [8], "measured": [2.0], "predicted": [1.0]}},
    }
    assert (parameters.errors["all"].workloads, parameters.errors["all"].allocations) == (9, 2)
    assert parameters.errors["all"].measured == {"ranks": (4,), "bytes": (8,)}
    (note,) = capsys.readouterr().err.splitlines()
    assert "'alone' is now 'single_messages', 'took' is now 'measured'" in note
    write_parameters(tmp_path / "new.yaml", parameters)
    assert read_parameters(tmp_path / "new.yaml") == parameters
    assert capsys.readouterr().err == ""


def test_an_error_below_a_renamed_key_has_file_and_line(tmp_path):
    (tmp_path / "old.yaml").write_text(OLD.replace("took: [2.0]", "took: [x]"))
    with pytest.raises(UserError, match=r"old.yaml:10: settings.single_messages.beyond.measured\[0\]: found 'x'"):
        read_parameters(tmp_path / "old.yaml")
