"""The snakemake command for a folder's results with commodel's own workflow and profiles, and how it is waited for."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from commodel.toolchain import ROOT


def command(snakefile: str, settings: Mapping[str, object], cores: int | None, profile: str | None) -> list[str]:
    found = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(ROOT / snakefile),
        "--directory",
        str(Path.cwd()),
    ]
    found += ["--workflow-profile", str(ROOT / "profiles" / "default")]
    if profile:
        own = ROOT / "profiles" / profile
        found += ["--profile", str(own) if own.is_dir() else profile]
    given = [f"{name}={_text(value)}" for name, value in settings.items() if value is not None]
    return [*found, "--config", *given, "--cores", str(cores or "all")]


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, list) else str(value)


def wait(command: list[str]) -> int:
    """Ctrl-C reaches Snakemake too; it stops its jobs, and only then is there anything to return."""
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue
