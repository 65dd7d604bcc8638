"""A campaign that is being stopped leaves a file. Jobs that have just begun look for it, and end as after Ctrl-C."""

import os
import signal
import sys
from pathlib import Path

STOP_FILE = "COMMODEL_STOP_FILE"  # names the file that is there once the campaign is being stopped


def heed_stop() -> None:
    """Ends this process as Ctrl-C would if its campaign is being stopped: a job that starts at that very moment is not
    among those that get the signal, or that Slurm is told to cancel."""
    if (path := os.environ.get(STOP_FILE)) and Path(path).exists():
        sys.exit(128 + signal.SIGINT)
