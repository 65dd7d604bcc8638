import json

import openpyxl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files import yaml as yamltext

LOADERS = sorted({yamltext.Loader, yaml.SafeLoader}, key=lambda loader: loader.__name__)


@pytest.fixture(params=LOADERS, ids=lambda loader: loader.__name__, autouse=True)
def loader(request, monkeypatch):
    monkeypatch.setattr(yamltext, "Loader", request.param)


def read(text):
    return yamltext.parse_yaml(text, "some.yaml")


def test_plain_values_without_the_surprises_of_yaml_1_1():
    text = """
a: 1
b: 2.5
c: 1e3
d: true
e: no
f: 6:30
g: 010
h: 0x10
i: 1_000
j: 2024-01-31
k: null
l:
m: "1"
n: .inf
o: on
p: -3
q: |
  true
r: True
s: ! 12
t: 1.
"""
    assert read(text).data == {
        "a": 1, "b": 2.5, "c": 1000.0, "d": True, "e": "no", "f": "6:30", "g": "010", "h": "0x10", "i": "1_000",
        "j": "2024-01-31", "k": None, "l": None, "m": "1", "n": ".inf", "o": "on", "p": -3, "q": "true\n", "r": "True",
        "s": "12", "t": 1.0,
    }  # fmt: skip


def test_lines():
    document = read("a: 1\nb:\n  - x\n  - {y: 2,\n     z: [3]}\n")
    assert document.line(()) == 1
    assert document.line(("a",)) == 1
    assert document.line(("b",)) == 2
    assert document.line(("b", 0)) == 3
    assert document.line(("b", 1, "z")) == 5
    assert document.line(("b", 1, "z", 0)) == 5
    assert document.line(("b", 1, "missing", "deep")) == 4
    assert document.line(("missing",)) == 1
    assert document.has(("b", 1, "z", 0))
    assert not document.has(("b", 1, "z", 1))
    assert not document.has(("b", "y"))
    assert document.error(("b", 1, "z"), "no").message == "some.yaml:5: b[1].z: no"


def test_aliases_are_expanded():
    document = read("a: &x {k: [1, 2]}\nb: *x\n")
    assert document.data == {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}}
    assert document.line(("b", "k", 1)) == 2


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)
DEEP_ALIASES = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 60))
BROKEN = [
    ("a: !!python/object/apply:os.system ['true']", "1: found the tag"),
    ("b: 1\na: !!python/name:os.system", "2: found the tag"),
    ("a: !custom x", "1: found the tag"),
    ("a: !!str 1", "1: found the tag"),
    ("!!map {a: 1}", "1: found the tag"),
    ("a: !!binary aGk=", "1: found the tag"),
    ("%TAG ! tag:x,2000:\n---\na: 1", "%TAG"),
    ("a: ! [1]", "1: found the tag"),
    ("a: 1\nb: 2\na: 3", "3: found the key 'a' twice, first on line 1"),
    ("x:\n  a: {b: 1,\n   b: 2}", "3: found the key 'b' twice, first on line 2"),
    ("a: 1\n---\nb: 2", "found a second document"),
    ("1: x", "1: found the key '1', wanted text"),
    ("a: 1\ntrue: x", "2: found the key 'true'"),
    ("null: x", "found the key 'null'"),
    ("? [a, b]\n: x", "1: found a key that is not plain text"),
    ("? {a: b}\n: x", "1: found a key that is not plain text"),
    ("a: &x b\n*x : c", "2: found a key that is not plain text"),
    ("!t a: 1", "1: found a key that is not plain text"),
    (BOMB, "values, aliases expanded"),
    ("a: &x [*x]", "1: found the alias"),
    ("a: *nowhere", "1: found the alias"),
    (DEEP_ALIASES, "50: nested deeper"),
    ("[" * 60 + "]" * 60, "1: nested deeper"),
    ("[" * 100_000, "1: nested deeper"),
    ("{a: " * 100_000, "1: nested deeper"),
    ("- " * 5_000 + "x", "1: nested deeper"),
    ("", "empty file"),
    ("\n\n# nothing\n", "empty file"),
    ("---\n", "empty file"),
    ("a: [1", "not YAML"),
    ("a: 1\n\tb: 2", "2: found a tab"),
    ("a: 'x", "not YAML"),
    ("a: {b: 1", "not YAML"),
    ("a: b: c", "1: not YAML"),
    ("@", "1: not YAML"),
    ("a: \x00", "1: not YAML"),
    ("b: 1\na: \x1b[31m", "2: not YAML"),
    ("%YAML 3.0\n---\na: 1", "not YAML"),
    ("a: 1e999", "1: found the number"),
    ("a: " + "9" * 5000, "1: found the number"),
    ("a: -1e301", "1: found the number"),
]


