"""Packages of others: installed, used, refused if they cannot be used, and removed again."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pandas as pd
import pytest
import yaml

from commodel.extensions import OUR_NAMES, list_extensions
from commodel.platforms.tools import ROOT, find_tool
from commodel.substrates import list_aliases
from tests.core_alone import make_core

EXAMPLE = ROOT / "examples" / "extension"
PREDICT = (
    "predict",
    "--params",
    str(ROOT / "params/published/tan/cab-mrnet.yaml"),
    *["--operation", "reduce"],
)
PREDICT += ("--topology", "kary:2^3")
LAST_LINE = "; all else works\n"
SMALL = """
platform: two-nodes
models: [maxrate]
measure: {min_samples: 2, max_samples: 4, passes: 1}
probe_bytes: [1, 1KiB, 64KiB]
library: false
matrix:
  - axes: {operation: bcast, algorithm: ["chain:8KiB", "two-chains:8KiB"], layout: cyclic, ranks: 4, bytes: [1, 64KiB]}
"""


def call(python, *arguments, folder, paths=(), code=0):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [python, "-m", "commodel", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Return the Python of a new environment with commodel, whose dependencies are those of the
    present one."""
    folder = tmp_path_factory.mktemp("extensions")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", folder / "venv"],
        check=True,
        capture_output=True,
    )
    (place,) = (folder / "venv/lib").glob("python*/site-packages")
    (place / "present.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT / 'workflow'}\n")
    return folder / "venv/bin/python"


