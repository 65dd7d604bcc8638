"""Overlay networks from Python scripts: `Network` starts a network as its front-end, `attach` joins one as a back-end.
Packets hold numbers, texts and numpy arrays, described by the format strings of workflow/native/overlay/overlay.h.

    with Network(topology="tree.top", backend=[sys.executable, __file__]) as network:
        with network.stream(filter="sum") as stream:
            stream.send("%d", 1)
            print(stream.receive(seconds=10).values)
"""

from commodel.overlay.library import OverlayError, OverlayTimeoutError
from commodel.overlay.network import GONE, BackEnd, Network, NetworkEvent, Stream, attach
from commodel.overlay.packets import Packet

__all__ = [
    "GONE",
    "BackEnd",
    "Network",
    "NetworkEvent",
    "OverlayError",
    "OverlayTimeoutError",
    "Packet",
    "Stream",
    "attach",
]
