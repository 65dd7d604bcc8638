"""The programs that commodel uses, from Python: `doctor` returns which of them are installed
here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commodel.api.result import Answer
from commodel.extensions import InstalledExtension, list_extensions
from commodel.platforms.tools import TOOLS, Tool, find_tool, read_version
from commodel.platforms.transport import detect_node_transport
from commodel.registry import discover_in_extensions

MISSING = "missing"
MAX_VERSION = 45  # characters of a version


@dataclass(frozen=True, eq=False, repr=False)
class Programs(Answer):
    """The programs that commodel uses: a row for each, with its version, its place and its
    purpose."""

    @property
    def missing(self) -> list[str]:
        """The names of the programs that are not installed."""
        return [row["tool"] for row in self.rows if row["found"] == MISSING]


def doctor() -> Programs:
    """List the programs that commodel uses, and which of them are missing. Printed, the result is
    what `commodel doctor` prints.

    >>> doctor().frame  # doctest: +SKIP
    """
    rows = [_describe_tool(tool) for tool in (*TOOLS, *discover_in_extensions("TOOL").values())]
    missing = [row["tool"] for row in rows if row["found"] == MISSING]
    missing_text = f"; missing: {', '.join(missing)}" if missing else ""
    sentence = f"{len(rows) - len(missing)} of {len(rows)} programs are installed{missing_text}."
    transport = detect_node_transport()
    notes = [f"Messages between two ranks here: {transport}."] if transport else []
    cores = os.cpu_count()
    notes.append(
        f"{cores} cores here: measure with at most {cores} ranks, because MPI libraries busy-wait."
    )
    notes += [
        _describe_extension(installed)
        for installed in list_extensions()
        if installed.distribution != "commodel"
    ]
    provenance = [
        {"source": row["where"], "tool": row["tool"]} for row in rows if row["found"] != MISSING
    ]
    return Programs(rows, sentence, notes, provenance)


def _describe_extension(installed: InstalledExtension) -> str:
    """Return a sentence on an extension that another package brings."""
    problem = f", not used: {installed.problem}" if installed.problem else ""
    return (
        f"Extension {installed.name} of package {installed.distribution} "
        f"{installed.version}{problem}."
    )


def _describe_tool(tool: Tool) -> Mapping[str, Any]:
    path = find_tool(tool.program)
    version = read_version([path, *tool.version_arguments]) if path else MISSING
    purpose = tool.purpose if path else f"{tool.purpose}; install: {tool.installation}"
    return {
        "tool": tool.name,
        "found": version[:MAX_VERSION],
        "where": path or "-",
        "needed for": purpose,
    }
