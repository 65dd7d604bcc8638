"""Back-ends that come and go while a network runs: python joining.py TOPOLOGY FILE

The connection file FILE tells them where to attach: python joining.py FILE NUMBER, once for each
leaf of the topology. joining.c is the same tool in C.
"""

import sys

from commodel_overlay import Network, OverlayError, OverlayTimeoutError, attach


def back_end(file: str, number: int) -> None:
    with attach(file, number) as network:
        for _, stream in network:
            stream.send("%d", 1)


def front_end(topology: str, file: str) -> None:
    with Network(topology, connection_file=file, join=True) as network:
        while network.lost:
            try:
                network.receive(seconds=0.1)  # joins and losses are noticed meanwhile
            except OverlayTimeoutError:
                print_events(network)
        print_events(network)


def print_events(network: Network) -> None:
    for event in network.events():
        if event.kind == "ended":
            continue
        with network.stream(filter="sum") as stream:  # over all that are there by now
            stream.send("", tag=0)
            (count,) = stream.receive(seconds=30).values
            print(f"{event.kind}: {count} of {len(network)} answer")


if __name__ == "__main__":
    try:
        if len(sys.argv) < 3:
            sys.exit(__doc__)
        elif sys.argv[2].isdigit():
            back_end(sys.argv[1], int(sys.argv[2]))
        else:
            front_end(*sys.argv[1:])
    except OverlayError as error:
        sys.exit(f"joining: {error.message}")
