"""A contract over the public names of the package: every function with each of its parameters,
every property and method of what they return, their texts in a notebook, and the examples of their
docstrings.

All of it is enumerated from `dir(commodel)`, which has the functions of our extensions, too. A new
function, parameter, property or method without a call fails the test.
"""

import ast
import dataclasses
import doctest
import inspect
import re
import warnings
from collections.abc import Iterator
from contextlib import chdir

import pytest

import commodel
from tests.cli.running import run
from tests.cli.test_contract import project  # noqa: F401  a fixture
from tests.documented import ROOT

PLATFORM, SETS = "fast-ethernet-32", "results/sample/validated/fast-ethernet-32"
LOGGP = {"L": "2us", "o_s": "1us", "o_r": "1us", "g": "1us", "G": "1ns/B"}
EVEN = "processes:params/layouts/mine/even.csv"
BCAST = {"operation": "bcast", "ranks": 8, "bytes": "1KiB"}
CALLS: dict[str, tuple[dict, ...]] = {
    "load": ({"folder": "results/sample"},),
    "predict": (
        {**BCAST, "model": "loggp", "algorithm": "binomial", "layout": "block:2", **LOGGP},
        {**BCAST, "parameters": f"{SETS}/loggp.yaml", "platform": PLATFORM, "waves": 3},
        {
            "operation": "reduce",
            "topology": "flat:4",
            "bytes": 8,
            "parameters": SETS,
            "pipelined": True,
        },
        {**BCAST, "parameters": "loggp.yaml", "values": {"L": "3us"}, "statistic": "rank mean"},
        {**BCAST, "experiment": "sample", "platform": PLATFORM},
    ),
    "diff": (
        {"old": "RUN", "new": "results/november"},
        {"old": "RUN", "new": "results/november", "newer": "RUN"},
    ),
    "import_folder": (
        {"folder": "osu-results", "ranks": 64},
        {"folder": "osu-results", "out": "api-imported", "ranks_per_node": 56}
        | {"library": "Open MPI 5.0.3", "setting": "may", "statistic": "completion"},
    ),
    "import_": (
        {
            "format": "osu",
            "files": "osu_bcast.txt",
            "ranks": 16,
            "algorithm": "binomial",
            "layout": "block:2",
        },
        {
            "format": "csv",
            "files": ["other.csv"],
            "operation": "bcast",
            "columns": ["seconds=time:us"],
        }
        | {"algorithm": "binomial", "statistic": "rank mean", "metadata": ""},
    ),
    "export": (
        {"format": "mrnet", "source": "kary:4^2"},
        {"format": "extrap", "source": "results/sample/comparison.csv", "out": "sample.txt"},
    ),
    "show": ({"catalogue": "models", "name": "loggp"}, {"catalogue": "algorithms"}),
    "fit": (
        {
            "table": "collectives.csv",
            "model": "hockney",
            "setting": "friday",
            "statistic": "rank mean",
        },
        {
            "table": ["collectives.csv"],
            "model": "pmnf",
            "hold_out": "ranks > 4",
            "out": "pmnf.yaml",
        },
    ),
    "partition": (
        {"speeds": "speeds.yaml", "blocks": 8, "layout": EVEN, "platform": "mycluster"},
        {
            "speeds": "speeds.yaml",
            "blocks": 8,
            "layout": EVEN,
            "platform": "mycluster",
            "ranks": 4,
            "kernel": "wave",
        }
        | {"method": "constant", "interpolation": "akima"},
    ),
    "advise": (
        {
            **BCAST,
            "evidence": "RUN",
            "platform": PLATFORM,
            "layouts": ["block"],
            "only": ["binomial", "linear"],
        },
        {"operation": "reduce", "leaves": 8, "bytes": "1KiB", "evidence": "tan.yaml"},
        {**BCAST, "evidence": ["loggp.yaml"], "values": {"L": "3us"}, "statistic": "rank mean"},
        {**BCAST, "experiment": "sample"},
    ),
    "decide": (
        {"operations": ["bcast"], "ranks": [4, 8], "bytes": "8", "experiment": "sample"},
        {
            "operations": ["bcast"],
            "ranks": [4, 8],
            "bytes": "8",
            "evidence": "RUN",
            "platform": PLATFORM,
            "open_mpi": True,
        },
        {
            "operations": "reduce",
            "leaves": [4, 8],
            "bytes": "1KiB",
            "evidence": "tan.yaml",
            "layouts": ["block"],
        },
    ),
}
CALLS |= {
    "doctor": ({},),
    "init": (
        {"folder": "api-project", "here": True},
        {"folder": "api-project", "slurm": "standard", "progress": print},
    ),
    "check_slurm": ({"partition": "standard", "seconds": 20, "progress": print},),
    "predict_matrix": (
        {"experiment": "sample", "parameters": "loggp.yaml", "out": "matrix.parquet", "draws": 0},
        {
            "experiment": "sample",
            "parameters": ["loggp.yaml"],
            "out": "matrix.csv",
            "platform": PLATFORM,
        }
        | {"values": {"L": "2us"}},
    ),
    "predict_plan": (
        {"plan": "results/sample", "parameters": "loggp.yaml", "values": {"L": "2us"}},
        {
            "plan": "results/sample/plan.json",
            "parameters": [SETS],
            "model": "loggp",
            "out": "of-plan.csv",
        },
        {"plan": "results/sample", "parameters": f"{SETS}/loggp.yaml", "out": "old"},
    ),
    "fit_probes": (
        {"plan": "results/sample", "platform": PLATFORM, "models": "loggp"},
        {
            "plan": "results/sample/plan.json",
            "platform": PLATFORM,
            "models": ["loggp", "hockney"],
            "samples": "results/sample/observations.csv",
            "out": "old",
        },
    ),
    "fit_sheet": (
        {"model": "loggp", "platform": "fat-tree-64"},
        {"model": "shares", "platform": "fat-tree-64", "out": "sheet.yaml"},
    ),
    "measure_batch": (
        {
            "plan": "results/sample",
            "batch": "fast-ethernet-32-upto16n",
            "out": "raw-by-function",
            "setting": "api",
        }
        | {"progress": print},
    ),
    "advise_score": ({"platform": PLATFORM, "experiment": "sample"},),
    "plan_": ({"experiment": "sample", "only": PLATFORM, "survey": False, "write": False},),
    "predict_kernel": (
        {"kernel": "summa", "blocks": 8, "ranks": 4, "grid": "2x2", "iteration": 0, "bytes": "2KiB"}
        | {"evidence": "loggp.yaml", "values": {"L": "2us"}},
        {
            "kernel": "summa",
            "blocks": 8,
            "overlapped": True,
            "speeds": "speeds.yaml",
            "layout": EVEN,
        }
        | {"platform": "mycluster", "evidence": "loggp.yaml"},
        {"kernel": "wave2d", "partition": "partition.csv", "evidence": "loggp.yaml"},
        {"kernel": "wave2d", "blocks": 8, "ranks": 4, "platform": PLATFORM, "experiment": "sample"},
    ),
    "advise_layouts": (
        {
            "kernel": "gemm",
            "blocks": 8,
            "speeds": "speeds.yaml",
            "platform": "mycluster",
            "evidence": "loggp.yaml",
        }
        | {
            "layouts": "params/layouts/mine",
            "model": "loggp",
            "bytes": "1KiB",
            "out": "api-partitions",
        },
        {
            "kernel": "wave",
            "blocks": 8,
            "speeds": "speeds.yaml",
            "platform": "mycluster",
            "evidence": "loggp.yaml",
        }
        | {"layouts": ["params/layouts/mine"], "cores": "1,2", "iterations": 2},
        {
            "kernel": "gemm",
            "blocks": 8,
            "speeds": "speeds.yaml",
            "platform": PLATFORM,
            "experiment": "sample",
        }
        | {"cores": "1", "measure": 1, "progress": print},
    ),
}
SLOW_CALLS: dict[str, tuple[dict, ...]] = {
    "report": (
        {"run": "RUN", "out": "reports/api", "anonymous": True, "samples": True},
        {"run": "results/sample", "pictures": "drawn", "every_chart": True},
        {"run": "imported"},
    ),
    "run": (
        {
            "experiment": "sample",
            "only": PLATFORM,
            "cores": 1,
            "retry": True,
            "survey": True,
            "progress": print,
        },
    ),
}
SLOW_CALLS["tune"] = (
    {"platform": "desk", "ranks": 2, "bytes": 8, "operations": "bcast", "minutes": 0.01, "pairs": 3}
    | {"evidence": "loggp.yaml", "out": "tuned-by-function", "progress": print},
)
SLOW_CALLS["measure_speeds"] = (
    {
        "kernel": "gemm",
        "layout": "processes:mine.csv",
        "out": "api-speeds.yaml",
        "platform": "desk",
        "ranks": 2,
    }
    | {
        "block": 8,
        "sizes": "16:64",
        "within": "20%",
        "max_sizes": 3,
        "seconds": 0.01,
        "precision": "50%",
    }
    | {"progress": print},
)
SLOW_CALLS["calibrate"] = (
    {
        "platform": "mycluster",
        "parameters": "loggp.yaml",
        "points": 2,
        "held_out": 2,
        "nodes": 4,
        "setting": "api",
    }
    | {"out": "adapted-by-function", "progress": print},
    {"experiment": "sample", "points": 2, "held_out": 2, "setting": "by function"},
)
ELSEWHERE = {
    ("run", "profile"): "tests/workflow/test_run.py",
    ("run", "until"): "tests/workflow/test_so_far.py",
    ("report", "so_far"): "tests/workflow/test_so_far.py",
    ("init", "hosts"): "tests/platforms/test_host_site.py",
}
# Arguments of the methods and methods without a result, by class and name.
METHODS: dict[tuple[str, str], tuple] = {
    ("Run", "parameter_set"): (PLATFORM, "loggp"),
    ("Run", "parameter_sets"): (),
    ("Run", "parameters"): (PLATFORM, "loggp"),
    ("Run", "choose_platform"): (),
    ("Run", "resources"): (PLATFORM,),
    ("Run", "plot"): (),
    ("Fit", "parameter_sets"): (),
    ("Fit", "save"): ("saved.yaml",),
    ("Fit", "plot"): (),
    ("ParameterSet", "with_settings"): (),
    ("Partition", "to_svg"): (),
    ("Predictions", "plot"): (),
    ("Advice", "plot"): (),
    ("Difference", "plot"): (),
    ("KernelPredictions", "plot"): (),
    ("LayoutRanking", "plot"): (),
    ("MeasuredSpeeds", "plot"): (),
    ("Decisions", "to_rules"): ("rules.conf",),
    ("Decisions", "save"): ("decisions.csv",),
    ("Difference", "list_exceeding"): (0.1,),
    ("UserError", "lines"): (),
    ("UserError", "show"): (),
}
# Methods of every result.
RESULTS = [name for name in dir(commodel) if hasattr(getattr(commodel, name), "to_excel")]
METHODS |= {(name, member): () for name in RESULTS for member in ("text", "to_csv", "to_json")}
METHODS |= {(name, "to_excel"): ("answer.xlsx",) for name in RESULTS}
# Other values in the examples, whose platform and runs are not in the test's project.
EXAMPLE_VALUES = {
    "processes:mine.csv": EVEN,
    "demo": "sample",
    '"local"': f'"{PLATFORM}"',
    "ranks > 32": "ranks > 4",
    "64,": "16,",
}

