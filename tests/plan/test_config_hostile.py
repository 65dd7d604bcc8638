"""Experiments and platforms with any value anywhere: they load safely, or are refused in one line."""

import copy
import re
from functools import cache

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from tests.configfiles import FILES, load, paths, refusal

TEXTS = [
    (kind, text, path) for kind, text in FILES for path in paths(yaml.safe_load(text)) if path and path != ("title",)
]
EVIL = ["a;b", "a b;", "$(id)", "`id`", "a|b", "a&b", "a>b", "a<b", "a\nb", "a'b", 'a"b', "a\\b", "$HOME", "-x",
        "--x=1", "a\0b", "", " ", "*", "~", "a#b", "!x", "{a}", "ａ", "a\u2028b", "a\n", "a\rb"]  # fmt: skip
SAFE = re.compile(r"[A-Za-z0-9:.;+*/_,^@= -]*")


Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@cache
def parsed(text):
    return yaml.safe_load(text)


def mutated(text, path, value):
    data = copy.deepcopy(parsed(text))
    inside = data
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return yaml.dump(data, Dumper=Dumper, sort_keys=False)


@pytest.mark.parametrize(("kind", "text", "path"), TEXTS, ids=lambda value: str(value)[:40])
def test_shell_metacharacters_are_refused_everywhere(tmp_path, kind, text, path):
    for evil in EVIL:
        if path[:2] == ("simgrid", "config") and evil in ("-x", "a;b"):
            continue  # SimGrid's own syntax; stands after --cfg=key: in an argument list, never in a shell
        refusal(tmp_path, mutated(text, path, evil), kind)


@pytest.mark.parametrize(("kind", "text", "path"), TEXTS, ids=lambda value: str(value)[:40])
def test_wrong_kinds_of_value_are_refused_everywhere(tmp_path, kind, text, path):
    for value in (True, -1, [[1]], {"x": {}}, [], {"from": 1}, 1.5e200):
        if path == ("simgrid", "config") or (path[:2] == ("simgrid", "config") and not isinstance(value, list | dict)):
            continue
        if path[-1] == "factor" and value == 1.5e200:
            continue
        if path in {("matrix", 0, key) for key in ("exclude", "include")} | {("matrix",)} and value == []:
            continue
        refusal(tmp_path, mutated(text, path, value), kind)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e200, 1e200) | st.text(max_size=20) | st.sampled_from(EVIL),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300)
@given(st.sampled_from(TEXTS), anything)
def test_any_mutation_loads_or_is_refused_in_one_line(tmp_path_factory, place, value):
    kind, text, path = place
    folder = tmp_path_factory.mktemp("mutated")
    try:
        load(folder, mutated(text, path, value), kind)
        return
    except UserError as caught:
        error = caught
    assert error.exit_code == 2
    assert re.fullmatch(rf"{folder}/some.yaml:\d+: .*", error.message)  # a dot is never a line break


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (key, *texts(inner))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)


@settings(max_examples=400)
@given(
    st.sampled_from([place for place in TEXTS if "where" not in place[2]]),
    st.text(max_size=12) | st.text(st.sampled_from("ab0;:-/.* \n$"), max_size=6) | st.sampled_from(EVIL),
)
def test_whatever_is_accepted_is_safe_on_a_command_line(tmp_path_factory, place, value):
    kind, text, path = place
    try:
        loaded = load(tmp_path_factory.mktemp("safe"), mutated(text, path, value), kind)
    except UserError:
        return
    content = loaded.model_dump(exclude={"title"}, warnings="none")
    for block in content.get("matrix", ()):
        block.pop("exclude")
    if content.get("simgrid"):
        assert all(SAFE.fullmatch(inner) and " " not in inner for inner in texts(content["simgrid"].pop("config")))
    for word in texts(content):
        assert SAFE.fullmatch(word)
        assert ";" not in word
        assert "*" not in word
        assert not word.startswith("-")
    if kind == "platform":
        assert not any(" " in word for word in texts(content))
