"""Start a command several times, each with its rank in PMI's variables, and wait for all: a
launcher of one step.

python many.py TASKS COMMAND …"""

import os
import signal
import subprocess
import sys


def main(tasks: int, command: list[str]) -> int:
    ranks = [
        subprocess.Popen(command, env=os.environ | {"PMI_RANK": str(rank)}) for rank in range(tasks)
    ]
    signal.signal(signal.SIGTERM, lambda *_: [process.terminate() for process in ranks])
    return max([process.wait() for process in ranks], default=0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