# These measure for minutes, or write a whole report, as slow calls do.
SLOW_EXAMPLES = ("tune(", "calibrate(", "measure_batch(", "measure_speeds(", "report(")

FUNCTIONS = [name for name in dir(commodel) if inspect.isfunction(getattr(commodel, name))]
CLASSES = [name for name in dir(commodel) if inspect.isclass(getattr(commodel, name))]


def list_parameters(name: str) -> set[str]:
    parameters = inspect.signature(getattr(commodel, name)).parameters.values()
    return {
        parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD
    }


def list_members(kind: type) -> list[str]:
    """Return the public fields, properties and methods of a class that the package defines, not
    another package."""
    names = (
        {field.name for field in dataclasses.fields(kind)}
        if dataclasses.is_dataclass(kind)
        else set()
    )
    names |= {
        name
        for base in kind.__mro__
        if base.__module__.startswith("commodel")
        for name in vars(base)
    }
    return sorted(name for name in names if not name.startswith("_"))


def test_every_public_function_is_called_with_each_of_its_parameters():
    calls = CALLS | SLOW_CALLS
    assert sorted(calls) == sorted(FUNCTIONS)
    for name in FUNCTIONS:
        given = {key for call in calls[name] for key in call} | {
            key for place, key in ELSEWHERE if place == name
        }
        assert not list_parameters(name) - given, name
    assert not [
        file
        for (_, name), file in ELSEWHERE.items()
        if name not in (ROOT / file).read_text(encoding="utf-8")
    ]


