"""The workflow as a module of another workflow, as users of the catalogue include it, and the
content of Snakemake's own report."""

import re
import shutil
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from commodel.cli import main
from commodel.platforms.tools import ROOT
from commodel.results.campaign import WORKFLOW_SETTINGS

SNAKEMAKE = [sys.executable, "-m", "snakemake"]
SETTINGS = ROOT / "config" / "README.md"


def snakemake(folder, *arguments):
    done = subprocess.run(
        [*SNAKEMAKE, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_module_example_of_the_config_readme_works_in_another_workflow(tmp_path):
    outer = re.search(r"```python\n(.+?)```", SETTINGS.read_text(encoding="utf-8"), re.DOTALL)[1]
    (tmp_path / "Snakefile").write_text(outer.replace('"cluster"', '"sample"'))
    shutil.copytree(ROOT / "params", tmp_path / "params")
    said = snakemake(tmp_path, "-n", "--cores", "1")
    assert {"network_measure", "network_fit", "network_report"} <= set(
        re.findall(r"^network_\w+", said, re.MULTILINE)
    )
    assert not (tmp_path / "results").exists()


# What snakedeploy 0.17 writes for a repository, but for the provider: this one is asked of the
# disk.
DEPLOYED = """\
from snakemake.utils import min_version


min_version("6.10.0")


configfile: "config/config.yaml"


module commodel:
    snakefile:
        "git+file://{root}/workflow/Snakefile@HEAD"
    config:
        config


use rule * from commodel
"""


@pytest.mark.slow
def test_a_deployed_workflow_plans(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("no clone")
    for name in ("config", "profiles"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow/Snakefile").write_text(DEPLOYED.format(root=ROOT))
    assert CliRunner().invoke(main, ["init", str(tmp_path)]).exit_code == 0
    said = snakemake(tmp_path, "-n", "--cores", "1", "--config", "experiment=sample")
    assert re.search(r"^report +1$", said, re.MULTILINE)


def test_the_documented_settings_equal_the_settings_read_by_the_rules():
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    read = set(re.findall(r'config\.get\("(\w+)"', rules))
    assert read == set(
        re.findall(r"^\| `(\w+)` \|", SETTINGS.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert read == set(WORKFLOW_SETTINGS)


def test_the_catalogue_s_file():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage["report"] is True
    assert "experiment=demo" in usage["mandatory-flags"]["flags"]


@pytest.mark.slow
def test_snakemake_s_report_holds_page_and_workbook(finished):
    plain = ["--snakefile", str(ROOT / "Snakefile"), "--config", "experiment=small", "--cores", "1"]
    snakemake(finished.folder, *plain, "--report", "all.html")
    text = (finished.folder / "all.html").read_text(encoding="utf-8")
    for name in ("small.xlsx", "index.html", "comparison.csv", "it needs no network"):
        assert name in text