def pip(python, *arguments):
    command = [sys.executable, "-m", "pip", "--python", str(python), *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def example(python, tmp_path_factory):
    """Install the example into the environment, from a copy, since a build leaves files beside its
    sources."""
    copy = tmp_path_factory.mktemp("example") / "extension"
    shutil.copytree(
        EXAMPLE, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    )
    pip(python, "install", "--no-deps", "--no-index", "--no-build-isolation", str(copy))
    yield python
    pip(python, "uninstall", "--yes", "commodel-maxrate")


def test_an_extension_brings_a_model_a_probe_an_algorithm_and_a_format(example, tmp_path):
    def run(*arguments):
        return call(example, *arguments, folder=tmp_path).stdout

    listed = yaml.safe_load(run("show", "extensions", "maxrate", "--format", "json"))
    assert listed == [
        {
            "extension": "maxrate",
            "title": "max-rate model, broadcast along two chains, times in JSON lines",
            "package": "commodel-maxrate 1.0",
            "brings": "models maxrate; algorithms bcast-two-chains; probes noderate; formats json-lines",
        }
    ]
    assert "Extension maxrate of package commodel-maxrate 1.0." in run("doctor")
    assert "Gropp" in run("show", "models", "maxrate")
    assert "two-chains" in run("show", "algorithms", "bcast")
    assert "json-lines" in run("import", "--help")
    (tmp_path / "times.jsonl").write_text(
        '{"operation": "bcast", "ranks": 8, "bytes": 1024, "us": 12.5}\n'
    )
    run("import", "json-lines", "times.jsonl", "-o", "times.csv")
    assert pd.read_csv(tmp_path / "times.csv")["seconds"].tolist() == pytest.approx([12.5e-6])
    assert "times.jsonl  json-lines  bcast" in run("import", ".", "--out", "imported")
    (tmp_path / "times.jsonl").write_text('{"operation": "bcast"}\n')
    refused = call(
        example, "import", "json-lines", "times.jsonl", "-o", "times.csv", folder=tmp_path, code=2
    )
    assert refused.stderr.startswith("commodel: times.jsonl:1: wanted {")


BY_HAND = """
model: maxrate
parameters: {alpha: 10us, per_byte: 1ns/B, per_byte_node: 0.8ns/B}
"""


@pytest.mark.parametrize("per_node", [2, 32])
def test_the_model_of_the_example_equals_its_equation(example, tmp_path, per_node):
    """In round i of a pairwise exchange over two nodes, min(i, P − i) ranks of each node send to
    the other."""
    (tmp_path / "set.yaml").write_text(BY_HAND)
    ranks, size = 2 * per_node, 100_000
    workload = (
        f"--operation alltoall --algorithm pairwise --ranks {ranks} --layout block:{per_node} "
        f"--bytes {size}"
    )
    printed = call(
        example,
        "predict",
        "--params",
        "set.yaml",
        *workload.split(),
        "--format",
        "json",
        folder=tmp_path,
    )
    (row,) = yaml.safe_load(printed.stdout)
    rounds = [
        10e-6 + size * max(1e-9, 0.8e-9 * min(number, ranks - number)) for number in range(1, ranks)
    ]
    assert row["seconds"] == pytest.approx(sum(rounds), rel=1e-9)


ALL_STAGES = """
from pathlib import Path
from tests.workflow.conftest import Project
project = Project(Path(), like=Path())
project.compare("small")
project.verb("report", "--in", "results/small", "--out", "reports/small")
"""


@pytest.mark.skipif(find_tool("smpirun") is None, reason="no SimGrid")
def test_a_campaign_with_an_extension_ends_in_a_report_and_needs_it_from_then_on(example, tmp_path):
    call(example, "init", ".", folder=tmp_path)
    for file in (ROOT / "params/platforms").glob("two-nodes.*"):
        shutil.copy(file, tmp_path / "params/platforms")
    (tmp_path / "params/experiments/small.yaml").write_text(SMALL)
    rules = call(example, "run", "small", "--dry-run", folder=tmp_path)
    assert "fitting 1 model" in rules.stdout + rules.stderr
    # The same jobs in one process, as each would load everything again.
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([example, "-c", ALL_STAGES], cwd=tmp_path, env=environment, check=True)
    fitted = yaml.safe_load((tmp_path / "results/small/fitted/two-nodes/maxrate.yaml").read_text())
    values = {name: entry["value"] for name, entry in fitted["parameters"].items()}
    # The platform has 25 µs of latency, 1 µs of overhead at either end, and one port of 125 MB/s.
    assert values["alpha"] == pytest.approx(27e-6, rel=0.02)
    assert values["per_byte"] == pytest.approx(8e-9, rel=0.01)
    assert values["per_byte_node"] == pytest.approx(8e-9, rel=0.01)
    comparison = pd.read_csv(tmp_path / "results/small/comparison.csv")
    assert set(comparison.loc[comparison["model"] == "maxrate", "algorithm"]) == {
        "chain:8KiB",
        "two-chains:8KiB",
    }
    assert (tmp_path / "reports/small/small.xlsx").exists()
    records = [
        path.read_text() for path in (tmp_path / "results/small/raw").glob("*/provenance.json")
    ]
    assert all('"commodel-maxrate": "1.0"' in record for record in records)
    # Without the extension, its model is unknown.
    refused = call(sys.executable, "report", "--in", "results/small", folder=tmp_path, code=2)
    assert "unknown model 'maxrate'" in refused.stderr
    assert "or install the extension that brings it" in refused.stderr


SOURCE = "from commodel.extensions import *\nEXTENSION = {}\n"


def install_by_hand(folder, distribution, text, extension="", name="strange"):
    """Write a package with an entry point into a folder, as an installer leaves it; return the
    folder."""
    module = distribution.replace("-", "_")
    (folder / module).mkdir(parents=True)
    (folder / module / "__init__.py").write_text(text or SOURCE.format(extension))
    metadata = folder / f"{module}-2.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 2.0\n"
    )
    (metadata / "entry_points.txt").write_text(
        f"[commodel.extensions]\n{name} = {module}:EXTENSION\n"
    )
    return folder


MODEL = (EXAMPLE / "commodel_maxrate/model.py").read_text()


