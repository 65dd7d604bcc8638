"""Two threads that use one network, each with a stream of its own: python threads.py TOPOLOGY

One asks for the largest load of all hosts again and again, the other once for all names. threads.c
is the same tool in C.
"""

import os
import sys
from pathlib import Path
from threading import Thread

from commodel_overlay import Network, OverlayError, attach

LOAD, NAME = 1, 2  # tags


def back_end() -> None:
    with attach() as network:
        for question, stream in network:
            if question.tag == LOAD:
                stream.send("%lf", os.getloadavg()[0])
            else:
                stream.send("%s", f"back-end {network.number}")


def watch(network: Network, found: dict) -> None:
    with network.stream(filter="max") as stream:
        for _ in range(100):
            stream.send("", tag=LOAD)
            found["load"] = stream.receive(seconds=30).values[0]


def collect(network: Network, found: dict) -> None:
    with network.stream(filter="concat") as stream:
        stream.send("", tag=NAME)
        found["names"] = stream.receive(seconds=30).values[0]


def front_end(topology: str) -> None:
    found: dict = {}
    with Network(topology, backend=[sys.executable, str(Path(__file__).resolve())]) as network:
        network.share()  # before the other thread begins
        threads = [Thread(target=work, args=(network, found)) for work in (watch, collect)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(
        f"{len(found['names'])} names, the last {found['names'][-1]}; load average at most {found['load']:.2f}"
    )


if __name__ == "__main__":
    if "OVERLAY_ATTACH" in os.environ:
        back_end()
    elif len(sys.argv) < 2:
        sys.exit(__doc__)
    else:
        try:
            front_end(sys.argv[1])
        except OverlayError as error:
            sys.exit(f"threads: {error.message}")
