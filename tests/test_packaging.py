"""The recipes in packaging/ have the version and the dependencies of pyproject.toml, and `make
release` ends before it uploads."""

import ast
import re
import runpy
import subprocess
import tomllib

import jinja2
import pytest
import yaml

from commodel import __version__
from tests.documented import ROOT

PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WANTED = {re.match(r"[\w-]+", text)[0]: text for text in PROJECT["dependencies"]}


def test_the_recipe_of_spack_has_our_version_and_dependencies():
    tree = ast.parse((PACKAGING / "spack/package.py").read_text(encoding="utf-8"))
    (package,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert package.name == "Commodel"
    calls = [node.value for node in package.body if isinstance(node, ast.Expr)]
    calls = [node for node in calls if isinstance(node, ast.Call)]
    named = [(call.func.id, ast.literal_eval(call.args[0])) for call in calls]
    assert ("version", __version__) in named
    depends = {text.partition("@")[0]: text for name, text in named if name == "depends_on"}
    tools = {"c", "gmake", "python", "py-setuptools", "mpi"}
    assert {name.removeprefix("py-") for name in set(depends) - tools} == set(WANTED)
    assert depends["python"] == f"python@{PROJECT['requires-python'].removeprefix('>=')}:"
    for name, text in WANTED.items():
        if ">=" in text:
            found = depends.get(name) or depends[f"py-{name}"]
            assert found.partition("@")[2] == f"{text.partition('>=')[2]}:"


def test_the_recipe_of_conda_has_our_version_dependencies_and_command():
    text = (PACKAGING / "conda-forge/meta.yaml").read_text(encoding="utf-8")
    functions = {"compiler": "{}_compiler".format, "stdlib": "{}_stdlib".format}
    recipe = yaml.safe_load(jinja2.Template(text).render(PYTHON="python", **functions))
    assert recipe["package"] == {"name": "commodel", "version": __version__}
    run = recipe["requirements"]["run"]
    assert {line.replace(" ", "") for line in run if not line.startswith("python ")} == set(
        PROJECT["dependencies"]
    )
    assert f"python {PROJECT['requires-python']}" in run
    assert recipe["build"]["entry_points"] == ["commodel = commodel.cli:main"]
    assert PROJECT["scripts"] == {"commodel": "commodel.cli:main"}
    assert recipe["about"]["license"] == PROJECT["license"]


def test_the_file_of_easybuild_has_its_parameters_and_our_version():
    (path,) = (PACKAGING / "easybuild").glob("*.eb")
    names = runpy.run_path(str(path))
    assert (names["name"], names["version"]) == ("commodel", __version__)
    toolchain = names["toolchain"]
    assert path.name == f"commodel-{__version__}-{toolchain['name']}-{toolchain['version']}.eb"
    assert names["easyblock"] == "PythonBundle"
    assert names["exts_list"][-1] == ("commodel", __version__)
    assert all(len(entry) == 2 for entry in names["dependencies"])
    assert {"files", "dirs"} == set(names["sanity_check_paths"])


RELEASE = runpy.run_path(str(PACKAGING / "release.py"))
CHANGES = "# Changelog\n\n## 0.2.0 (unreleased)\n\n- new\n\n## 0.1.0\n\n### Part\n\n- old\n"


def test_the_notes_of_a_release_are_its_section():
    extract = RELEASE["extract_notes"]
    assert extract(CHANGES, "0.2.0") == ("- new\n", "unreleased")
    assert extract(CHANGES, "0.1.0") == ("### Part\n\n- old\n", "")
    with pytest.raises(SystemExit, match=r"found versions 0.2.0, 0.1.0, wanted a section 1.0.0"):
        extract(CHANGES, "1.0.0")
    notes, _ = extract((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__)
    assert notes.startswith("The first release")
    assert RELEASE["read_version"]() == __version__


def test_make_release_checks_and_does_not_upload(tmp_path, capsys):
    done = subprocess.run(
        ["make", "-n", "release"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "twine check --strict build/release/*" in done.stdout
    assert "twine upload" not in done.stdout
    for name in ("commodel-0.1.0.tar.gz", "commodel-0.1.0-py3-none-linux_x86_64.whl"):
        (tmp_path / name).write_text(name)
    RELEASE["main"](tmp_path)
    printed = capsys.readouterr().out
    assert printed.count("sha256") == 2
    assert f"twine upload {tmp_path}/commodel-0.1.0.tar.gz\n" in printed
    assert (tmp_path / "notes.md").read_text().startswith("The first release")
