"""SVG and PNG pictures of Vega-Lite specifications (`render_svg`, `render_png`), drawn by a
separate process (`scripts.py`). If that process fails, a report is written without drawings.
`bundle_scripts` returns the scripts of a page, and `write_pictures` writes all charts of a report
as files."""

import atexit
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from commodel.errors import UserError
from commodel.files.atomic import write_atomically, write_text
from commodel.files.safe_reading import MIB, read_text
from commodel.reports.elements import Chart, FirstScreen, Report, label_platform
from commodel.reports.pictures import scripts
from commodel.reports.pictures.specifications import (
    add_title,
    specify_grid,
    specify_lines,
    specify_tiling,
)
from commodel.sources import ROOT

TAG = re.compile(r"<[a-zA-Z][^<>]*>")  # texts have &lt; instead of <
CLIP_ID = re.compile(r'(id="|url\(#)clip(\d+)')
# a circle in the form that Vega writes
CIRCLE_PATH = re.compile(r'<path (.*)d="M([0-9.]+),0A\2,\2,0,1,1,-\2,0A\2,\2,0,1,1,\2,0"(.*)/>')
DEFAULT_STROKE_WIDTH = ' stroke-width="2"'  # removed where there is no stroke
MAX_SCRIPT_BYTES = 8 * MIB  # of the scripts of a page
DRAWING_PROGRAM = Path(scripts.__file__)
MAX_DRAWING_SECONDS = 120.0  # seconds of one chart, or until the process has started
MINIMAL_CHART = {"data": {"values": []}, "mark": "point"}  # tests whether charts can be drawn


class DrawingError(UserError):
    """Raised if charts cannot be drawn on this machine."""


class _Drawer:
    """The process that draws, started for the first chart. A thread waits for drawings that are
    requested early."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.obstacle = ""  # the reason why it cannot draw; empty if it can
        self.lock = threading.Lock()  # one request at a time
        self.early_requests: deque[bytes] = deque()
        self.early_drawings: dict[bytes, bytes] = {}

    def draw(self, kind: str, specification: dict) -> bytes:
        request = _encode_request(kind, specification)
        with self.lock:
            if request in self.early_drawings:
                return self.early_drawings.pop(request)
            if request in self.early_requests:
                self.early_requests.remove(request)
            if self.obstacle:
                raise DrawingError(self.obstacle)
            try:
                return self._send_request(request)
            except (OSError, ValueError) as error:
                self.obstacle = self._explain(error)
                self._end_process()
                raise DrawingError(self.obstacle) from None

    def draw_early(self, requests: Iterable[tuple[str, dict]]) -> None:
        """Draw while this process has other work. Each drawing is kept until it is fetched
        (`draw`)."""
        wanted = dict.fromkeys(_encode_request(*request) for request in requests)
        with self.lock:
            known = {*self.early_requests, *self.early_drawings}
            self.early_requests.extend(request for request in wanted if request not in known)
        threading.Thread(target=self._fetch_early_drawings, daemon=True).start()

    def _fetch_early_drawings(self) -> None:
        while True:
            with self.lock:
                if not self.early_requests or self.obstacle:
                    return
                request = self.early_requests.popleft()
                try:
                    self.early_drawings[request] = self._send_request(request)
                except (OSError, ValueError):  # explained where a drawing is needed
                    return

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self.process is not None:
            return
        self.process = subprocess.Popen(
            [sys.executable, os.fspath(DRAWING_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(self.close)

    def _send_request(self, request: bytes) -> bytes:
        self.start()
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        watch = threading.Timer(MAX_DRAWING_SECONDS, process.kill)
        watch.start()
        try:
            process.stdin.write(request)
            process.stdin.flush()
            count = int(process.stdout.readline())
            answer = process.stdout.read(count)
        finally:
            watch.cancel()
        if len(answer) < count:
            raise ValueError("it ended")
        return answer

    def _explain(self, error: Exception) -> str:
        if self.process is None:
            return f"the process that draws did not start: {error}"
        self.process.kill()
        code = self.process.wait()
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            return (
                f"address space is limited to {limit >> 20} MiB (`ulimit -v`), and V8, which "
                "draws, reserves more"
            )
        ending = (
            f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        )
        return f"the process that draws {ending}"

    def close(self) -> None:
        self.early_requests.clear()
        if self.process is not None:
            self.process.kill()  # ends the request of the thread, which has the lock
        with self.lock:
            self.early_drawings.clear()
            self._end_process()

    def _end_process(self) -> None:
        process = self.process
        self.process = None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe:
                # A process that ended has not read what was written for it.
                with suppress(OSError):
                    pipe.close()
        process.kill()
        process.wait()


def _encode_request(kind: str, specification: dict) -> bytes:
    return json.dumps([kind, specification]).encode() + b"\n"


_DRAWER = _Drawer()


def start_drawing() -> None:
    """Start the process that draws, so that it is ready when the first chart is drawn. A failure
    shows there."""
    with suppress(OSError):
        _DRAWER.start()


def draw_early(requests: Iterable[tuple[str, dict]]) -> None:
    """Draw charts, given by kind (`svg`, `png`) and specification, while this process has other
    work."""
    _DRAWER.draw_early(requests)


def end_drawing() -> None:
    """End the process that draws; the next chart starts another one."""
    _DRAWER.close()


def find_obstacle() -> str:
    """Return the reason why charts cannot be drawn on this machine; empty if they can."""
    try:
        _DRAWER.draw("svg", MINIMAL_CHART)
    except DrawingError as error:
        return error.message
    return ""


def render_svg(spec: dict) -> str:
    """Return a drawing as SVG. Vega numbers clip paths over all drawings of a process; they are
    renumbered from 0 in each drawing. Paths of dots become circles without the attributes of an
    invisible edge, because dots are a third of the bytes of a page's pictures."""
    text = _DRAWER.draw("svg", spec).decode()
    clip_numbers: dict[str, int] = {}

    def shorten(tag: re.Match) -> str:
        short_tag = CLIP_ID.sub(
            lambda clip: f"{clip[1]}clip{clip_numbers.setdefault(clip[2], len(clip_numbers))}",
            tag[0],
        )
        short_tag = (
            short_tag if " stroke=" in short_tag else short_tag.replace(DEFAULT_STROKE_WIDTH, "")
        )
        return CIRCLE_PATH.sub(r'<circle \1r="\2"\3/>', short_tag)

    return TAG.sub(shorten, text)