@pytest.mark.parametrize(
    ("text", "extension", "problem"),
    [
        (
            "import nothing_of_that_name",
            "",
            "cannot import commodel_strange:EXTENSION: ModuleNotFoundError: No module",
        ),
        (
            "",
            "Extension('t', interface=99)",
            "found interface 99, wanted 1; install a version for this commodel",
        ),
        ("", "'text'", "found a str as commodel_strange:EXTENSION, wanted an Extension"),
    ],
)
def test_an_extension_that_cannot_be_used_is_one_line_and_all_else_works(
    tmp_path, text, extension, problem
):
    paths = [install_by_hand(tmp_path / "site", "commodel-strange", text, extension)]
    done = call(sys.executable, "show", "models", folder=tmp_path, paths=paths)
    assert done.stderr.startswith(f"commodel: extension strange: {problem}")
    assert done.stderr.endswith(LAST_LINE)
    assert done.stderr.count("\n") == 1
    assert "loggp" in done.stdout
    question = ("show", "extensions", "strange", "--format", "json")
    listed = call(sys.executable, *question, folder=tmp_path, paths=paths).stdout
    (row,) = yaml.safe_load(listed)
    assert row["brings"].startswith(problem)
    assert row["package"] == "commodel-strange 2.0"


def test_a_module_that_cannot_be_imported_is_one_line_and_the_rest_of_its_extension_works(tmp_path):
    extension = "Extension('t', 1, models=('commodel_strange.broken', 'commodel_strange.model'))"
    site = install_by_hand(tmp_path / "site", "commodel-strange", "", extension)
    (site / "commodel_strange/model.py").write_text(MODEL)
    (site / "commodel_strange/broken.py").write_text("1 / 0\n")
    done = call(sys.executable, "show", "models", "--format", "csv", folder=tmp_path, paths=[site])
    problem = "cannot import commodel_strange.broken: ZeroDivisionError: division by zero"
    assert done.stderr == f"commodel: extension strange: {problem}{LAST_LINE}"
    assert "maxrate" in done.stdout


def test_a_name_that_two_packages_bring_is_refused(tmp_path):
    extension = "Extension('t', 1, models=('commodel_{}.model',))"
    for name in ("one", "two"):
        site = install_by_hand(
            tmp_path / name, f"commodel-{name}", "", extension.format(name), name
        )
        (site / f"commodel_{name}/model.py").write_text(MODEL)
    paths = [tmp_path / "one", tmp_path / "two"]
    refused = call(sys.executable, "show", "models", folder=tmp_path, paths=paths, code=2)
    message = (
        "commodel: found model 'maxrate' in two packages, commodel-one and commodel-two; "
        "uninstall one\n"
    )
    assert refused.stderr == message
    (tmp_path / "one/commodel_one/model.py").write_text(
        MODEL.replace('name="maxrate"', 'name="loggp"')
    )
    refused = call(sys.executable, "show", "models", folder=tmp_path, paths=paths[:1], code=2)
    assert "found model 'loggp' in two packages, commodel and commodel-one" in refused.stderr
    # A name of the core is found without a look at extensions.
    assert (
        call(sys.executable, "show", "models", "loggp", folder=tmp_path, paths=paths[:1]).stderr
        == ""
    )


GREET = """
import click


@click.command(help="Say hello.")
@click.argument("name")
def greet(name):
    click.echo(f"hello {name}")
"""


def test_an_extension_brings_a_verb_but_takes_none_from_the_core(tmp_path):
    verbs = (
        "{'greet': Verb('commodel_strange.verbs:greet', 'Say hello.'), 'fit': Verb('x:y', 'Fit.')}"
    )
    site = install_by_hand(
        tmp_path / "site", "commodel-strange", "", f"Extension('t', 1, verbs={verbs})"
    )
    (site / "commodel_strange/verbs.py").write_text(GREET)
    shown = call(sys.executable, "--help", folder=tmp_path, paths=[site])
    assert "greet       Say hello." in shown.stdout
    problem = "found verb 'fit', which another package has"
    assert shown.stderr == f"commodel: extension strange: {problem}{LAST_LINE}"
    assert (
        call(sys.executable, "greet", "you", folder=tmp_path, paths=[site]).stdout == "hello you\n"
    )


