"""The notebooks of examples/ run as they are, and are stored without outputs."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.test_contract import Project, project  # noqa: F401
from tests.documented import ROOT

QUESTIONS = (  # of README: the call in the notebook, and the verb that says the same
    (
        "print(advice)",
        "advise --platform fast-ethernet-32 --operation allreduce --ranks 16 --bytes 64KiB",
    ),
    (
        "print(prediction)",
        "predict --platform fast-ethernet-32 --operation bcast --ranks 16 --bytes 64KiB",
    ),
)


def run_notebook(path: Path, folder: Path, tmp_path: Path) -> dict[str, list]:
    """Return the outputs of each cell by its last line. The kernel uses file sockets, since
    programs of other tests might take a chosen TCP port."""
    from jupyter_client import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.util import run_sync
    from nbformat import reads

    notebook = reads(path.read_text(encoding="utf-8"), as_version=4)
    kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(tmp_path / "kernel"))
    try:
        NotebookClient(
            notebook, km=kernel, timeout=300, resources={"metadata": {"path": folder}}
        ).execute()
    finally:
        run_sync(kernel.shutdown_kernel)(now=True)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not [
        output for cell in cells for output in cell.outputs if output["output_type"] == "error"
    ]
    return {cell.source.splitlines()[-1]: cell.outputs for cell in cells}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_notebooks_are_stored_without_outputs(path):
    assert not [
        cell
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell.get("outputs")
    ]


def test_the_notebook_of_a_table_runs_without_errors(project: Project, tmp_path):  # noqa: F811
    """The table in the folder of the project has a part of the rows."""
    folder = project.folder / "examples"
    outputs = run_notebook(ROOT / "examples" / "notebook.ipynb", folder, tmp_path)
    assert any(
        "vega" in output.get("data", {}).get("text/html", "")
        for cell in outputs.values()
        for output in cell
    )


def test_the_notebook_of_a_campaign_answers_as_the_commands_of_readme(project: Project, tmp_path):  # noqa: F811
    copy = project.folder / "examples" / "campaign.ipynb"
    shutil.copy(ROOT / "examples" / "campaign.ipynb", copy)
    outputs = run_notebook(copy, copy.parent, tmp_path)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for cell, command in QUESTIONS:
        assert f"commodel {command}" in readme
        printed = "".join(
            output["text"] for output in outputs[cell] if output["output_type"] == "stream"
        )
        answer_and_table, _ = printed.split("\n1. ", maxsplit=1)  # the verb shortens some notes
        assert answer_and_table in project.verb(*command.split())
    assert (project.folder / "reports/sample/index.html").is_file()
