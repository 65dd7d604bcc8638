"""Settings of a parameter set that predictions rely on: what is no such thing is refused in one line."""

import pytest

from commodel.errors import UserError
from commodel.files.parameter_sets import read_parameters

SET = "family: shares\nplatform: x\nsource: by hand\nsettings: {%s}\nparameters: {o_s: 1us}\n"


@pytest.mark.parametrize(
    ("written", "key", "wanted"),
    [
        ("uneven: x", "uneven", "a number"),
        ("uneven: 0", "uneven", "greater than 0"),
        ("crowded: 3", "crowded", "a mapping"),
        ("crowded: {nodes: 4}", "crowded.nodes", "a mapping"),
        ("crowded: {nodes: {from: a, times: 2}}", "crowded.nodes.from", "a number"),
        ("crowded: {hosts: {from: 8, times: 2}}", "crowded.hosts", "'nodes', 'ranks', 'rounds', 'row' or 'fan'"),
        ("alone: {beyond: 3}", "alone.beyond", "a mapping"),
        ("alone: {beyond: {bytes: [1], took: [0], predicted: [1]}}", "alone.beyond.took[0]", "greater than 0"),
        ("alone: {beyond: {bytes: [1, 8], took: [1], priced: [1]}}", "alone.beyond", "rising sizes"),
        ("alone: {beyond: {bytes: [8, 1], took: [1, 1], priced: [1, 1]}}", "alone.beyond", "rising sizes"),
        ("probed: 7", "probed", "a list"),
        ("apart: {leaf: [1]}", "apart.leaf", "more"),
        ("half: 5", "half", "a list"),
        ("links: {leaf: 0}", "links.leaf", "greater than or equal to 1"),
        ("links: {leaf: 1.5}", "links.leaf", "a whole number"),
        ("links: {leaf: 1000000000}", "links.leaf", "less than or equal to 4096"),
        ("types: 3", "types", "a mapping"),
        ("ranks: many", "ranks", "a whole number"),
    ],
)
def test_settings_that_prices_rely_on(tmp_path, written, key, wanted):
    (tmp_path / "set.yaml").write_text(SET % written)
    with pytest.raises(UserError) as refused:
        read_parameters(tmp_path / "set.yaml")
    message = str(refused.value)
    assert f"set.yaml:4: settings.{key}: found" in message, message
    assert f"wanted {wanted}" in message, message
    assert "\n" not in message


def test_settings_of_families_stay_as_they_are(tmp_path):
    (tmp_path / "set.yaml").write_text(SET % "links: {leaf: 2}, recipe: joint, where: node-1")
    settings = read_parameters(tmp_path / "set.yaml").settings
    assert settings == {"links": {"leaf": 2}, "recipe": "joint", "where": "node-1"}