def test_an_extension_brings_subcommands_but_takes_none_from_the_core(tmp_path):
    greet, plan = "Verb('commodel_strange.verbs:greet', 'Say hello.')", "Verb('x:y', 'Plan.')"
    parts = f"{{'predict': {{'greet': {greet}, 'plan': {plan}}}, 'import': {{'greet': {greet}}}}}"
    site = install_by_hand(
        tmp_path / "site", "commodel-strange", "", f"Extension('t', 1, subcommands={parts})"
    )
    (site / "commodel_strange/verbs.py").write_text(GREET)
    shown = call(sys.executable, "predict", "--help", folder=tmp_path, paths=[site])
    assert "greet   Say hello." in shown.stdout
    problem = "found verb 'predict plan', which another package has"
    assert shown.stderr == f"commodel: extension strange: {problem}{LAST_LINE}"
    assert "Predict the points of a plan" in shown.stdout
    for verb in ("predict", "import"):
        done = call(sys.executable, verb, "greet", "you", folder=tmp_path, paths=[site])
        assert done.stdout == "hello you\n"


MAKEFILE = "all:\n\t$(CC) -DREPLY='\"$(REPLY)\"' -o $(BUILD)/answer answer.c\n"
ANSWER = "#include <stdio.h>\nint main(void) { puts(REPLY); return 0; }\n"
NATIVE = """Extension('t', 1, native=(
    Native('{}', ('native',), ('native/*.c',), compiler='{}', sentence='Says hello.', settings='commodel_strange.s:s'),
))"""


@pytest.fixture
def install_native(tmp_path):
    """Return a function that installs an extension with a C program for a toolchain."""

    def install(toolchain, compiler=""):
        extension = NATIVE.format(toolchain, compiler)
        site = install_by_hand(tmp_path / "site", "commodel-strange", "", extension)
        package = site / "commodel_strange"
        (package / "s.py").write_text("s = lambda: {'REPLY': 'hello'}\n")
        (package / "native").mkdir()
        (package / "native/Makefile").write_text(MAKEFILE)
        (package / "native/answer.c").write_text(ANSWER)
        return site

    return install


DIGESTS = (
    "from commodel.platforms.toolchains import *; print([compute_native_digest(name) for name in "
    "('mpi', '{}')])"
)


