"""Mistakes in experiments, and hostile text: `plan` prints one line, with the file and the line,
and exits with 2."""

from contextlib import suppress

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.cli import main
from commodel.errors import UserError
from commodel.patterns.trees.topologies import make_tree

VALID = """title: a good one
platform: local
models: [loggp]
probes: auto
matrix:
  - axes:
      operation: bcast
      algorithm: [linear, "chain:4KiB"]
      ranks: 2
      layout: block
      bytes: [8, 1KiB]
  - axes: {operation: reduce, topology: "flat:1", bytes: 8}
"""
PLATFORM = "launcher: local\nnodes: 1\ncores: 4\n"
# name: (text of VALID, its replacement, line number in the error, words of the error)
MUTATIONS = {
    "unknown platform": ("platform: local", "platform: locla", 2, "local"),
    "unknown model": ("[loggp]", "[logpg]", 3, "did you mean"),
    "all in a list with a model": ("[loggp]", "[loggp, all]", 3, "wanted it alone"),
    "unknown probe": ("probes: auto", "probes: [pingpang]", 4, "pingpong"),
    "unknown operation": ("operation: bcast", "operation: brodcast", 7, "bcast"),
    "unknown algorithm": ("[linear,", "[lineer,", 8, "linear"),
    "algorithm of another operation": ("[linear,", "[dissemination,", 8, "bcast"),
    "argument that is not a size": ("chain:4KiB", "chain:4XB", 8, "4XB"),
    "argument for an algorithm without arguments": ("[linear,", "['linear:4',", 8, "takes none"),
    "too many ranks": ("ranks: 2", "ranks: 5", 9, "5 ranks"),
    "one rank": ("ranks: 2", "ranks: 1", 9, "wanted 2 to"),
    "no ranks": ("      ranks: 2\n", "", None, "ranks are missing"),
    "no bytes": ("      bytes: [8, 1KiB]\n", "", None, "bytes are missing"),
    "unknown layout": ("layout: block", "layout: blok", 10, "block"),
    "layout that does not fit": ("layout: block", 'layout: "block:9"', None, "cores"),
    "unknown topology": ('"flat:1"', '"flot:1"', 12, "flat"),
    "topology without argument": ('"flat:1"', "flat", 12, "flat:LEAVES"),
    "topology with too many nodes": ('"flat:1"', '"kary:99^9"', 12, "limit"),
    "topology that does not fit": ('"flat:1"', '"flat:9"', 12, "10"),
    "topology for an operation that takes none": (
        "operation: reduce",
        "operation: gather",
        12,
        "topology",
    ),
    "no such topology file": ('"flat:1"', '"file:none.top"', 12, "none.top"),
    "topology file with a cycle": ('"flat:1"', '"file:cycle.top"', 12, "cycle"),
    "misspelt key": ("models:", "modles:", 3, "models"),
    "negative size": ("[8, 1KiB]", "[-8]", 11, "-8"),
    "empty axis": ("[8, 1KiB]", "[]", 11, "empty"),
    "axis with too many values": ("[8, 1KiB]", "{from: 1, to: 1TiB, step: 1}", 11, "wanted"),
    "python tag": ("title: a good one", "title: !!python/object/apply:os.system [id]", 1, "tag"),
}


@pytest.fixture
def plan_invalid(tmp_path, monkeypatch):
    """Return a function that plans an invalid experiment and returns the line on standard error."""
    monkeypatch.chdir(tmp_path)
    for name in ("experiments", "platforms"):
        (tmp_path / "params" / name).mkdir(parents=True)
    (tmp_path / "params/platforms/local.yaml").write_text(PLATFORM)
    (tmp_path / "cycle.top").write_text("a:0 => b:0 ;\nb:0 => a:0 ;\n")

    def plan(text: str) -> str:
        (tmp_path / "params/experiments/mine.yaml").write_text(text)
        result = CliRunner().invoke(main, ["plan", "mine"])
        assert result.exit_code == 2, result.output
        assert result.stderr.count("\n") == 1, result.stderr
        return result.stderr

    return plan


def test_the_valid_experiment_is_planned(plan_invalid, tmp_path):
    (tmp_path / "params/experiments/mine.yaml").write_text(VALID)
    result = CliRunner().invoke(main, ["plan", "mine"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mistake_is_reported_with_its_line(name, plan_invalid):
    old, new, line, word = MUTATIONS[name]
    assert old in VALID
    message = plan_invalid(VALID.replace(old, new, 1))
    assert f"mine.yaml:{line or ''}" in message
    assert word in message


@pytest.mark.parametrize("text", ["bcast", "linear,", "chain:4KiB", "flat:1", "block\n", "loggp"])
@pytest.mark.parametrize(
    "hostile",
    ["$(id)", "`id`", "a;id", "a|id", "a&id", "../../etc", "--cfg=x", "a\\nb", "{x}", "%s"],
)
def test_shell_characters_are_refused_in_every_key(text, hostile, plan_invalid):
    separator = text[-1] if text[-1] in "\n," else ""
    is_quoted = text.startswith(("chain", "flat"))  # in VALID
    message = plan_invalid(
        VALID.replace(text, hostile if is_quoted else f"'{hostile}'{separator}", 1)
    )
    assert message.startswith("commodel: ")


@given(st.text(max_size=30))
@settings(max_examples=60, deadline=None)
def test_any_text_as_a_topology_is_accepted_or_refused_without_a_traceback(text):

    for spec in (f"balanced:{text}", text):
        with suppress(UserError):
            make_tree(spec)
