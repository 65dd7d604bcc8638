"""A contract over everything that a user can type: every verb and subcommand, with every format and
every option.

The commands are the examples of the help pages and those of INVOCATIONS. They run in a project with
the results of small simulated campaigns. An option that no command uses fails the test, unless
ELSEWHERE names the test that runs it. JSON and CSV have the same cells.
"""

import csv
import io
import json
import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import chdir
from importlib import import_module
from itertools import count, pairwise
from pathlib import Path
from pkgutil import iter_modules, resolve_name
from xml.etree import ElementTree

import click
import openpyxl
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

import commodel.api
from commodel.cli import main
from commodel.sources import ROOT
from tests.cli.test_help import EXAMPLES, PAGES, read_words
from tests.docs_project import make_project, reduce_experiment
from tests.formats.samples import MICROBENCH, MPIBLIB, NETGAUGE, PICO, REPROMPI, SKAMPI
from tests.interchange.samples import IMB
from tests.once import made_once
from tests.patterns.goal_files import BINARY, TEXT
from tests.platforms.slurm_commands import install_commands
from tests.workflow.conftest import Project

PROCESSES = "--layout processes:params/layouts/mine/even.csv --platform mycluster"
KERNEL = "--speeds speeds.yaml --platform mycluster --blocks 8"
SAMPLE, PLATFORM = "results/sample", "--platform fast-ethernet-32"
SETS = "results/sample/validated/fast-ethernet-32"
TUNE = (
    "--platform desk --ranks 2 --operation bcast --bytes 8 --layout block --minutes 0.01 --pairs 3"
)
MEASURE = "--platform desk --layout processes:mine.csv --sizes 16:64 --most 3 --seconds 0.01"
BCAST = "--operation bcast --ranks 8 --bytes 1KiB"
INVOCATIONS = {
    "run": (
        "sample --only fast-ethernet-32 --no-survey --retry --cores 1 --verbose",
        "sample --quiet --cores 1",
    ),
    "predict": (
        "--params loggp.yaml --operation reduce --topology flat:4 --bytes 1KiB --set L=2us --waves 5 --layout block:2",
        f"--params loggp.yaml --model loggp {BCAST} --pipelined --verbose",
        f"{PLATFORM} --experiment sample {BCAST}",
        f"--params loggp.yaml {BCAST} --statistic 'rank mean'",
        f"{PLATFORM} --experiment sample {BCAST} --statistic 'last rank'",
        f"--params loggp.yaml {BCAST} -o predicted.json",
    ),
    "predict kernel": (
        "summa --params loggp.yaml --ranks 4 --blocks 8 --grid 2x2 --iteration 0 --bytes 2KiB --set L=2us",
        f"summa --params loggp.yaml --blocks 8 --overlapped --speeds speeds.yaml {PROCESSES}",
        "wave2d --params loggp.yaml --partition partition.csv",
        f"wave2d {PLATFORM} --experiment sample --ranks 4 --blocks 8 -o wave.json",
    ),
    "predict matrix": (
        "sample --params loggp.yaml --set L=2us --draws 0 -o sample.parquet",
        f"sample --params loggp.yaml {PLATFORM} -o sample.csv",
    ),
    "fit probes": (
        f"results/sample/plan.json {PLATFORM} --model loggp --model hockney --cores 2 -o fits",
    ),
    "predict plan": (
        f"results/sample/plan.json --params {SETS}/loggp.yaml --set L=2us -o predicted.csv",
        f"results/sample/plan.json --params {SETS}/loggp.yaml --params {SETS}/hockney.yaml --cores 2 -o new",
    ),
    "advise": (
        "--params tan.yaml --operation reduce --leaves 16 --bytes 1KiB --top 3 --verbose",
        f"--params loggp.yaml {BCAST} --only binomial --only linear --layout block --set L=2us",
        "--experiment sample --operation bcast --ranks 4,8 --bytes 8 --open-mpi --commutative --same-types",
        "--experiment sample --operation bcast --operation reduce --ranks 4,8 --bytes 8",
        f"--params loggp.yaml {BCAST} --statistic 'rank mean'",
        "--experiment sample --operation bcast --ranks 4,8 --bytes 8 -o decisions.csv",
        "--experiment sample --operation bcast --ranks 4,8 --bytes 8 -o decisions.xlsx",
    ),
    "advise layouts": (
        f"gemm {KERNEL} --layout params/layouts/mine --params loggp.yaml --model loggp --bytes 1KiB",
        f"wave {KERNEL} --layout params/layouts/mine --params loggp.yaml --cores 1,2 --iterations 2",
        f"gemm {KERNEL} --layout params/layouts/mine --params loggp.yaml -o partitions",
        f"gemm --speeds speeds.yaml {PLATFORM} --experiment sample --blocks 8 --cores 1",
    ),
    "tune": (
        f"{TUNE} --params loggp.yaml --sync barrier --commutative --same-types -o tuned -q --verbose",
        f"{TUNE} --experiment local --sync window -o tuned-too -q",
    ),
    "calibrate": (
        "--params loggp.yaml --platform mycluster --points 2 --held-out 2 --nodes 4 --setting new -o adapted -q",
    ),
    "partition": (
        f"--kernel gemm {PROCESSES} --speeds speeds.yaml --blocks 8",
        f"--kernel wave {PROCESSES} --speeds speeds.yaml --blocks 8 --ranks 4 --by constant --interpolation akima",
        f"{PROCESSES} --speeds speeds.yaml --blocks 8 --by dynamic --within 10% --interpolation piecewise",
        f"{PROCESSES} --speeds speeds.yaml --blocks 8 --by geometric -o partition.csv",
        "--by dynamic --measure --platform desk --layout processes:mine.csv --block 8 --blocks 4",
    ),
    "report": (
        "--in results/sample --anonymous --samples --out anonymous",
        "--in results/sample --pictures pictures --every-chart",
        "imported --pictures pictures",
    ),
    "diff": (
        "results/october results/november --out changes.xlsx --verbose",
        "results/october results/november results/october",
        "loggp.yaml loggp.yaml",
    ),
    "show algorithms": ("",),
    "show layout": (f"{PROCESSES.partition(' ')[2].partition(' ')[0]}", "block:2 --ranks 4"),
    "show network": ("mine --platform mycluster",),
    "show schedule": (
        "--operation bcast --algorithm binomial --ranks 8 --bytes 1KiB --layout cyclic:2",
        "--operation bcast --algorithm binomial --ranks 8 --bytes 1KiB --platform mycluster",
    ),
    "show topology": ("kary:2^3", "kary:2^3 --operation reduce --bytes 8 --params loggp.yaml"),
    "import folder": (
        "osu-results --setting may --statistic completion --verbose --out imported",
        "osu-results --library MPICH --ranks 64 --statistic 'rank mean' --out imported-too",
        "osu-results --statistic 'last rank' --out imported/first.csv",
        "osu-results --statistic 'first rank' --out imported/second.csv",
    ),
    "import goal": ("trace.bin --unit ns -o t.csv",),
    "import csv": (
        "other.csv --operation bcast --column seconds=time:us --algorithm binomial --layout block:2 -o t.csv",
    ),
    "import imb": ("imb.txt --algorithm linear -o t.csv",),
    "import mpiblib": (
        "bcast.out --operation bcast --ranks 16 --algorithm linear --layout block:4 -o t.csv",
    ),
    "import osu": ("osu_bcast.txt --ranks 16 --layout block:4 -o t.csv",),
    "import pico": (
        "pico.csv --algorithm linear --layout block:1 -o t.csv",
        "results/lumi/2025_04_07___16_22_51.tar.gz --metadata results/lumi_metadata.csv --ranks 4 -o t.csv",
    ),
    "import reprompi": ("reprompi.txt --ranks 16 --algorithm linear -o t.csv",),
    "import skampi": ("skampi.txt --algorithm linear -o t.csv",),
    "export extrap": ("results/sample/comparison.csv --format text -o sample.txt",),
    "export goal": (
        "--operation reduce --topology flat:4 --layout block:2 --bytes 1KiB --gamma 0.3ns --unit ps",
    ),
    "completion": ("zsh",),
    "doctor": ("--slurm standard --wait 20", "--need cc"),
    "plan": (
        "sample --only fast-ethernet-32 --no-survey --verbose",
        "sample --write",
        "sample --learn fast-ethernet-32",
    ),
    "build": ("replay", "overlay"),
    "measure": (
        "--in results/sample --batch fast-ethernet-32-upto16n --out raw --setting monday -q",
    ),
    "measure speeds": (
        f"gemm {MEASURE} --ranks 2 --block 8 --within 20% --precision 50% -o gemm.yaml -q",
        f"wave {MEASURE} -o wave.yaml",
    ),
    "collect": ("--in results/sample --out collected/observations.csv",),
    "fit table": ("collectives.csv --model hockney --setting friday --statistic completion",),
    "compare": ("--in results/sample --out compared.csv --cores 2",),
}
FILES = {
    "other.csv": "ranks,bytes,time\n4,8,10\n4,1024,20\n",
    "bcast.csv": "ranks,bytes,time\n4,8,10\n4,1024,20\n",
    "bcast.out": MPIBLIB,
    "p2p.out": MPIBLIB,
    "imb.txt": IMB,
    "reprompi.txt": REPROMPI,
    "skampi.txt": SKAMPI,
    "pico.csv": PICO,
    "netgauge.txt": NETGAUGE,
    "node-1.txt": NETGAUGE,
    "microbench.txt": MICROBENCH,
    "microbench-1.txt": MICROBENCH,
    "microbench-2.txt": MICROBENCH,
    "trace.goal": TEXT,
}
LOCAL = """
title: two ranks of this machine
platform: desk
models: [hockney]
measure: {precision: 50%, min_samples: 2, max_samples: 4, seconds: 0.1, passes: 1, warmup: 0}
probe_bytes: [1, 1024]
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: 2, bytes: 8}
"""
# Options and their values that other tests run, because they start Snakemake, need a cluster or
# measure for long.
ELSEWHERE = {
    "init": {"tests/platforms/test_host_site.py": ("--hosts",)},
    "run": {
        "tests/workflow/test_run.py": ("--profile",),
        "tests/workflow/test_so_far.py": ("--until",),
    },
    "report": {"tests/workflow/test_so_far.py": ("--so-far",)},
    "predict": {"tests/cli/test_statistic.py": ("first rank",)},
    "advise": {"tests/cli/test_statistic.py": ("last rank", "first rank")},
    "advise layouts": {"tests/kernels/test_commands.py": ("--measure",)},
    "build": {"tests/labs/overlay_trees.py": ("mrnet",)},
    "import csv": {
        "tests/cli/test_import.py": (
            "--ranks",
            "--statistic",
            "completion",
            "last rank",
            "first rank",
            "rank mean",
        )
    },
    "fit table": {"tests/fits/test_statistics.py": ("last rank", "first rank", "rank mean")},
    "import imb": {"tests/cli/test_import.py": ("--ranks",)},
    "import skampi": {"tests/cli/test_import.py": ("--ranks",)},
}
# They measure on this machine, or write whole reports.
SLOW = re.compile(
    r"run |tune |measure speeds |partition --by dynamic --measure |report |-C mine run "
)
# Their output is a file, or has no other format.
WITHOUT_FORMAT = re.compile(
    r"predict (matrix|plan) |predict .*-o |advise .*-o |partition .*-o |plan .*--(from|learn|write)|"
    r"fit (probes|sheet) |fit table .*-o |show network .*--levels|"
    r"export extrap|status .*--watch|diff .*--out"
)
# In slow examples.
# in slow examples
SMALLER_VALUES = {
    "mycluster": "desk",
    "64": "2",
    "8:1MiB:*16": "8",
    "10": "0.01",
    "16:256": "16:64",
}
# Remains of Python in a text for people, and `1 rows`.
NOT_FOR_PEOPLE = re.compile(
    r"\b(?:nan|None(?! of)|NaN|NaT|Traceback|Sentinel|dtype)\b| object at 0x|"
    r"(?<![\d.,×−-])\b1 (?:batches|cases|kinds|models|points|predictions|rounds|rows|speeds|times|values|workloads)\b"
)
# Functions of the API that take long and know no format: a command in a second format gets what they
# returned in the first.
ONCE = (
    "commodel.api.advice_scores.score_advice",
    "commodel.api.calibration.recalibrate",
    "commodel.api.differences.diff",
    "commodel.api.fits.fit_tables",
    "commodel.api.measured_batches.measure_batch",
    "commodel.api.plans.plan_",
    "commodel.api.predictions.predict_patterns",
    "commodel.api.recommendations.advise_workload",
    "commodel.api.recommendations.decide_workloads",
    "commodel.api.comparisons.add_recommended",
    "commodel.api.comparisons.collect_samples",
    "commodel_kernels.layout_rankings.rank_layouts",
)
CELL_PREFIX = "'"  # keeps a spreadsheet from reading a cell as a formula


