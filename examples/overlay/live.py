"""Filters at every level, which change while the stream runs: python live.py TOPOLOGY
./live_filters.so

The filters are the functions of live_filters.c; live.c is the same tool in C. The last stream does
not wait for its slowest back-ends: a function there makes a wave as soon as two children of a
process have answered.
"""

import os
import sys
import time
from pathlib import Path

from commodel_overlay import Network, OverlayError, attach

SLOW = 1  # tag: a question whose answer takes back-end 0 a while


def back_end() -> None:
    with attach() as network:
        for question, stream in network:
            if question.tag == SLOW and network.number == 0:
                time.sleep(1)
            stream.send("%lf", network.number + question.values[0] / 1e3)


def front_end(topology: str, filters: str) -> None:
    command = [sys.executable, str(Path(__file__).resolve())]
    with Network(topology, backend=command) as network:
        stream = network.stream(
            filter=f"{filters}@peaks:0", leaf=f"{filters}@scaled", down=f"{filters}@hops"
        )
        for limit in ("0", "1500", "2500"):
            stream.set_argument(limit)
            stream.send("%d", 0)
            answer = stream.receive(seconds=30)
            now, so_far = answer.values
            print(f"{limit} ms: {now} of {answer.leaves} above, {so_far} so far")
        quick = network.stream(filter="max", root="concat", sync=f"{filters}@quorum:1")
        quick.send("%d", 0, tag=SLOW)
        print(
            f"first: the maximum {quick.receive(seconds=30).values[0][0]:.0f}, without the slow one"
        )


if __name__ == "__main__":
    if "OVERLAY_ATTACH" in os.environ:
        back_end()
    elif len(sys.argv) < 3:
        sys.exit(__doc__)
    else:
        try:
            front_end(*sys.argv[1:])
        except OverlayError as error:
            sys.exit(f"live: {error.message}")
