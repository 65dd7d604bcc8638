"""The setting that a platform's file describes: where points run, and how much room there is."""

from pathlib import Path

from commodel.patterns.operations import MPI, OVERLAY
from commodel.patterns.points import Setting
from commodel.plan.config import find, load_platform
from commodel.platforms.platform import Platform


def setting_on(name: str, root: str | Path = ".") -> Setting:
    """Of a platform by its name in params/, or by an explicit path."""
    return setting_of(load_platform(find("platform", name, root)))


def setting_of(platform: Platform) -> Setting:
    return Setting(
        platform.name,
        platform.nodes,
        platform.cores,
        types=tuple(platform.types.items()),
        hosts=platform.node_names,
        substrate=OVERLAY if platform.overlay else MPI,
        fewer_cores=tuple(platform.fewer_cores.items()),
        levels=tuple((level, tuple(column)) for level, column in platform.hierarchy.settings.items()),
    )