def list_commands() -> list[str]:
    """Return the commands without `commodel`: the examples of every page, and the invocations."""
    examples = [shlex.join(read_words(example)) for example in EXAMPLES]
    return [
        *dict.fromkeys(examples),
        *(f"{page} {line}".strip() for page in INVOCATIONS for line in INVOCATIONS[page]),
    ]


def find_page(line: str) -> str:
    words = line.removeprefix("-C mine ").split()
    return next(page for page in (" ".join(words[:2]), words[0]) if page in PAGES)


COMMANDS = list_commands()
# Commands with an answer of their own.
LEAVES = {
    page: command
    for page, command in PAGES.items()
    if not isinstance(command, click.Group) or command.invoke_without_command
}


def list_formats(line: str) -> list[str | None]:
    """Return the formats in which a command is run; None: as it stands."""
    option = next(
        (option for option in PAGES[find_page(line)].params if "--format" in option.opts), None
    )
    if option is None or "--format" in line or WITHOUT_FORMAT.match(line):
        return [None]
    if line.startswith("show topology") and "--params" in line:
        return ["summary", "svg"]
    return list(option.type.choices)


def list_values(option: click.Parameter) -> list[str]:
    """Return what has to occur in a command: the option, or each of its choices; of --format,
    `run_command` does."""
    if "--format" in option.opts:
        return []
    if isinstance(option.type, click.Choice):
        return list(option.type.choices)
    return [option.opts[-1]] if isinstance(option, click.Option) else []


