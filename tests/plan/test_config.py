"""Experiment and platform files: their values, one-line errors, and arbitrary values anywhere,
which load safely or are refused."""

import copy
import json
import os
import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.plan import config
from tests.configfiles import (
    EXPERIMENT,
    FILES,
    HOSTS,
    LOCAL,
    NETWORK,
    SIMGRID,
    SLURM,
    load,
    paths,
    refusal,
)

SCHEMAS = Path(__file__).parents[2] / "workflow" / "schemas"


def test_experiment(tmp_path):
    experiment = load(tmp_path, EXPERIMENT)
    assert experiment.name == "some"
    assert experiment.models == ("hockney", "logp", "loggp", "tan")
    assert experiment.probes == "auto"
    assert experiment.measure.precision == 0.02
    assert experiment.probe_bytes == (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
    first, second = experiment.matrix
    assert list(first.axes) == ["operation", "topology", "bytes"]
    assert first.axes["topology"] == ("flat:16", "kary:2^4")
    assert first.zips == {"placement": {"ranks_per_node": (1, 4), "layout": ("block", "cyclic")}}
    assert first.include[0].bytes == 1 << 20
    assert experiment.block_platform(first) == "local"
    assert experiment.block_platform(second) == "fast-ethernet-32"
    where = experiment.error((*second.path, "axes", "algorithm", 1), "no such algorithm")
    assert (
        where.message == f"{tmp_path}/some.yaml:22: matrix[1].axes.algorithm[1]: no such algorithm"
    )
    assert (
        first.error(("axes", "topology"), "no").message
        == f"{tmp_path}/some.yaml:12: matrix[0].axes.topology: no"
    )


def test_defaults_and_short_forms(tmp_path):
    experiment = load(tmp_path, "platform: local\nmodels: hockney\n")
    assert experiment.models == ("hockney",)
    assert experiment.measure == config.Experiment.model_validate({"platform": "x"}).measure
    assert experiment.matrix == ()
    assert load(tmp_path, "platform: local\nmodels: all\n").models == "all"
    assert load(tmp_path, "platform: local\nprobe_bytes: 1KiB:4KiB:*2\n").probe_bytes == (
        1024,
        2048,
        4096,
    )
    explicit = "platform: local\nprobe_bytes: auto\n"
    assert load(tmp_path, explicit).digest == load(tmp_path, "platform: local\n").digest


def test_digest_is_of_the_content(tmp_path):
    experiment = load(tmp_path, EXPERIMENT)
    assert (
        experiment.digest == load(tmp_path, "# a comment\n" + EXPERIMENT, name="other.yaml").digest
    )
    assert experiment.digest == load(tmp_path, EXPERIMENT.replace("1MiB", "1024 KiB")).digest
    assert experiment.digest != load(tmp_path, EXPERIMENT.replace("seed: 1", "seed: 2")).digest
    platform = load(tmp_path, SIMGRID, "platform")
    assert platform.digest == load(tmp_path, SIMGRID, "platform").digest
    other = tmp_path / "other"
    other.mkdir()
    (other / "net.xml").write_text(f"{NETWORK} ")
    assert platform.digest != load(other, SIMGRID, "platform").digest


def test_the_title_of_a_platform_is_not_in_its_digest(tmp_path):
    """Results stay those of the same platform if only the line for the reports changes."""
    titled = load(tmp_path, SIMGRID, "platform")
    text = SIMGRID.replace(titled.title, "The old cluster")
    renamed = load(tmp_path, text, "platform")
    assert renamed.title == "The old cluster" != titled.title
    assert renamed.digest == titled.digest


def test_platforms(tmp_path):
    local = load(tmp_path, LOCAL, "platform")
    assert (local.launcher, local.cores, local.simulated, local.simgrid_file) == (
        "local",
        os.cpu_count(),
        False,
        None,
    )
    simulated = load(tmp_path, SIMGRID, "platform")
    assert simulated.simulated
    assert simulated.simgrid_file == tmp_path / "net.xml"
    assert simulated.simgrid.config == {
        "smpi/os": "0:6.5e-6:0",
        "smpi/async-small-thresh": "65536",
        "network/TCP-gamma": "0",
    }
    assert load(tmp_path, SLURM, "platform").slurm.mpi == "pmix"
    assert load(tmp_path, "launcher: slurm\nnodes: 4\ncores: 8\n", "platform").slurm.mpi == "pmi2"
    assert load(tmp_path, HOSTS, "platform").hosts.names == ("a", "b.example.org")


def test_broken_names(tmp_path):
    for name in ("Some.yaml", "a b.yaml", "-a.yaml", "a_b.yaml", "x" * 42 + ".yaml", "ä.yaml"):
        with pytest.raises(UserError, match="this file name"):
            load(tmp_path, EXPERIMENT, name=name)


def test_find(tmp_path):
    folder = tmp_path / "params" / "experiments"
    with pytest.raises(UserError, match="no experiments in"):
        config.find_config_file("experiment", "demo", tmp_path)
    folder.mkdir(parents=True)
    (folder / "demo.yaml").touch()
    assert config.find_config_file("experiment", "demo", tmp_path) == folder / "demo.yaml"
    assert config.find_config_file("experiment", str(folder / "demo.yaml")) == folder / "demo.yaml"
    with pytest.raises(UserError, match="unknown experiment 'dmo'; did you mean 'demo'"):
        config.find_config_file("experiment", "dmo", tmp_path)
    for name in ("../demo", "nowhere.yaml", "/", str(folder)):
        with pytest.raises(UserError, match="no such file"):
            config.find_config_file("experiment", name, tmp_path)


def test_committed_schemas_are_current():
    wanted = config.make_schemas()
    assert {file.name for file in SCHEMAS.glob("*.json")} >= set(wanted)
    for name, schema in wanted.items():
        assert json.loads((SCHEMAS / name).read_text()) == json.loads(json.dumps(schema)), (
            "run: python -m commodel.plan.config workflow/schemas"
        )


def objects(schema):
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for inner in schema.values():
            yield from objects(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from objects(inner)


def test_schemas_describe_every_field_and_forbid_the_rest():
    for schema in config.make_schemas().values():
        mappings = list(objects(schema))
        assert len(mappings) >= 4
        for inner in mappings:
            assert inner["additionalProperties"] is False
            for name, field in inner["properties"].items():
                assert field["description"], name


@pytest.mark.parametrize(("kind", "text"), FILES, ids=lambda value: value[:20])
def test_schemas_accept_valid_files_and_refuse_misspelt_keys(kind, text):
    jsonschema = pytest.importorskip("jsonschema")
    schema = config.make_schemas()[f"{kind}.schema.json"]
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    data = yaml.safe_load(text)
    validator.validate(data)
    for path in paths(data):
        if path and isinstance(path[-1], str) and not {"config", "zips"} & set(path[-2:-1]):
            broken = copy.deepcopy(data)
            inside = broken
            for key in path[:-1]:
                inside = inside[key]
            inside[path[-1] + "z"] = inside.pop(path[-1])
            assert not validator.is_valid(broken), path


# What is replaced in EXPERIMENT (`E`), the whole file, and what is replaced in a platform (`P`).
E = [
    ("models: [", "modles: [", "3: modles: found an unknown key; did you mean 'models'?"),
    ("platform: fast-ethernet-32\n", "", "1: found no key 'platform'"),
    ("platform: fast-ethernet-32", "platform: [a]", "2: platform: found a list, wanted a name"),
    ("platform: fast-ethernet-32", "platform: ../x", "2: platform: found '../x', wanted a name"),
    ("title: every key that there is", "title: " + "x" * 201, "1: title: found"),
    ("title: every key that there is", "title: [a]", "1: title: found a list, wanted one line of text"),
    ("title: every key that there is", 'title: "a\\nb"', "1: title: found 'a b', wanted one line"),
    ("[hockney, logp, loggp, tan]", "[]", "3: models: found an empty list, wanted 'all' or a list"),
    ("probes: auto", "probes: [p;q]", "4: probes[0]: found 'p;q'"),
    ("probes: auto", "probes:", "4: probes: found nothing, wanted 'auto'"),
    ("seed: 1", "seed: -1", "5: seed: found '-1', wanted a whole number, not negative"),
    ("sync: window", "sync: windows", "6: measure.sync: found 'windows'; did you mean 'window'?"),
    ("precision: 2%", "precision: 2", "6: measure.precision: found '2', wanted a fraction"),
    ("precision: 2%", "precision: 0", "6: measure.precision: found '0', wanted more than 0"),
    ("min_samples: 10", "min_samples: 0", "6: measure.min_samples: found '0', wanted a whole number from 1"),
    ("min_samples: 10", "min_samples: 501", "6: measure.min_samples: found 501, wanted at most max_samples, 500"),
    ("seconds: 2,", "seconds: 2 parsec,", "6: measure.seconds: found the unit 'parsec'"),
    ("warmup: 2}", "timeout: 60}", "6: measure.timeout: found '60', wanted a unit with it, such as 60us or 60s"),
    ("{from: 1, to: 64KiB, factor: 4}", "{from: 1, too: 64KiB, factor: 4}", "7: probe_bytes: found 'too' in a range; "),
    ("{from: 1, to: 64KiB, factor: 4}", "{from: 1, to: 64KiB}", "7: probe_bytes: found a range of from, to"),
    ("{from: 1, to: 64KiB, factor: 4}", "{from: 1, to: 64KB, factor: 4}", "7: probe_bytes: found the unit 'KB'"),
    ("{from: 1, to: 64KiB, factor: 4}", "{from: 1, to: 1TiB, step: 1}", "7: probe_bytes: found a range of 10995116277"),
    ("{from: 1, to: 64KiB, factor: 4}", "[1, -4]", "7: probe_bytes[1]: found '-4', wanted a size"),
    ("{from: 1, to: 64KiB, factor: 4}", "2000TiB", "7: probe_bytes: found '2000TiB', wanted at most"),
    ("{from: 1, to: 64KiB, factor: 4}", "autoo", "7: probe_bytes: found 'autoo'; did you mean 'auto'?"),
    ('"kary:2^4"]', '"kary:2^4"]\n      waves: 0', "13: matrix[0].axes.waves: found '0', wanted a whole number"),
    ("operation: reduce", "operation: -x", "11: matrix[0].axes.operation: found '-x', wanted A-Z"),
    ("operation: reduce", "opration: reduce", "11: matrix[0].axes.opration: found an unknown key; did you mean 'opera"),
    ("      operation: reduce\n", "", "9: matrix[0]: found no axis 'operation'"),
    ('"kary:2^4"', '"kary:2^4;rm"', "12: matrix[0].axes.topology[1]: found 'kary:2^4;rm', wanted A-Z"),
    ('"kary:2^4"', '"a\\nb"', "12: matrix[0].axes.topology[1]: found 'a b'"),
    ('"kary:2^4"', "kary:" + "2" * 200, "12: matrix[0].axes.topology[1]: found 205 characters, wanted at most 200"),
    ('"kary:2^4"', "!!python/name:os.system x", "12: found the tag"),
    ("bytes: {from: 1, to: 1MiB, factor: 2}", "bytes: [[1]]", "13: matrix[0].axes.bytes[0]: found a list"),
    ("bytes: {from: 1, to: 1MiB, factor: 2}", "bytes: 1:2", "13: matrix[0].axes.bytes: found '1:2', wanted FROM:TO"),
    ("bytes: {from: 1, to: 1MiB, factor: 2}", "layout: [block]", "17: matrix[0].zips.placement.layout: found here and"),
    ("bytes: {from: 1, to: 1MiB, factor: 2}", "algorithm: a", "9: matrix[0]: found both algorithm and topology"),
    ("bytes: {from: 1, to: 1MiB, factor: 2}", "operation: bcast", "13: found the key 'operation' twice, first on line"),
    ("ranks_per_node: [1, 4]", "ranks_per_node: [1]", "placement: found 1 values of ranks_per_node, 2 values of layou"),
    ("      placement:", "      pla cement:", "15: matrix[0].zips.pla cement: found 'pla cement', wanted a word"),
    ("exclude:\n      - where", "exclude:\n      - were", "19: matrix[0].exclude[0].were: found an unknown key; did y"),
    ("is_power_of_two(ranks)", "is_power_of_two(rank)", "19: matrix[0].exclude[0].where: 'algorithm"),
    ("is_power_of_two(ranks)", "__import__('os')", "19: matrix[0].exclude[0].where: 'algorithm"),
    ("operation: bcast, algorithm: binomial", "algorithm: binomial", "21: matrix[0].include[0]: found no key 'operati"),
    ("algorithm: binomial, ranks: 16", "algorithm: x, topology: y", "21: matrix[0].include[0].topology: found beside "),
    ("  - axes: {operation", "  - axs: {operation", "22: matrix[1].axs: found an unknown key; did you mean 'axes'?"),
    ("nodes: [2, 4], ranks_per_node: 2", "nodes: 2KiB", "22: matrix[1].axes.nodes: found '2KiB', wanted a whole numbe"),
]  # fmt: skip
WHOLE = [
    ("", ":? ?empty file"),
    ("- a\n", "1: found a list, wanted a mapping with the keys title, platform"),
    ("platform: a\nmatrix: {axes: 1}\n", r"2: matrix: found a mapping, wanted a list"),
    ("platform: a\nmatrix:\n  - {}\n", r"3: matrix\[0\]: found an empty block"),
    ("platform: a\nmatrix:\n  - zips: {z: {}}\n", r"3: matrix\[0\].zips.z: found an empty zip"),
    ("platform: a\nmeasure: fast\n", r"2: measure: found 'fast', wanted a mapping with the keys sync"),
    ("platform: a\n<<: {seed: 1}\n", r"2: <<: found an unknown key"),
    ("platform: a\n? [x]\n: y\n", r"2: found a key that is not plain text"),
    ("platform: a\nseed: 1\nseed: 2\n", r"3: found the key 'seed' twice, first on line 2"),
    ("platform: a\n---\nplatform: b\n", r"\d: found a second document"),
    ("platform: a\nseed: [1\n", r"\d: not YAML"),
    ("platform: a\n\tseed: 1\n", r"2: found a tab"),
    ("platform: a\nseed: *x\n", r"2: found the alias"),
    ("platform: a\nseed: " + "[" * 99 + "]" * 99 + "\n", r"2: nested deeper"),
    ("platform: a\nseed: " + "9" * 99 + "\n", r"2: found the number"),
    ("platform: a\n\"\\x1b[31m\": 1\n", r"2:  \[31m: found an unknown key"),
    ("platform: a\nseed: x\nprobe_bytes: y\nmodels: []\n", r"2: seed: found 'x', wanted"),
]  # fmt: skip
P = [
    (LOCAL, "launcher: local", "launcher: locale", "1: launcher: found 'locale'; did you mean 'local'?"),
    (LOCAL, "launcher: local\n", "", "1: found no key 'launcher'"),
    (LOCAL, "nodes: 1", "nodes: 2", "2: nodes: found 2, wanted 1, since a local platform is this machine"),
    (LOCAL, "cores: auto", "cores: all", "3: cores: found 'all', wanted a whole number, or 'auto'"),
    (LOCAL, "cores: auto", "cores: 1\nslurm: {}", "4: slurm: found a section that launcher 'local' does not have"),
    (SIMGRID, "cores: 1", "cores: auto", "4: cores: found 'auto', wanted a number"),
    (SIMGRID, "cores: 1", "cores: 1\nhosts:", "5: hosts: found a section that launcher 'simgrid' does not have"),
    (SIMGRID, "cores: 1", "cores: 1\ntypes: {same: 1}", "5: types.same: found 'same', wanted a name"),
    (SIMGRID, "cores: 1", "cores: 1\nfewer_cores: {fat: 1}", "5: fewer_cores.fat: found 'fat', which is none"),
    (SIMGRID, "cores: 1", "cores: 2\ntypes: {fat: 32}\nfewer_cores: {fat: 2}", "6: fewer_cores.fat: found 2, wanted"),
    (SIMGRID, "cores: 1", "cores: 1\ntypes: {fat: 999}", "5: types: found 999 nodes, wanted"),
    (SIMGRID, "  file: net.xml\n", "", "5: simgrid: found no key 'file'"),
    (SIMGRID, "file: net.xml", "file: ../net.xml", "6: simgrid.file: found '../net.xml', wanted a file in the folder"),
    (SIMGRID, "file: net.xml", "file: /etc/passwd", "6: simgrid.file: found '/etc/passwd', wanted a file in the folde"),
    (SIMGRID, "file: net.xml", "file: net.so", "6: simgrid.file: found 'net.so', wanted a file .xml"),
    (SIMGRID, "smpi/os:", "tracing/filename:", "7: simgrid.config.tracing/filename: found the setting 'tracing/file"),
    (SIMGRID, "smpi/os:", "smpi/tmpdir:", "7: simgrid.config.smpi/tmpdir: found the setting 'smpi/tmpdir', which is n"),
    (SIMGRID, "file: net.xml", "file: none.xml", "6: simgrid.file: "),
    (SIMGRID, "file: net.xml", "file: link.xml", "6: simgrid.file: found a link that leaves the folder"),
    (SIMGRID, "smpi/os:", "smpi os:", "7: simgrid.config.smpi os: found 'smpi os', wanted a SimGrid setting"),
    (SIMGRID, "0:6.5e-6:0", "0 --cfg=x", "7: simgrid.config.smpi/os: found '0 --cfg=x'"),
    (SIMGRID, '"0:6.5e-6:0"', "6us", "7: simgrid.config.smpi/os: found '6us', wanted SIZE:SECONDS:SECONDS_A_BYTE"),
    (SIMGRID, '"0:6.5e-6:0"', "1KiB:6e-6", "7: simgrid.config.smpi/os: found '1KiB:6e-6', wanted SIZE"),
    (SLURM, "mpi: pmix", "mpi: pmix --x", "4: slurm.mpi: found 'pmix --x', wanted a word"),
    (SLURM, "mpi: pmix", "gpus: {fat: 2}", "4: slurm.gpus.fat: found 'fat', which is none of `types`"),
    (SLURM, "mpi: pmix", "gpus: {}", "4: slurm.gpus: found no node type, wanted the GPUs of a node"),
    (SLURM, "mpi: pmix", "gpus: {fat: -1}", "4: slurm.gpus: found '-1', wanted a whole number"),
    (SLURM, "mpi: pmix", "gpus: 0", "4: slurm.gpus: found '0', wanted a whole number"),
    (SLURM, "mpi: pmix", "mpii: pmix", "4: slurm.mpii: found an unknown key; did you mean 'mpi'"),
    (HOSTS, "names: [a, b.example.org]", "names: []", "4: hosts.names: found an empty list, wanted at least one"),
    (HOSTS, "names: [a, b.example.org]", "names: [a, a]", "4: hosts.names: found a host twice"),
    (HOSTS, "names: [a, b.example.org]", "names: [a, 'b c']", "4: hosts.names[1]: found 'b c', wanted a host name"),
    (HOSTS, "nodes: 2", "nodes: 3", "2: nodes: found 3, wanted at most the 2 of hosts.names"),
    (HOSTS, "mpi: openmpi", "agent: ./evil", "4: hosts.agent: found an unknown key"),
    (HOSTS, "mpi: openmpi", "mpi: lam", "4: hosts.mpi: found 'lam'; wanted one of: mpich, openmpi"),
    (HOSTS, HOSTS[HOSTS.index("hosts: {") :], "", "1: found no section 'hosts', which launcher 'hosts' needs"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "wanted"), E, ids=lambda value: value[:40])
def test_broken_experiment(tmp_path, old, new, wanted):
    assert EXPERIMENT.count(old) >= 1
    assert wanted in refusal(tmp_path, EXPERIMENT.replace(old, new, 1))


@pytest.mark.parametrize(("text", "wanted"), WHOLE, ids=lambda value: repr(value)[:40])
def test_broken_from_scratch(tmp_path, text, wanted):
    assert re.match(wanted, refusal(tmp_path, text))


@pytest.mark.parametrize(("text", "old", "new", "wanted"), P, ids=lambda value: repr(value)[:40])
def test_broken_platform(tmp_path, text, old, new, wanted):
    (tmp_path / "folder").mkdir()
    (tmp_path / "outside.xml").touch()
    (tmp_path / "folder" / "link.xml").symlink_to(tmp_path / "outside.xml")
    assert text.count(old) == 1
    assert wanted in refusal(tmp_path / "folder", text.replace(old, new), "platform")


TEXTS = [
    (kind, text, path)
    for kind, text in FILES
    for path in paths(yaml.safe_load(text))
    if path and path != ("title",)
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
            # SimGrid's own syntax; stands after --cfg=key: in an argument list, never in a shell
            continue
        refusal(tmp_path, mutated(text, path, evil), kind)


@pytest.mark.parametrize(("kind", "text", "path"), TEXTS, ids=lambda value: str(value)[:40])
def test_wrong_kinds_of_value_are_refused_everywhere(tmp_path, kind, text, path):
    for value in (True, -1, [[1]], {"x": {}}, [], {"from": 1}, 1.5e200):
        if path == ("simgrid", "config") or (
            path[:2] == ("simgrid", "config") and not isinstance(value, list | dict)
        ):
            continue
        if path[-1] == "factor" and value == 1.5e200:
            continue
        if (
            path in {("matrix", 0, key) for key in ("exclude", "include")} | {("matrix",)}
            and value == []
        ):
            continue
        refusal(tmp_path, mutated(text, path, value), kind)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(-1e200, 1e200)
    | st.text(max_size=20)
    | st.sampled_from(EVIL),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
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
    # a dot is never a line break
    assert re.fullmatch(rf"{folder}/some.yaml:\d+: .*", error.message)


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
    st.text(max_size=12)
    | st.text(st.sampled_from("ab0;:-/.* \n$"), max_size=6)
    | st.sampled_from(EVIL),
)
def test_every_accepted_value_is_safe_on_a_command_line(tmp_path_factory, place, value):
    kind, text, path = place
    try:
        loaded = load(tmp_path_factory.mktemp("safe"), mutated(text, path, value), kind)
    except UserError:
        return
    content = loaded.model_dump(exclude={"title"}, warnings="none")
    for block in content.get("matrix", ()):
        block.pop("exclude")
    if content.get("simgrid"):
        assert all(
            SAFE.fullmatch(inner) and " " not in inner
            for inner in texts(content["simgrid"].pop("config"))
        )
    for word in texts(content):
        assert SAFE.fullmatch(word)
        assert ";" not in word
        assert "*" not in word
        assert not word.startswith("-")
    if kind == "platform":
        assert not any(" " in word for word in texts(content))