def render_png(spec: dict) -> bytes:
    return _DRAWER.draw("png", spec)


@cache
def bundle_scripts() -> str:
    """Return the scripts of a page; empty if they cannot be bundled. In a clone they are cached in
    build/; an installed package contains them."""
    build = ROOT / "build"
    cached = build / scripts.BUNDLE_NAME
    if cached.is_file():
        return read_text(cached, MAX_SCRIPT_BYTES, "the scripts that vl-convert bundles")
    try:
        text = _DRAWER.draw("bundle", {}).decode()
    except DrawingError:
        return ""
    if os.access(build, os.W_OK):
        write_text(cached, text)
    return text


MAX_NAME_LENGTH = 80  # characters of a file's name


def write_pictures(report: Report, folder: Path, every: bool = False) -> list[Path]:
    """Write the charts of the first screen, or every chart, and return the paths. A file is named
    after its content: `predicted-mycluster.svg`."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    used_names: set[str] = set()
    for name, specification in list_pictures(report, every):
        stem = choose_file_name(name, used_names)
        svg_path = folder / f"{stem}.svg"
        png_path = folder / f"{stem}.png"
        write_text(svg_path, render_svg(specification))
        with write_atomically(png_path) as stream:
            stream.write(render_png(specification))
        written += [svg_path, png_path]
    return written


def list_drawings(report: Report, every: bool = False) -> Iterator[tuple[str, dict]]:
    """Yield the drawings that `write_pictures` needs, by kind and specification."""
    for _, specification in list_pictures(report, every):
        yield "svg", specification
        yield "png", specification


def list_pictures(report: Report, every: bool = False) -> Iterator[tuple[str, dict]]:
    """Yield names and specifications, those of the first screen first."""
    shown = set()
    for screen in report.screens:
        yield from list_maps(screen)
        for chart in (screen.scatter, screen.times):
            if chart is not None:
                shown.add(chart.name)
                yield chart.name, specify_chart(chart)
    for chart in report.charts if every else ():
        if chart.name not in shown:
            yield chart.name, specify_chart(chart)
    for content in report.tilings if every else ():
        yield content.name, add_title(specify_tiling(content), content.title, content.note)


def list_maps(screen: FirstScreen) -> Iterator[tuple[str, dict]]:
    """Yield the maps of the fastest alternatives and of the errors. Their names do not depend on
    results, as their titles do."""
    platform = label_platform(screen.platform, {screen.platform} if screen.simulated else set())
    for name, content in (("fastest", screen.fastest), ("errors", screen.errors)):
        if content.cells:
            title = f"{content.title}: {platform}"
            yield f"{name} {screen.platform}", add_title(specify_grid(content), title, content.note)


def specify_chart(chart: Chart) -> dict:
    return add_title(specify_lines(chart), chart.title, chart.note)


def choose_file_name(name: str, used_names: set[str]) -> str:
    """Return a safe file name of letters, digits and hyphens; a number is added to a name that is
    taken."""
    base_name = (
        re.sub(r"[^a-z0-9]+", "-", name.lower().encode("ascii", "ignore").decode()).strip("-")[
            :MAX_NAME_LENGTH
        ]
        or "chart"
    )
    stem = base_name
    number = 1
    while stem in used_names:
        number += 1
        stem = f"{base_name}-{number}"
    used_names.add(stem)
    return stem