def test_every_option_and_choice_of_every_verb_is_in_a_command():
    missing = []
    for page, command in LEAVES.items():
        elsewhere = {value for values in ELSEWHERE.get(page, {}).values() for value in values}
        words = {word for line in COMMANDS if find_page(line) == page for word in shlex.split(line)}
        defaults = {option.default for option in command.params}
        for option in command.params:
            names = words & {*option.opts, *option.secondary_opts}
            wanted = [
                value for value in list_values(option) if value not in words | elsewhere | defaults
            ]
            if wanted and not (names and wanted == [option.opts[-1]]):
                missing.append((page, *wanted))
    assert not missing


def test_options_that_other_tests_run_are_there():
    for page, tests in ELSEWHERE.items():
        known = {
            name for option in LEAVES[page].params for name in (*option.opts, *list_values(option))
        }
        for file, values in tests.items():
            assert set(values) <= known
            text = (ROOT / file).read_text(encoding="utf-8")
            assert not [value for value in values if value not in text], file


@pytest.fixture(scope="module")
def project(tmp_path_factory, simgrid_programs):
    """A project in which `sample` has run, with files of other tools."""
    docs = made_once(tmp_path_factory, "docs-project", make_project)
    template = made_once(
        tmp_path_factory, "examples-project", lambda folder: run_sample(Project(folder, docs))
    )
    folder = tmp_path_factory.mktemp("contract")
    install_commands(folder / "slurm-commands", "standard", nodes=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder / 'slurm-commands'}:{os.environ['PATH']}")
        yield Project(folder, template)


