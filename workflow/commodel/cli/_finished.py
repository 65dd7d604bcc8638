"""Families that an earlier `fit --points` has finished: a fit that was stopped goes on with the next one."""

import hashlib
from dataclasses import replace
from pathlib import Path

from commodel import sources
from commodel.errors import UserError
from commodel.files.atomic import MAX_FILE
from commodel.files.sets import read_parameters
from commodel.files.text import read_bytes
from commodel.parameters import ParameterSet

FITTED_TO = "fitted_to"


def digest_of(table: Path, family: str, *how: str | None) -> str:
    """Of the table and of all that a set fitted to it rests on: how, the family's code, and what algorithms send."""
    hashed = hashlib.sha256(read_bytes(table, MAX_FILE, "a smaller table"))
    for word in how:
        hashed.update(f"\0{word or ''}".encode())
    named = {Path(path) for path in sources.sources("fit.settings", f"models.families.{family}")}
    for path in sorted(named.union((sources.HERE / "patterns").rglob("*.py"))):  # a registry finds these by the folder
        hashed.update(b"\0%b\0%b" % (path.relative_to(sources.HERE).as_posix().encode(), path.read_bytes()))
    return hashed.hexdigest()


def finished(path: Path, digest: str) -> ParameterSet | None:
    """The set that lies there, if it is of this very fit."""
    if not path.is_file():
        return None
    try:
        parameters = read_parameters(path)
    except UserError:  # whatever it is, it is not ours
        return None
    return parameters if parameters.provenance.get(FITTED_TO) == digest else None


def signed(parameters: ParameterSet, digest: str) -> ParameterSet:
    return replace(parameters, provenance={**parameters.provenance, FITTED_TO: digest})
