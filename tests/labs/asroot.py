#!/usr/bin/env python3
"""Run a command in a user namespace with the same users and every capability.

Root of this machine may lack capabilities, but apptainer requests all of them when root starts it.
Needs root outside: only root may map many users."""

import ctypes
import os
import sys
from pathlib import Path

CLONE_NEWUSER = 0x10000000


def enter() -> None:
    """Enter a user namespace. A child process outside of the namespace writes its user maps."""
    process, (go, gone) = os.getpid(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(gone)
        os.read(go, 1)
        for kind in ("uid", "gid"):
            Path(f"/proc/{process}/{kind}_map").write_text("0 0 65536\n")
        os._exit(0)
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "no user namespace can be made here")
    os.close(gone)
    if os.waitpid(child, 0)[1]:
        raise SystemExit("asroot.py: the users could not be mapped")


if __name__ == "__main__":
    enter()
    os.execvp(sys.argv[1], sys.argv[1:])