@pytest.mark.parametrize(("text", "wanted"), BROKEN, ids=lambda value: repr(value)[:30])
def test_refused(text, wanted):
    with pytest.raises(UserError) as caught:
        read(text)
    message = caught.value.message
    assert message.startswith("some.yaml:")
    assert wanted in message
    assert "\n" not in message
    assert caught.value.exit_code == 2


def test_too_many_values(monkeypatch):
    monkeypatch.setattr(yamltext, "MAX_NODES", 1000)
    assert len(read("[" + "x, " * 999 + "]").data) == 999
    with pytest.raises(UserError, match="more than 1000 values"):
        read("a: b\nc: [" + "x, " * 998 + "]")


@pytest.mark.parametrize("anchored", ["[1, 2, 3, 4]", "{k: 1, l: 2, m: 3, n: 4}"])
def test_a_yaml_alias_counts_with_all_expanded_values(anchored, monkeypatch):
    # the document, a and its 4, b, and 5 for each of 2 aliases
    monkeypatch.setattr(yamltext, "MAX_NODES", 17)
    assert len(read(f"a: &x {anchored}\nb: [*x, *x]\n").data["b"]) == 2
    with pytest.raises(UserError, match="more than 17 values, aliases expanded"):
        read(f"a: &x {anchored}\nb: [*x, *x, 1]\n")


def test_refused_as_files(tmp_path):
    file = tmp_path / "some.yaml"
    with pytest.raises(UserError, match="cannot be read"):
        yamltext.read_yaml(file)
    with pytest.raises(UserError, match="cannot be read"):
        yamltext.read_yaml(tmp_path)
    file.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(UserError, match=":2: not UTF-8"):
        yamltext.read_yaml(file)
    file.write_bytes("a: 1\n".encode("utf-16"))
    with pytest.raises(UserError, match="not UTF-8"):
        yamltext.read_yaml(file)
    file.write_bytes(b"#" * (yamltext.MAX_FILE_BYTES + 1))
    with pytest.raises(UserError, match="1 MiB"):
        yamltext.read_yaml(file)
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert yamltext.read_yaml(file).data == {"a": 1}


words = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=8)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(-1e100, 1e100) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(words, plain, min_size=1), st.sampled_from([None, 1]))
def test_reads_json(data, indent):
    document = read(json.dumps(data, ensure_ascii=False, indent=indent))
    assert document.data == data
    for key in data:
        assert document.has((key,))
        assert document.line((key,)) >= 1


@settings(deadline=None)
@given(
    st.text(alphabet=st.sampled_from("ab: -\n[]{},&*!|>'\"#%@`?\t0.\x00é"), max_size=80)
    | st.text(max_size=40)
)
def test_any_text_is_read_or_refused_in_one_line(text):
    try:
        read(text)
        message = ""
    except UserError as error:
        message = error.message
    assert "\n" not in message


def test_a_workbook_is_called_one(tmp_path):
    book = tmp_path / "experiment.yaml"
    openpyxl.Workbook().save(book)
    with pytest.raises(UserError, match=r"found a workbook \(\.xlsx\)"):
        yamltext.read_yaml(book)
