"""The GPUs of this machine on which processes of a layout may compute, for `commodel doctor`."""

from commodel.platforms.build import get_program_folder
from commodel.platforms.tools import find_build_root, run_tool

SECONDS = 30  # that drivers may take


def describe_devices() -> list[str]:
    """Return a sentence on each device, or why there is none."""
    program = get_program_folder(find_build_root(), "mpi") / "devices"
    if not program.exists():
        return ["GPUs are listed after `commodel build mpi`."]
    reply = run_tool([str(program)], SECONDS)
    if reply.failure:
        return [f"GPUs are unknown: {reply.failure}."]
    return [_describe(line) for line in reply.output.splitlines()]


def _describe(line: str) -> str:
    """`cuda 0: …` is a device, `cuda: …` is why there is none."""
    name, _, text = line.partition(": ")
    return f"GPU {name}: {text}." if " " in name else f"No GPU by {name}: {text}."
