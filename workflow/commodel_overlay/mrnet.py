"""MRNet: the folder of its installation, against which the benchmark is compiled."""

from pathlib import Path

from commodel.errors import UserError
from commodel.platforms.tools import Tool, find_tool

# the program of MRNet's internal processes, in the folder bin of its installation
COMMNODE = "mrnet_commnode"
PARTS = ("include/mrnet/MRNet.h", "lib/libmrnet.*", "lib/libxplat.*")
TOOL = Tool(
    name="MRNet",
    program=COMMNODE,
    version_arguments=("--version",),
    purpose="the overlay network MRNet (substrate: mrnet)",
    installation="github.com/dyninst/mrnet",
)


def find_build_settings() -> dict[str, str]:
    """Return variables of make for the programs that use MRNet."""
    return {"MRNET": str(_find_folder()), "SUBSTRATE": "MRNet", "PROGRAM": "mrnet-bench"}


def _find_folder() -> Path:
    """Return the folder where MRNet is installed."""
    wanted = (
        "wanted MRNet as its make install lays it out: bin, include and lib in one folder, whose "
        "bin is on PATH"
    )
    commnode = find_tool(COMMNODE)
    if commnode is None:
        raise UserError(f"found no {COMMNODE} on PATH, {wanted}; see commodel doctor")
    folder = Path(commnode).resolve().parents[1]
    for part in PARTS:
        if not any(folder.glob(part)):
            raise UserError(f"{folder}: found no {part}, {wanted}")
    return folder
