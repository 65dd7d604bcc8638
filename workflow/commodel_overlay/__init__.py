"""Overlay networks from Python scripts: `Network` starts a network as its front-end, `attach` joins
one as a back-end. Packets hold numbers, texts and numpy arrays, described by the format strings of
native/overlay/overlay.h.

    with Network(topology="tree.top", backend=[sys.executable, __file__]) as network:
        with network.stream(filter="sum") as stream:
            stream.send("%d", 1)
            print(stream.receive(seconds=10).values)
"""

import importlib
from typing import TYPE_CHECKING

from commodel.extensions import Extension, Native, ReportSection

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
_LIBRARY_AND_BENCHMARK = (
    "native/overlay/*.[ch]",
    "native/overlay/filters/*.[ch]",
    "native/overlay/Makefile",
    "native/bench/*.[ch]",
    "native/bench/Makefile",
)
EXTENSION = Extension(
    title="a tree of processes over TCP, which multicasts and reduces, and its benchmark",
    interface=1,
    operations=("commodel_overlay.operations",),
    substrates=("commodel_overlay.substrate",),
    tools=("commodel_overlay.mrnet",),
    native=(
        Native(
            toolchain="overlay",
            folders=("native/overlay", "native/bench"),
            sources=_LIBRARY_AND_BENCHMARK,
            core_sources=("harness/*.[ch]",),
            compiler="cc",
            sentence="The overlay network and its benchmark.",
        ),
        Native(
            toolchain="mrnet",
            folders=("native/overlay", "native/bench", "native/mrnet"),
            sources=(
                *_LIBRARY_AND_BENCHMARK,
                "native/mrnet/*.cc",
                "native/mrnet/*.[ch]",
                "native/mrnet/Makefile",
            ),
            core_sources=("harness/*.[ch]",),
            compiler="c++",
            sentence="The same benchmark for MRNet.",
            settings="commodel_overlay.mrnet:find_build_settings",
        ),
    ),
    sections={
        "Overlay processes": ReportSection(
            "commodel_overlay.report_section:make_sections", sheet="Network"
        )
    },
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
    """Return a name from its module, imported when it is first used: an extension is listed without
    numpy."""
    if name not in _MODULES:
        raise AttributeError(f"module 'commodel_overlay' has no attribute '{name}'")
    return getattr(importlib.import_module(f"commodel_overlay.{_MODULES[name]}"), name)