def test_every_public_method_has_arguments_in_the_contract():
    methods = {
        (name, member)
        for name in CLASSES
        for member in list_members(getattr(commodel, name))
        if inspect.isfunction(inspect.getattr_static(getattr(commodel, name), member, None))
    }
    assert methods == set(METHODS)


def call_function(name: str, arguments: dict) -> object:
    values = {
        key: commodel.load("results/sample") if value == "RUN" else value
        for key, value in arguments.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Further results have no names.
        further = [values.pop("newer")] if "newer" in values else []
        first = [values.pop(key) for key in ("old", "new")] if further else []
        return getattr(commodel, name)(*first, *further, **values)


def check_shown(thing: object) -> None:
    """Check the texts that a notebook shows of a result: they are made without an error and without
    an address."""
    texts = [repr(thing), str(thing)]
    texts += [
        getattr(thing, name)()
        for name in ("_repr_html_", "_repr_mimebundle_")
        if hasattr(thing, name)
    ]
    for text in texts:
        assert text is not None
        assert not re.search(r" at 0x[0-9a-f]{6}", str(text)), text


def check_members(thing: object) -> None:
    """Read every public property of an object of the package, and call every method."""
    kind = next((name for name in CLASSES if type(thing) is getattr(commodel, name)), "")
    if not kind:
        return
    for member in list_members(type(thing)):
        value = getattr(thing, member)
        if not inspect.isfunction(inspect.getattr_static(type(thing), member, None)):
            check_shown(value)
        elif member == "plot" and isinstance(thing, commodel.Fit) and thing.held_out.empty:
            with pytest.raises(commodel.UserError, match="no held-out points"):
                value()
        elif kind == "Decisions" and member in ("to_rules", "save") and thing.assumptions is None:
            with pytest.raises(commodel.UserError, match="wanted decide"):
                thing.to_rules("rules.conf")
        else:
            result = value(*METHODS[kind, member])
            check_shown(list(result) if isinstance(result, Iterator) else result)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [(name, arguments) for name, calls in CALLS.items() for arguments in calls],
)
def test_notebooks_show_the_result_of_every_function(project, name, arguments):  # noqa: F811
    with chdir(project.folder):
        result = call_function(name, arguments)
        check_shown(result)
        check_members(result)
        if hasattr(result, "rows"):
            assert len(result.rows)
            assert len(result.frame)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW_CALLS)
