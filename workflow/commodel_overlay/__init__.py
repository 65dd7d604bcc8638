"""Overlay networks from Python scripts: `Network` starts a network as its front-end, `attach` joins one as a back-end.
Packets hold numbers, texts and numpy arrays, described by the format strings of native/overlay/overlay.h.

    with Network(topology="tree.top", backend=[sys.executable, __file__]) as network:
        with network.stream(filter="sum") as stream:
            stream.send("%d", 1)
            print(stream.receive(seconds=10).values)
"""

import importlib
from typing import TYPE_CHECKING

from commodel.extensions import Extension

if TYPE_CHECKING:  # type checkers and editors find the names here
    from commodel_overlay.library import OverlayError, OverlayTimeoutError
    from commodel_overlay.network import GONE, BackEnd, Network, NetworkEvent, Stream, attach
    from commodel_overlay.packets import Packet

_MODULES = {
    "GONE": "network",
    "BackEnd": "network",
    "Network": "network",
    "NetworkEvent": "network",
    "OverlayError": "library",
    "OverlayTimeoutError": "library",
    "Packet": "packets",
    "Stream": "network",
    "attach": "network",
}
EXTENSION = Extension(
    title="a tree of processes over TCP, which multicasts and reduces, and its benchmark",
    interface=1,
    operations=("commodel_overlay.operations",),
    substrates=("commodel_overlay.substrate",),
)
__all__ = [
    "EXTENSION",
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


def __getattr__(name: str) -> object:
    """Return a name from its module, imported when it is first used: an extension is listed without numpy."""
    if name not in _MODULES:
        raise AttributeError(f"module 'commodel_overlay' has no attribute '{name}'")
    return getattr(importlib.import_module(f"commodel_overlay.{_MODULES[name]}"), name)