def run_sample(project: Project) -> None:
    shutil.rmtree(project.folder / "results/sample")
    project.experiment(
        "sample",
        reduce_experiment((ROOT / "params/experiments/sample.yaml").read_text(encoding="utf-8")),
    )
    project.compare("sample")
    project.verb("compare", "--in", "results/sample", "--sets")
    shutil.copytree(
        ROOT / "examples", project.folder / "examples", ignore=shutil.ignore_patterns("*.ipynb")
    )
    table = project.folder / "examples" / "collectives.csv"
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    kept_lines = [
        line for line in lines if line.startswith(("operation", "bcast,binomial", "gather"))
    ]
    table.write_text("".join(kept_lines), encoding="utf-8")
    for name, text in FILES.items():
        (project.folder / name).write_text(text, encoding="utf-8")
    (project.folder / "trace.bin").write_bytes(BINARY)
    for name in ("old", "new"):
        (project.folder / name).mkdir()
        shutil.copy(project.folder / "loggp.yaml", project.folder / name / "loggp.yaml")
    project.verb("import", "osu-results", "--out", "imported")
    project.verb(
        "partition", *f"{PROCESSES} --speeds speeds.yaml --blocks 8 -o partition.csv".split()
    )


def run_command(line: str, style: str | None) -> str:
    """Run a command in a format, and return what it prints, or what it writes into a workbook."""
    words = shlex.split(line)
    if style:
        words += ["--format", style]
    if style == "xlsx":
        words += ["-o", "contract.xlsx"]
    shutil.rmtree("mine", ignore_errors=True)
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert not NOT_FOR_PEOPLE.search(result.stderr), result.stderr
    for option, value in pairwise(words):
        if option in ("-o", "--out", "--pictures"):
            path = Path(value)
            # `export extrap` writes a file for each set of points.
            paths = (
                [path] if path.exists() else sorted(Path().glob(f"{path.stem}-[1-9]{path.suffix}"))
            )
            assert paths, value
            for written in paths:
                check_file(written)
    return result.stdout