@pytest.mark.skipif(find_tool("cc") is None, reason="no C compiler")
def test_an_extension_brings_a_toolchain_of_its_own(install_native, tmp_path):
    site = install_native("strange", "cc")
    assert (
        "strange     Says hello."
        in call(sys.executable, "build", "--help", folder=tmp_path, paths=[site]).stdout
    )
    (tmp_path / "script.py").write_text(
        "from pathlib import Path\nfrom commodel.platforms.build import build_toolchain\n"
        "folder = Path('built/build/strange')\nfolder.mkdir(parents=True)\n"
        "print(build_toolchain(Path('built'), 'strange'))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(site)}

    def run(*command):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert run(sys.executable, "script.py") == "built/build/strange\n"
    assert run("built/build/strange/answer") == "hello\n"
    core, own = yaml.safe_load(run(sys.executable, "-c", DIGESTS.format("strange")))
    (site / "commodel_strange/native/answer.c").write_text(ANSWER + "int more;\n")
    assert yaml.safe_load(run(sys.executable, "-c", DIGESTS.format("strange")))[0] == core
    assert yaml.safe_load(run(sys.executable, "-c", DIGESTS.format("strange")))[1] != own


def test_programs_that_an_extension_adds_to_a_toolchain_count_in_its_digest(
    install_native, tmp_path
):
    def digest(*paths):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
        command = [sys.executable, "-c", DIGESTS.format("smpi")]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return yaml.safe_load(done.stdout)

    with_program = digest(install_native("mpi"))
    assert with_program[0] != digest()[0]
    assert with_program[1] == digest()[1]


@pytest.mark.parametrize(
    ("toolchain", "compiler", "problem"),
    [
        ("mpi", "cc", "found toolchain 'mpi', which another package has"),
        ("strange", "", "found toolchain 'strange' without a compiler"),
    ],
)
def test_a_toolchain_that_cannot_be_used_is_one_line(
    install_native, tmp_path, toolchain, compiler, problem
):
    done = call(
        sys.executable,
        "build",
        "--help",
        folder=tmp_path,
        paths=[install_native(toolchain, compiler)],
    )
    assert done.stderr == f"commodel: extension strange: {problem}{LAST_LINE}"


def test_a_prediction_by_a_core_model_imports_no_model_of_an_extension(tmp_path):
    extension = (
        "Extension('t', 1, models=('commodel_strange.loud',), formats=('commodel_strange.loud',))"
    )
    site = install_by_hand(tmp_path / "site", "commodel-strange", "", extension)
    (site / "commodel_strange/loud.py").write_text("raise SystemExit('imported')\n")
    assert call(sys.executable, *PREDICT, folder=tmp_path, paths=[site]).stderr == ""
    assert call(sys.executable, "--help", folder=tmp_path, paths=[site]).stderr == ""


SUBSTRATE = """
from commodel.errors import UserError
from commodel.patterns.operations import find_operation
from commodel.substrates import Alias, Substrate


def check(combination):
    if find_operation(combination["operation"]).name != "bcast":
        raise UserError("pigeons only broadcast", key="operation")


SUBSTRATE = Substrate(
    name="pigeons",
    title="pigeons",
    launchers=("local",),
    starts="commodel_strange.starts",
    check=check,
    runs_case=lambda probe, settings: probe == "chain",
    latency=3600.0,
    bandwidth=1e6,
    seconds_per_case=60.0,
    aliases={"coo": Alias("bcast", waves=2)},
)
"""
PIGEONS = "launcher: local\nsubstrate: pigeons\nnodes: 1\ncores: 8\n"


def test_an_extension_brings_a_substrate(tmp_path):
    native = "(Native('pigeons', (), (), compiler='cc'),)"
    extension = f"Extension('t', 1, substrates=('commodel_strange.loft',), native={native})"
    site = install_by_hand(tmp_path / "site", "commodel-strange", "", extension)
    (site / "commodel_strange/loft.py").write_text(SUBSTRATE)
    for folder in ("platforms", "experiments"):
        (tmp_path / "params" / folder).mkdir(parents=True)
    (tmp_path / "params/platforms/loft.yaml").write_text(PIGEONS)

    def plan(operation, code=0):
        matrix = f"  - axes: {{operation: {operation}, topology: 'kary:2^2', bytes: 8}}\n"
        text = f"platform: loft\nmodels: [tan, loggp]\nmatrix:\n{matrix}"
        (tmp_path / "params/experiments/post.yaml").write_text(text)
        return call(
            sys.executable,
            "plan",
            "post",
            "--format",
            "json",
            folder=tmp_path,
            paths=[site],
            code=code,
        )

    planned = yaml.safe_load(plan("coo").stdout)
    assert {row.get("operation") for row in planned if row.get("operation")} == {"bcast"}
    assert "pigeons only broadcast" in plan("reduce", code=2).stderr
    (tmp_path / "params/platforms/loft.yaml").write_text(PIGEONS.replace("local", "slurm"))
    message = "substrate: found 'pigeons', which launcher 'slurm' does not start; wanted 'local'"
    assert message in plan("coo", code=2).stderr


CORE = """
platform: fast-ethernet-32
models: [hockney]
measure: {min_samples: 2, max_samples: 4, passes: 1}
probe_bytes: [1, 1KiB, 64KiB]
library: false
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: 4, bytes: [1, 64KiB]}
"""


KERNELS = """
platform: local
models: [hockney]
matrix:
  - axes: {operation: "summa:n=8", algorithm: paper, ranks: 2, bytes: 8KiB}
"""


@pytest.fixture
def core(tmp_path):
    packages = make_core(tmp_path)
    (tmp_path / "build").symlink_to(ROOT / "build")
    return packages


# One process for all commands: each start would take as long as ten of them.
CALL_ALL = """
import json, sys
from click.testing import CliRunner
from commodel.cli import main
results = [CliRunner().invoke(main, words) for words in json.load(sys.stdin)]
json.dump([(result.exit_code, result.stdout, result.stderr) for result in results], sys.stdout)
"""
CAMPAIGN = f"""
from pathlib import Path
from tests.workflow.conftest import Project
project = Project(Path("campaign"))
project.experiment("core", {CORE!r})
project.compare("core")
project.verb("report", "--in", "results/core", "--out", "reports/core")
"""
REFUSED_VERBS = (
    "partition",
    "predict kernel",
    "advise layouts",
    "measure speeds",
    "tune",
    "export extrap",
)


def run_in_core(core, folder, script, *paths, text=None):
    """Run a script without our extensions, and return what it prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (core, *paths)))}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_core_works_without_our_own_extensions(core, tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    params = folder / "params"
    for name in ("platforms", "experiments"):
        (params / name).mkdir(parents=True)
    for file in (
        "platforms/local.yaml",
        "platforms/local-overlay.yaml",
        "platforms/fast-ethernet-32.xml",
        "platforms/fast-ethernet-32.yaml",
        "experiments/overlay.yaml",
    ):
        shutil.copy(ROOT / "params" / file, params / file)
    (params / "experiments/kernels.yaml").write_text(KERNELS)
    (params / "experiments/speeds.yaml").write_text(CORE + "speeds: [speeds.yaml]\n")
    (folder / "speeds.yaml").write_text("")
    absent = "is in commodel_overlay, which is not installed\n"
    place = f"{params}/platforms/local-overlay.yaml:4: substrate"
    refused = {
        f"plan {core.parent}/params/experiments/paper-tan.yaml": (
            "unknown paper 'tan'; install the extension that brings it"
        ),
        "plan kernels": "operation 'summa' is in commodel_kernels, which is not installed",
        "plan speeds": (
            "speeds: found files, which commodel_kernels reads, which is not installed\n"
        ),
        "plan overlay": f"commodel: {place}: substrate 'overlay' {absent}",
        "show operations overlay-startup": f"operation 'overlay-startup' {absent}",
    }
    refused |= {
        verb: f"No such command '{verb.split()[-1]}'. It is in commodel_" for verb in REFUSED_VERBS
    }
    commands = [["show", "extensions"], PREDICT, *(line.split() for line in refused)]
    listed, predicted, *others = json.loads(
        run_in_core(core, folder, CALL_ALL, text=json.dumps(commands))
    )
    assert listed == [0, "No extension is installed.\n", ""]
    assert predicted[0] == 0
    assert "tan" in predicted[1]
    for (line, message), (code, _, stderr) in zip(refused.items(), others, strict=True):
        assert code == 2, line
        assert message in stderr, line


@pytest.mark.slow
@pytest.mark.skipif(find_tool("smpirun") is None, reason="no SimGrid")
def test_a_campaign_of_the_core_needs_no_extension(core, tmp_path_factory):
    """`make test-core` says so of every verb."""
    folder = tmp_path_factory.mktemp("project")
    run_in_core(core, folder, CAMPAIGN, core.parent)
    campaign = folder / "campaign"
    assert (campaign / "reports/core/core.xlsx").exists()
    rules = call(sys.executable, "run", "core", "--dry-run", folder=campaign, paths=[core])
    assert "measure" in rules.stdout + rules.stderr


def test_names_of_our_extensions_that_may_be_absent_are_those_that_they_bring():
    """Papers have names that models and formats have, too."""
    for installed in list_extensions():
        package, extension = installed.module.partition(".")[0], installed.extension
        if package not in OUR_NAMES:
            continue
        brought = installed.list_brought()
        kinds = ("verbs", "operations", "formats", "substrates")
        names = {name.split()[-1] for kind in kinds for name in brought.get(kind, ())}
        names |= {*extension.exports, *extension.inputs}
        aliases = {name for name, (substrate, _) in list_aliases().items() if substrate in names}
        assert set(OUR_NAMES[package]) == names | aliases


def test_the_core_imports_no_extension():
    names = {path.name for path in (ROOT / "workflow").glob("commodel_*")}
    assert names
    for path in (ROOT / "workflow/commodel").rglob("*.py"):
        text = path.read_text()
        assert not [name for name in names if f"import {name}" in text or f"from {name}" in text]


def test_the_example_is_short():
    """Its README promises fewer than 150 lines."""
    lines = [
        line
        for file in Path(EXAMPLE / "commodel_maxrate").glob("*.py")
        for line in file.read_text().splitlines()
    ]
    assert len(lines) < 150
