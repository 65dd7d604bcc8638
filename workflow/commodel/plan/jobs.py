"""What a job needs that measures a batch: how its programs are started, which they are, and which nodes it gets."""

from pathlib import Path

from commodel.plan.config import planned_platform
from commodel.platforms.build import COMPILERS, programs
from commodel.platforms.launchers import Launcher, launcher, toolchain
from commodel.platforms.slurm import constraint
from commodel.platforms.tools import find as find_tool
from commodel.platforms.tools import workshop
from commodel.records import Plan


def constraint_of(plan: Plan, batch: str) -> str:
    """Which features the nodes of a batch's Slurm job must have; nothing where nodes are alike."""
    wanted = plan.batch(batch)
    return constraint(planned_platform(wanted.platform), wanted.nodes)


def launcher_of(plan: Plan, batch: str) -> Launcher:
    return launcher(plan.platforms[plan.batch(batch).platform].launcher)


def programs_of(plan: Plan, batch: str) -> str:
    """The file whose age is that of the programs of a batch: the platform's image, else the mark of their build."""
    platform = planned_platform(plan.batch(batch).platform)
    return str(platform.image.file if platform.image else programs(workshop(), toolchain(platform)) / "built")


def missing_compiler(plan: Plan, batch: str) -> str:
    """What the programs of a batch are still to be compiled with and is not here; empty where nothing is missing."""
    if Path(programs_of(plan, batch)).exists():
        return ""
    compiler = COMPILERS[toolchain(planned_platform(plan.batch(batch).platform))]
    return "" if find_tool(compiler) else compiler
