"""What is wrong with an experiment or a platform, and what the one line has to say about it."""

import re

import pytest

from tests.configfiles import EXPERIMENT, HOSTS, LOCAL, SIMGRID, SLURM, refusal

# What is replaced in EXPERIMENT (`E`), the whole file, and what is replaced in a platform (`P`).
E = [
    ("families: [", "familes: [", "3: familes: found an unknown key; did you mean 'families'?"),
    ("platform: fast-ethernet-32\n", "", "1: found no key 'platform'"),
    ("platform: fast-ethernet-32", "platform: [a]", "2: platform: found a list, wanted a name"),
    ("platform: fast-ethernet-32", "platform: 32", "2: platform: found the number '32', wanted a name"),
    ("platform: fast-ethernet-32", "platform: ../x", "2: platform: found '../x', wanted a name"),
    ("platform: fast-ethernet-32", "platform:", "2: platform: found nothing, wanted a name"),
    ("title: every key that there is", "title: [a]", "1: title: found a list, wanted one line of text"),
    ("title: every key that there is", "title: " + "x" * 201, "1: title: found 'xxx"),
    ("title: every key that there is", 'title: "a\\nb"', "1: title: found 'a b', wanted one line"),
    ("[hockney, logp, loggp, tan]", "[]", "3: families: found an empty list, wanted 'all' or a list"),
    ("[hockney, logp, loggp, tan]", "[hockney, 3]", "3: families[1]: found the number '3'"),
    ("[hockney, logp, loggp, tan]", "{a: b}", "3: families: found a mapping, wanted 'all'"),
    ("probes: auto", "probes: [p;q]", "4: probes[0]: found 'p;q'"),
    ("probes: auto", "probes:", "4: probes: found nothing, wanted 'auto'"),
    ("seed: 1", "seed: -1", "5: seed: found '-1', wanted a whole number, not negative"),
    ("seed: 1", "seed: 1.5", "5: seed: found '1.5', wanted a whole number from 0 to"),
    ("seed: 1", "seed: true", "5: seed: found 'true', wanted a whole number"),
    ("seed: 1", "seed: one", "5: seed: found 'one', wanted a whole number"),
    ("sync: window", "sync: windows", "6: measure.sync: found 'windows'; did you mean 'window'?"),
    ("sync: window", "sync: [window]", "6: measure.sync: found a list; wanted one of: barrier"),
    ("sync: window", "snyc: window", "6: measure.snyc: found an unknown key; did you mean 'sync'?"),
    ("precision: 2%", "precision: 2", "6: measure.precision: found '2', wanted a fraction"),
    ("precision: 2%", "precision: 0", "6: measure.precision: found '0', wanted more than 0"),
    ("precision: 2%", "precision: .nan", "6: measure.precision: found '.nan', wanted a fraction"),
    ("min_samples: 10", "min_samples: 0", "6: measure.min_samples: found '0', wanted a whole number from 1"),
    ("min_samples: 10", "min_samples: 501", "6: measure.min_samples: found 501, wanted at most max_samples, 500"),
    ("seconds: 2,", "seconds: 2 parsec,", "6: measure.seconds: found the unit 'parsec'"),
    ("seconds: 2,", "seconds: -2 s,", "6: measure.seconds: found '-2 s', wanted a time"),
    ("seconds: 2,", "seconds: .inf,", "6: measure.seconds: found '.inf', wanted a time"),
    ("warmup: 2}", "timeout: 60}", "6: measure.timeout: found '60', wanted a unit with it, such as 60us or 60s"),
    ("warmup: 2}", "warmup: {}}", "6: measure.warmup: found a mapping, wanted a whole number"),
    ("{from: 1, to: 64KiB, factor: 4}", "{from: 1, too: 64KiB, factor: 4}", "7: probe_bytes: found 'too' in a range; "),
    ("{from: 1, to: 64KiB, factor: 4}", "{from: 1, to: 64KiB}", "7: probe_bytes: found a range of from, to"),
    ("{from: 1, to: 64KiB, factor: 4}", "{from: 1, to: 64KB, factor: 4}", "7: probe_bytes: found the unit 'KB'"),
    ("{from: 1, to: 64KiB, factor: 4}", "{from: 1, to: 64KiB, factor: 1}", "7: probe_bytes: found a range with factor"),
    ("{from: 1, to: 64KiB, factor: 4}", "{from: 1, to: 1TiB, step: 1}", "7: probe_bytes: found a range of 10995116277"),
    ("{from: 1, to: 64KiB, factor: 4}", "{}", "7: probe_bytes: found a range of nothing"),
    ("{from: 1, to: 64KiB, factor: 4}", "[]", "7: probe_bytes: found an empty list"),
    ("{from: 1, to: 64KiB, factor: 4}", "[1, -4]", "7: probe_bytes[1]: found '-4', wanted a size"),
    ("{from: 1, to: 64KiB, factor: 4}", "[1, [2]]", "7: probe_bytes[1]: found a list, wanted a size"),
    ("{from: 1, to: 64KiB, factor: 4}", "2000TiB", "7: probe_bytes: found '2000TiB', wanted at most"),
    ("operation: reduce", "operation: []", "11: matrix[0].axes.operation: found an empty list"),
    ("operation: reduce", "operation:", "11: matrix[0].axes.operation: found nothing"),
    ("operation: reduce", "operation: -x", "11: matrix[0].axes.operation: found '-x', wanted A-Z"),
    ("operation: reduce", "operation: {from: 1, to: 2, step: 1}", "11: matrix[0].axes.operation: found a mapping"),
    ("operation: reduce", "opration: reduce", "11: matrix[0].axes.opration: found an unknown key; did you mean 'opera"),
    ("      operation: reduce\n", "", "9: matrix[0]: found no axis 'operation'"),
    ('"kary:2^4"', '"kary:2^4;rm"', "12: matrix[0].axes.topology[1]: found 'kary:2^4;rm', wanted A-Z"),
    ('"kary:2^4"', '"$(id)"', "12: matrix[0].axes.topology[1]: found '$(id)'"),
    ('"kary:2^4"', '"a\\nb"', "12: matrix[0].axes.topology[1]: found 'a b'"),
    ('"kary:2^4"', '"flat:16\\n"', "12: matrix[0].axes.topology[1]: found 'flat:16 '"),
    ('"kary:2^4"', "kary:" + "2" * 200, "12: matrix[0].axes.topology[1]: found 205 characters, wanted at most 200"),
    ('"kary:2^4"', "!!python/name:os.system x", "12: found the tag"),
    ("bytes: {from: 1, to: 1MiB, factor: 2}", "bytes: [[1]]", "13: matrix[0].axes.bytes[0]: found a list"),
    ("bytes: {from: 1, to: 1MiB, factor: 2}", "bytes: 1.5", "13: matrix[0].axes.bytes: found '1.5', wanted whole byte"),
    ("bytes: {from: 1, to: 1MiB, factor: 2}", "bytes: 1:2", "13: matrix[0].axes.bytes: found '1:2', wanted FROM:TO"),
    ("bytes: {from: 1, to: 1MiB, factor: 2}", "layout: [block]", "17: matrix[0].zips.placement.layout: found here and"),
    ("bytes: {from: 1, to: 1MiB, factor: 2}", "algorithm: a", "9: matrix[0]: found both algorithm and topology"),
    ("bytes: {from: 1, to: 1MiB, factor: 2}", "operation: bcast", "13: found the key 'operation' twice, first on line"),
    ("ranks_per_node: [1, 4]", "ranks_per_node: [1]", "placement: found 1 values of ranks_per_node, 2 values of layou"),
    ("ranks_per_node: [1, 4]", "ranks_per_node: [0, 4]", "16: matrix[0].zips.placement.ranks_per_node[0]: found '0'"),
    ("ranks_per_node: [1, 4]", "ranks_per_nodes: [1, 4]", "did you mean 'ranks_per_node'?"),
    ("      placement:", "      pla cement:", "15: matrix[0].zips.pla cement: found 'pla cement', wanted a word"),
    ("exclude:\n      - where", "exclude:\n      - were", "19: matrix[0].exclude[0].were: found an unknown key; did y"),
    ("is_power_of_two(ranks)", "is_power_of_two(rank)", "19: matrix[0].exclude[0].where: 'algorithm"),
    ("is_power_of_two(ranks)", "__import__('os')", "19: matrix[0].exclude[0].where: 'algorithm"),
    ("operation: bcast, algorithm: binomial", "algorithm: binomial", "21: matrix[0].include[0]: found no key 'operati"),
    ("algorithm: binomial, ranks: 16", "algorithm: binomial, ranks: [16]", "21: matrix[0].include[0].ranks: found a l"),
    ("algorithm: binomial, ranks: 16", "algorithm: x, topology: y", "21: matrix[0].include[0].topology: found beside "),
    ("  - axes: {operation", "  - axs: {operation", "22: matrix[1].axs: found an unknown key; did you mean 'axes'?"),
    ("nodes: [2, 4], ranks_per_node: 2", "nodes: [2, 16777217]", "22: matrix[1].axes.nodes[1]: found '16777217'"),
    ("nodes: [2, 4], ranks_per_node: 2", "nodes: 2KiB", "22: matrix[1].axes.nodes: found '2KiB', wanted a whole numbe"),
]  # fmt: skip
WHOLE = [
    ("", ":? ?empty file"),
    ("- a\n", "1: found a list, wanted a mapping with the keys title, platform"),
    ("just text\n", "1: found 'just text', wanted a mapping"),
    ("platform: a\nmatrix: {axes: 1}\n", r"2: matrix: found a mapping, wanted a list"),
    ("platform: a\nmatrix:\n", r"2: matrix: found nothing, wanted a list"),
    ("platform: a\nmatrix: [1]\n", r"2: matrix\[0\]: found '1', wanted a mapping with the keys platform, axes"),
    ("platform: a\nmatrix:\n  - {}\n", r"3: matrix\[0\]: found an empty block"),
    ("platform: a\nmatrix:\n  - {platform: x}\n", r"3: matrix\[0\]: found an empty block"),
    ("platform: a\nmatrix:\n  - axes:\n", r"3: matrix\[0\].axes: found nothing, wanted a mapping"),
    ("platform: a\nmatrix:\n  - zips: {z: {}}\n", r"3: matrix\[0\].zips.z: found an empty zip"),
    ("platform: a\nmatrix:\n  - zips: [z]\n", r"3: matrix\[0\].zips: found a list, wanted a mapping"),
    ("platform: a\nmeasure: fast\n", r"2: measure: found 'fast', wanted a mapping with the keys sync"),
    ("platform: a\n<<: {seed: 1}\n", r"2: <<: found an unknown key"),
    ("platform: a\n__class__: x\n", r"2: __class__: found an unknown key"),
    ("platform: a\n_document: x\n", r"2: _document: found an unknown key"),
    ("platform: a\nname: x\n", r"2: name: found an unknown key"),
    ("platform: a\n? [x]\n: y\n", r"2: found a key that is not plain text"),
    ("platform: a\nseed: 1\nseed: 2\n", r"3: found the key 'seed' twice, first on line 2"),
    ("platform: a\n---\nplatform: b\n", r"\d: found a second document"),
    ("platform: a\nseed: [1\n", r"\d: not YAML"),
    ("platform: a\n\tseed: 1\n", r"2: not YAML"),
    ("platform: a\nseed: *x\n", r"2: found the alias"),
    ("platform: a\nseed: " + "[" * 99 + "]" * 99 + "\n", r"2: nested deeper"),
    ("platform: a\nseed: " + "9" * 99 + "\n", r"2: found the number"),
    ("platform: a\n\"\\x1b[31m\": 1\n", r"2:  \[31m: found an unknown key"),
    ("platform: a\nseed: x\nprobe_bytes: y\nfamilies: []\n", r"2: seed: found 'x', .* \(and 2 more\)"),
]  # fmt: skip
P = [
    (LOCAL, "launcher: local", "launcher: locale", "1: launcher: found 'locale'; did you mean 'local'?"),
    (LOCAL, "launcher: local", "launcher: [local]", "1: launcher: found a list; wanted one of: hosts, local"),
    (LOCAL, "launcher: local\n", "", "1: found no key 'launcher'"),
    (LOCAL, "nodes: 1\n", "", "1: found no key 'nodes'"),
    (LOCAL, "nodes: 1", "nodes: 2", "2: nodes: found 2, wanted 1, since a local platform is this machine"),
    (LOCAL, "nodes: 1", "nodes: 0", "2: nodes: found '0', wanted a whole number from 1"),
    (LOCAL, "cores: auto", "cores: all", "3: cores: found 'all', wanted a whole number"),
    (LOCAL, "cores: auto", "core: auto", "3: core: found an unknown key; did you mean 'cores'?"),
    (LOCAL, "cores: auto", "cores: 1\nslurm: {}", "4: slurm: found a section that launcher 'local' does not have"),
    (SIMGRID, "cores: 1", "cores: auto", "4: cores: found 'auto', wanted a number"),
    (SIMGRID, "cores: 1", "cores: 1\nhosts:", "5: hosts: found a section that launcher 'simgrid' does not have"),
    (SIMGRID, "cores: 1", "cores: 1\ntypes: {same: 1}", "5: types.same: found 'same', wanted a name"),
    (SIMGRID, "cores: 1", "cores: 1\ntypes: {a.b: 1}", "5: types.a.b: found 'a.b', wanted a name"),
    (SIMGRID, "cores: 1", "cores: 1\ntypes: {fat: 999}", "5: types: found 999 nodes, wanted"),
    (SIMGRID, "  file: net.xml\n", "", "5: simgrid: found no key 'file'"),
    (SIMGRID, "file: net.xml", "file: ../net.xml", "6: simgrid.file: found '../net.xml', wanted a file in the folder"),
    (SIMGRID, "file: net.xml", "file: a/../../net.xml", "6: simgrid.file: found 'a/../../net.xml', wanted a file in"),
    (SIMGRID, "file: net.xml", "file: /etc/passwd", "6: simgrid.file: found '/etc/passwd', wanted a file in the folde"),
    (SIMGRID, "file: net.xml", "file: net.so", "6: simgrid.file: found 'net.so', wanted a file .xml"),
    (SIMGRID, "smpi/os:", "tracing/filename:", "7: simgrid.config.tracing/filename: found the setting 'tracing/file"),
    (SIMGRID, "smpi/os:", "smpi/tmpdir:", "7: simgrid.config.smpi/tmpdir: found the setting 'smpi/tmpdir', which is n"),
    (SIMGRID, "smpi/os:", "path:", "7: simgrid.config.path: found the setting 'path', which is not passed on"),
    (SIMGRID, "file: net.xml", "file: none.xml", "6: simgrid.file: "),
    (SIMGRID, "file: net.xml", "file: link.xml", "6: simgrid.file: found a link that leaves the folder"),
    (SIMGRID, "file: net.xml", "file: --help", "6: simgrid.file: found '--help'"),
    (SIMGRID, "smpi/os:", "smpi os:", "7: simgrid.config.smpi os: found 'smpi os', wanted a SimGrid setting"),
    (SIMGRID, "smpi/os:", "--smpi:", "7: simgrid.config.--smpi: found '--smpi'"),
    (SIMGRID, "0:6.5e-6:0", "0 --cfg=x", "7: simgrid.config.smpi/os: found '0 --cfg=x'"),
    (SIMGRID, "0:6.5e-6:0", "$(id)", "7: simgrid.config.smpi/os: found '$(id)'"),
    (SIMGRID, '"0:6.5e-6:0"', "[1]", "7: simgrid.config.smpi/os: found a list"),
    (SLURM, "mpi: pmix", "mpi: pmix --x", "4: slurm.mpi: found 'pmix --x', wanted a word"),
    (SLURM, "mpi: pmix", "mpi: -main", "4: slurm.mpi: found '-main', wanted a word"),
    (SLURM, "mpi: pmix", "mpi: 12", "4: slurm.mpi: found the number '12', wanted a word"),
    (SLURM, "mpi: pmix", "mpii: pmix", "4: slurm.mpii: found an unknown key; did you mean 'mpi'"),
    (SLURM, "mpi: pmix", "mpi: pmix|pmi2", "4: slurm.mpi: found 'pmix|pmi2'"),
    (HOSTS, "names: [a, b.example.org]", "names: []", "4: hosts.names: found an empty list, wanted at least one"),
    (HOSTS, "names: [a, b.example.org]", "names: a", "4: hosts.names: found 'a', wanted a list"),
    (HOSTS, "names: [a, b.example.org]", "names: [a, a]", "4: hosts.names: found a host twice"),
    (HOSTS, "names: [a, b.example.org]", "names: [a, 'b c']", "4: hosts.names[1]: found 'b c', wanted a host name"),
    (HOSTS, "names: [a, b.example.org]", "names: [a, '--x']", "4: hosts.names[1]: found '--x', wanted a host name"),
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
