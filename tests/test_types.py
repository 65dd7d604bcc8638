"""What the package tells the type checkers of its users' programs (PEP 561). `make lint` checks the
package itself."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import commodel
from commodel.sources import ROOT

PROGRAM = """
import commodel

table = commodel.predict("bcast", 8, 1024, model="hockney", alpha="1us", beta="1ns/B")
commodel.predict(["bcast"], 8, 1024, model="hockney")
commodel.load("results/demo").figure
"""


def test_the_public_functions_are_declared_where_they_are_loaded_from():
    """Functions are loaded on demand, which a type checker does not follow; it reads imports beside
    that."""
    tree = ast.parse(Path(commodel.__file__).read_text())
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    declared = {name.name: statement.module for statement in block.body for name in statement.names}
    assert declared == {name: f"commodel.{module}" for name, module in commodel._MODULES.items()}
    assert set(commodel.__all__) == {"__version__", *declared}
    assert Path(commodel.__file__).with_name("py.typed").is_file()


@pytest.mark.slow
def test_a_type_checker_finds_mistakes_in_a_users_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        ROOT / "pyproject.toml",
        "--cache-dir",
        tmp_path,
        program,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    mistakes = [
        line.removeprefix(f"{program}:")
        for line in done.stdout.splitlines()
        if line.startswith(str(program))
    ]
    assert [line.partition(":")[0] for line in mistakes] == ["5", "6"], done.stdout + done.stderr
