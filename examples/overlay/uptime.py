"""How busy many hosts are, in the time that one takes: python uptime.py tree.top [ssh {host}]

The same script is the front-end and, started by it, the back-end on each host of the tree.
`commodel export mrnet balanced:8x8 --hosts hosts.txt -o tree.top` writes one; without a command
that reaches a host all is started here.
"""

import os
import sys
from pathlib import Path

from commodel_overlay import Network, OverlayError, attach

LOAD, HOST = 1, 2  # what a back-end is asked for


def back_end() -> None:
    with attach() as network:
        for question, stream in network:
            if question.tag == LOAD:
                stream.send("%lf %lf %lf", *os.getloadavg())
            else:
                stream.send("%s %lf", os.uname().nodename, os.getloadavg()[0])


def front_end(topology: str, launch: list[str]) -> None:
    command = [sys.executable, str(Path(__file__).resolve())]
    with Network(topology, backend=command, launch=launch or None) as network:
        loads, hosts = network.stream(filter="average"), network.stream(filter="concat")
        loads.send("", tag=LOAD)
        hosts.send("", tag=HOST)
        mean = loads.receive(seconds=30)
        print(
            f"{mean.leaves} hosts, load average: {', '.join(f'{load:.2f}' for load in mean.values)}"
        )
        names, load = hosts.receive(seconds=30).values
        for place in load.argsort()[::-1][:5]:
            print(f"{load[place]:8.2f}  {names[place]}")


if __name__ == "__main__":
    if "OVERLAY_ATTACH" in os.environ:
        back_end()
    elif len(sys.argv) < 2:
        sys.exit(__doc__)
    else:
        try:
            front_end(sys.argv[1], sys.argv[2:])
        except OverlayError as error:
            sys.exit(f"uptime: {error.message}")