def check_file(path: Path) -> None:
    """Check that a file that a command wrote is what its name promises."""
    if path.is_dir():
        assert list(path.iterdir())
        for file in filter(Path.is_file, path.iterdir()):
            check_file(file)
        return
    text = "" if path.suffix in (".xlsx", ".png", ".parquet") else path.read_text(encoding="utf-8")
    checks: dict[str, Callable[[], object]] = {
        ".xlsx": lambda: openpyxl.load_workbook(path),
        ".parquet": lambda: pq.read_table(path),
        ".csv": lambda: parse_csv(text),
        ".svg": lambda: ElementTree.fromstring(text),
        ".yaml": lambda: yaml.safe_load(text),
        ".json": lambda: parse_json(text),
        ".jsonl": lambda: [parse_json(line) for line in text.splitlines()],
    }
    checks.get(path.suffix, lambda: None)()
    assert path.stat().st_size


def parse_json(text: str):
    def refuse(constant: str):
        raise AssertionError(f"found {constant} in JSON")

    return json.loads(text, parse_constant=refuse)


def parse_csv(text: str) -> list[dict[str, str]]:
    rows = list(csv.reader(io.StringIO(text)))
    assert rows
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(set(rows[0])) == len(rows[0])
    assert not {cell for row in rows for cell in row} & {"nan", "NaN", "None", "NaT"}
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def check_table(text: str) -> None:
    """Check a text for people: no remains of Python, and no table wider than 100 columns."""
    assert text.strip()
    assert not NOT_FOR_PEOPLE.search(text), text
    for line in text.splitlines():
        assert len(line) <= 100 or not re.match(r"\S+(  +\S+){2}", line), line


def check_dot(text: str) -> None:
    assert re.match(r"(strict )?(di)?graph\b", text)
    assert text.count("{") == text.count("}")


