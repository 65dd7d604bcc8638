"""The sources on which a module depends, compared with the imports that Python makes."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commodel.sources import PACKAGE, ROOT, find_module_file, list_imported_files, list_source_files


def named(*modules) -> set[str]:
    return {str(Path(path).relative_to(PACKAGE)) for path in list_source_files(*modules)}


@pytest.mark.parametrize(
    "module",
    [
        "fits.probe_fits",
        "predictions.predictions",
        "models.families.taulop",
        "models.families.logp_tan",
        "compare.comparison",
        "results.collection",
    ],
)
def test_everything_that_python_loads_is_named(module):
    code = (
        f"import sys, commodel.{module}; print(*(m.__file__ for n, m in sys.modules.items() if "
        "'commodel.' in n))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {str(Path(path).relative_to(PACKAGE)) for path in loaded} <= named(module) | {
        "__init__.py"
    }


@pytest.mark.parametrize(
    "rule", sorted((ROOT / "workflow" / "rules").glob("*.smk")), ids=lambda path: path.stem
)
def test_the_modules_that_rules_name_exist(rule):
    text = rule.read_text(encoding="utf-8")
    calls = re.findall(r"\blist_source_files\(([^()]*)\)", text)
    assert len(calls) == len(re.findall(r"\blist_source_files\(", text))
    for name in re.findall(r'(?<![\w"])"([a-z_.]+)"', " ".join(calls)):
        assert find_module_file(name), (rule.name, name)


def test_a_name_that_is_no_module_is_an_error():
    with pytest.raises(ValueError, match=r"no module commodel\.fits\.nothing"):
        list_source_files("fits.nothing")


def test_a_family_does_not_rest_on_the_others():
    files = named("fits.probe_fits", "models.families.logp-tan")
    assert {
        "models/families/logp_tan.py",
        "models/families/tan.py",
        "models/fitting/observed.py",
        "stats.py",
    } <= files
    assert not {"models/families/hockney.py", "reports/html/page.py", "measure/batch.py"} & files


def test_imports_found_in_the_text_equal_the_imports_of_the_syntax_tree():
    for path in PACKAGE.rglob("*.py"):
        nodes = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom)
        ]
        names = [
            f"{node.module}.{name}"
            for node in nodes
            for name in ("", *(alias.name for alias in node.names))
        ]
        stems = [
            name.partition(".")[2].rstrip(".") for name in names if name.startswith("commodel.")
        ]
        assert set(list_imported_files(path)) == {
            file for stem in stems if stem and (file := find_module_file(stem))
        }, path