def test_notebooks_show_the_result_of_slow_functions(project, name):  # noqa: F811
    with chdir(project.folder):
        for arguments in SLOW_CALLS[name]:
            result = call_function(name, arguments)
            check_shown(result)
            check_members(result)
            # Whether a rule is faster than the library depends on what was measured.
            assert len(result.rows) or "No rule is faster" in result.sentence


def test_sets_and_errors_can_be_shown(project):  # noqa: F811
    with chdir(project.folder):
        parameters = commodel.load("results/sample").parameter_set(PLATFORM, "loggp")
        check_members(parameters)
        with pytest.raises(commodel.UserError) as caught:
            commodel.load("no/such/folder")
        check_members(caught.value)
        check_shown(caught.value)


def list_examples() -> Iterator[str]:
    """Yield the code of the docstrings' examples and of the page of the API, except whole runs and
    reports."""
    for thing in (commodel, *(getattr(commodel, name) for name in FUNCTIONS)):
        for test in doctest.DocTestFinder(recurse=False).find(thing, "commodel"):
            sources = (example.source.strip() for example in test.examples)
            yield from (source for source in sources if not source.startswith(SLOW_EXAMPLES))
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    block = "\n".join(line[4:] for line in page.splitlines() if line.startswith("    "))
    for statement in re.split(r"\n(?=\S)", block):
        if not statement.startswith(("commodel.run(", "commodel.report(")):
            yield statement


