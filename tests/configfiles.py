"""Experiment and platform files with every key, and functions that load edited ones."""

import pytest

from commodel.errors import UserError
from commodel.plan import config

EXPERIMENT = """\
title: every key that there is
platform: fast-ethernet-32
models: [hockney, logp, loggp, tan]
probes: auto
seed: 1
measure: {sync: window, precision: 2%, min_samples: 10, max_samples: 500, seconds: 2, warmup: 2}
probe_bytes: {from: 1, to: 64KiB, factor: 4}
matrix:
  - platform: local
    axes:
      operation: reduce
      topology: ["flat:16", "kary:2^4"]
      bytes: {from: 1, to: 1MiB, factor: 2}
    zips:
      placement:
        ranks_per_node: [1, 4]
        layout: [block, cyclic]
    exclude:
      - where: "algorithm == 'recursive-doubling' and not is_power_of_two(ranks)"
    include:
      - {operation: bcast, algorithm: binomial, ranks: 16, bytes: 1MiB}
  - axes: {operation: bcast, algorithm: [ring, binomial], nodes: [2, 4], ranks_per_node: 2, bytes: [0, 1KiB]}
"""
LOCAL = "launcher: local\nnodes: 1\ncores: auto\n"
SIMGRID = """\
title: 32 nodes on Fast Ethernet (simulated)
launcher: simgrid
nodes: 32
cores: 1
simgrid:
  file: net.xml
  config: {smpi/os: "0:6.5e-6:0", smpi/async-small-thresh: 65536, network/TCP-gamma: 0}
"""
NETWORK = '<platform><cluster prefix="node-" suffix="" radical="0-63"/></platform>'
SLURM = """\
launcher: slurm
nodes: 4
cores: 64
slurm: {mpi: pmix}
"""
HOSTS = """\
launcher: hosts
nodes: 2
cores: 1
hosts: {names: [a, b.example.org], mpi: openmpi}
"""
FILES = [("experiment", EXPERIMENT)] + [
    ("platform", text) for text in (LOCAL, SIMGRID, SLURM, HOSTS)
]


def load(folder, text, kind="experiment", name="some.yaml"):
    if not (folder / "net.xml").exists():
        (folder / "net.xml").write_text(NETWORK)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return (config.load_experiment if kind == "experiment" else config.load_platform)(file)


def refusal(folder, text, kind="experiment"):
    """Return the one-line message, without the path, with which a file is refused."""
    with pytest.raises(UserError) as caught:
        load(folder, text, kind)
    error = caught.value
    assert error.exit_code == 2
    assert "\n" not in error.message
    assert error.message.isprintable()
    assert error.message.startswith(str(folder / "some.yaml") + ":")
    return error.message.removeprefix(str(folder / "some.yaml") + ":")


def paths(data, path=()):
    """Yield the path of every value of a file, as keys and indices."""
    yield path
    pairs = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in pairs:
        yield from paths(value, (*path, key))