def check_lines(text: str) -> None:
    assert text.strip()


CHECKS = {
    "table": check_table,
    "summary": check_table,
    "line": check_table,
    "text": check_lines,
    "file": check_lines,
    "mrnet": check_lines,
    "json": parse_json,
    "csv": parse_csv,
    "dot": check_dot,
    "svg": ElementTree.fromstring,
    "xlsx": lambda text: openpyxl.load_workbook("contract.xlsx"),
}


def is_same(value: object, cell: str) -> bool:
    """Return whether a value of JSON is that of a cell of CSV."""
    if value is None:
        return cell in ("", "inf", "-inf")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value) == cell.removeprefix(CELL_PREFIX) or str(value) == cell
    return math.isclose(value, float(cell), rel_tol=1e-15)


def check_same_cells(rows: list[dict], cells: list[dict[str, str]]) -> None:
    """Check that rows of JSON and CSV have the same columns and values."""
    assert len(rows) == len(cells)
    for row, texts in zip(rows, cells, strict=True):
        assert list(row) == list(texts)
        assert not [
            (name, value, texts[name])
            for name, value in row.items()
            if not is_same(value, texts[name])
        ]


@pytest.mark.parametrize("line", [line for line in COMMANDS if not SLOW.match(line)])
def test_a_command_is_valid_in_every_format(project, line):
    check_command(project, line)


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in COMMANDS if SLOW.match(line)])
def test_a_slow_command_is_valid_in_every_format(project, mpi_programs, line):
    if line.startswith("-C mine"):
        project.verb("init", "mine")
        shutil.copy(
            project.folder / "params/experiments/sample.yaml",
            project.folder / "mine/params/experiments",
        )
    words = shlex.split(line)
    if "--experiment local" in line:
        project.experiment("local", LOCAL)
        project.compare("local")
    if find_page(line) == "run":
        project.commodel(*words, *(() if "--cores" in words else ("--cores", "1")))
        return
    in_example = line not in {
        f"{page} {more}" for page in INVOCATIONS for more in INVOCATIONS[page]
    }
    if in_example and find_page(line) in ("tune", "measure speeds"):
        words = [SMALLER_VALUES.get(word, word) for word in words]
    check_command(project, shlex.join(words))


def replay(function: Callable, results: list) -> Callable:
    """Return a function that returns these results in order. Calls beyond them are computed and
    added."""
    number = count()

    def answer(*arguments, **named):
        at = next(number)
        if at == len(results):
            results.append(function(*arguments, **named))
        return results[at]

    return answer


def import_api() -> None:
    """Import all modules of the API: one that was imported while a function is replaced would keep
    the replacement."""
    for module in iter_modules(commodel.api.__path__, "commodel.api."):
        import_module(module.name)


def find_replaced() -> list[str]:
    """Return the names of replaced functions in modules of the program."""
    modules = {name: module for name, module in sys.modules.items() if name.startswith("commodel")}
    return [
        f"{name}.{attribute}"
        for name, module in modules.items()
        for attribute, value in vars(module).items()
        if getattr(value, "__qualname__", "") == "replay.<locals>.answer"
    ]


def check_command(project: Project, line: str) -> None:
    import_api()
    outputs: dict[str, str] = {}
    functions = {name: resolve_name(name) for name in ONCE}
    results: dict[str, list] = {name: [] for name in ONCE}
    with chdir(project.folder), pytest.MonkeyPatch.context() as patch:
        for style in list_formats(line):
            for name, function in functions.items():
                patch.setattr(name, replay(function, results[name]))
            text = run_command(line, style)
            if style:
                CHECKS[style](text)
                outputs[style] = text
    assert not find_replaced()
    if {"json", "csv"} <= outputs.keys():
        rows = parse_json(outputs["json"])
        if isinstance(rows, list) and not any(
            isinstance(value, list | dict) for row in rows for value in row.values()
        ):
            check_same_cells(rows, parse_csv(outputs["csv"]))
