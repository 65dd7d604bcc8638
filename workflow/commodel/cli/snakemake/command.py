"""The snakemake command for a workflow of ours: its settings, and whose profile a name means."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from platformdirs import AppDirs

from commodel.errors import UserError, suggest
from commodel.platforms.tools import ROOT


def command(snakefile: str, settings: Mapping[str, object], cores: int | None, profile: str | None) -> list[str]:
    words = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(ROOT / snakefile),
        "--directory",
        str(Path.cwd()),
    ]
    words += ["--workflow-profile", str(ROOT / "profiles" / "default")]
    words += ["--nocolor"] if os.environ.get("NO_COLOR") else []
    if profile:
        words += ["--profile", profile_named(profile)]
    given = [f"{name}={_text(value)}" for name, value in settings.items() if value is not None]
    return [*words, "--config", *given, "--cores", str(cores or "all")]


def profile_named(name: str) -> str:
    """What Snakemake is told for a profile: one of the project's or commodel's, else a path, or one of the user's or
    the site's."""
    if own := of_project(name):
        return str(own)
    theirs = AppDirs("snakemake", "snakemake")
    if any((Path(place) / name).exists() for place in (Path.cwd(), theirs.user_config_dir, theirs.site_config_dir)):
        return name
    brought = [path.name for path in (ROOT / "profiles").iterdir() if path.is_dir() and path.name != "default"]
    raise UserError(f"unknown profile '{name}'; {suggest(name, brought)}")


def of_project(name: str) -> Path | None:
    """The folder of a profile: the project's, else the one that commodel brings."""
    folders = (Path.cwd() / "profiles" / name, ROOT / "profiles" / name)
    return next((folder for folder in folders if (folder / "config.yaml").is_file()), None)


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, list) else str(value)