def test_examples_of_the_documentation_run(project):  # noqa: F811
    names = {name: getattr(commodel, name) for name in dir(commodel)}
    examples = list(dict.fromkeys(list_examples()))
    assert len(examples) > 8
    with chdir(project.folder):
        for example in examples:
            code = example
            for old, new in EXAMPLE_VALUES.items():
                code = code.replace(old, new)
            (statement,) = ast.parse(code).body
            if isinstance(statement, ast.Expr):
                check_shown(eval(code, names))
            else:
                exec(code, names)


ANSWERS = {
    f"advise score --platform {PLATFORM} --experiment sample": lambda: commodel.advise_score(
        PLATFORM, experiment="sample"
    ),
    "predict kernel summa --params loggp.yaml --ranks 4 --blocks 8": lambda: (
        commodel.predict_kernel("summa", 8, ranks=4, evidence="loggp.yaml")
    ),
    (
        "advise layouts gemm --speeds speeds.yaml --platform mycluster --blocks 8 --layout params/layouts/mine "
        "--params loggp.yaml"
    ): lambda: commodel.advise_layouts(
        "gemm", 8, "speeds.yaml", "mycluster", layouts="params/layouts/mine", evidence="loggp.yaml"
    ),
    "predict plan results/sample/plan.json --params loggp.yaml -o of-plan.csv": lambda: (
        commodel.predict_plan("results/sample", "loggp.yaml", "of-plan.csv")
    ),
    f"fit probes results/sample/plan.json --platform {PLATFORM} --model loggp -o of-probes.yaml": lambda: (
        commodel.fit_probes("results/sample", PLATFORM, "loggp", "of-probes.yaml")
    ),
    "fit sheet --model shares --platform fat-tree-64 -o sheet.yaml": lambda: commodel.fit_sheet(
        "shares", "fat-tree-64", "sheet.yaml"
    ),
    "measure --in results/sample --batch fast-ethernet-32-upto16n -q": lambda: (
        commodel.measure_batch("results/sample", "fast-ethernet-32-upto16n")
    ),
    "plan sample --no-survey --verbose": lambda: commodel.plan_("sample", survey=False),
    "doctor": commodel.doctor,
}


@pytest.mark.parametrize("verb", ANSWERS)
def test_a_printed_answer_equals_the_output_of_its_verb(project, verb):  # noqa: F811
    with chdir(project.folder):
        answer = ANSWERS[verb]()
        assert run(verb).stdout.rstrip("\n") == str(answer)
        assert answer.provenance
