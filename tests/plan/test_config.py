"""Experiment and platform files that are in order: what they mean, how they are found, and what the schemas say."""

import copy
import json
import os
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from commodel.errors import UserError
from commodel.plan import config
from tests.configfiles import EXPERIMENT, FILES, HOSTS, LOCAL, NETWORK, SIMGRID, SLURM, load, paths

SCHEMAS = Path(__file__).parents[2] / "workflow" / "schemas"


def test_experiment(tmp_path):
    experiment = load(tmp_path, EXPERIMENT)
    assert experiment.name == "some"
    assert experiment.families == ("hockney", "logp", "loggp", "tan")
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
    assert where.message == f"{tmp_path}/some.yaml:22: matrix[1].axes.algorithm[1]: no such algorithm"
    assert first.error(("axes", "topology"), "no").message == f"{tmp_path}/some.yaml:12: matrix[0].axes.topology: no"


def test_defaults_and_short_forms(tmp_path):
    experiment = load(tmp_path, "platform: local\nfamilies: hockney\n")
    assert experiment.families == ("hockney",)
    assert experiment.measure == config.Experiment.model_validate({"platform": "x"}).measure
    assert experiment.matrix == ()
    assert load(tmp_path, "platform: local\nfamilies: all\n").families == "all"
    assert load(tmp_path, "platform: local\nprobe_bytes: 1KiB:4KiB:*2\n").probe_bytes == (1024, 2048, 4096)
    explicit = "platform: local\nprobe_bytes: auto\n"
    assert load(tmp_path, explicit).digest == load(tmp_path, "platform: local\n").digest


def test_digest_is_of_the_content(tmp_path):
    experiment = load(tmp_path, EXPERIMENT)
    assert experiment.digest == load(tmp_path, "# a comment\n" + EXPERIMENT, name="other.yaml").digest
    assert experiment.digest == load(tmp_path, EXPERIMENT.replace("1MiB", "1024 KiB")).digest
    assert experiment.digest != load(tmp_path, EXPERIMENT.replace("seed: 1", "seed: 2")).digest
    platform = load(tmp_path, SIMGRID, "platform")
    assert platform.digest == load(tmp_path, SIMGRID, "platform").digest
    other = tmp_path / "other"
    other.mkdir()
    (other / "net.xml").write_text(f"{NETWORK} ")
    assert platform.digest != load(other, SIMGRID, "platform").digest


def test_frozen(tmp_path):
    with pytest.raises(ValueError, match="frozen"):
        load(tmp_path, EXPERIMENT).seed = 3


def test_platforms(tmp_path):
    local = load(tmp_path, LOCAL, "platform")
    assert (local.launcher, local.cores, local.simulated, local.simgrid_file) == ("local", os.cpu_count(), False, None)
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


def test_printed_as_one_line_with_exit_code_2(tmp_path):
    (tmp_path / "some.yaml").write_text(EXPERIMENT.replace("families", "familes"))
    command = click.command()(lambda: config.load_experiment(tmp_path / "some.yaml"))
    result = CliRunner().invoke(command)
    assert result.exit_code == 2
    assert result.output == (
        f"commodel: {tmp_path}/some.yaml:3: familes: found an unknown key; did you mean 'families'?\n"
    )


def test_find(tmp_path):
    folder = tmp_path / "params" / "experiments"
    with pytest.raises(UserError, match="no experiments in"):
        config.find("experiment", "demo", tmp_path)
    folder.mkdir(parents=True)
    (folder / "demo.yaml").touch()
    assert config.find("experiment", "demo", tmp_path) == folder / "demo.yaml"
    assert config.find("experiment", str(folder / "demo.yaml")) == folder / "demo.yaml"
    with pytest.raises(UserError, match="unknown experiment 'dmo'; did you mean 'demo'"):
        config.find("experiment", "dmo", tmp_path)
    for name in ("../demo", "nowhere.yaml", "/", str(folder)):
        with pytest.raises(UserError, match="no such file"):
            config.find("experiment", name, tmp_path)


def test_committed_schemas_are_current():
    wanted = config.schemas()
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
    for schema in config.schemas().values():
        mappings = list(objects(schema))
        assert len(mappings) >= 4
        for inner in mappings:
            assert inner["additionalProperties"] is False
            for name, field in inner["properties"].items():
                assert field["description"], name


@pytest.mark.parametrize(("kind", "text"), FILES, ids=lambda value: value[:20])
def test_schemas_accept_what_loads_and_refuse_misspelt_keys(kind, text):
    jsonschema = pytest.importorskip("jsonschema")
    schema = config.schemas()[f"{kind}.schema.json"]
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
