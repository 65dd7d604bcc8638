"""make axe: axe-core over a page in Chromium, wide, narrow and dark, with and without filters. It
comes from npm into build/axe, for developers only. Exit code 1 where something serious is found.

python -m tests.labs.axe reports/demo/index.html
"""

import html
import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

AXE = Path("build/axe/node_modules/axe-core/axe.min.js")
SERIOUS = ("serious", "critical")
FILTERS = "#operation=bcast&model=loggp"
CASES = (("wide", 1280, "", False), ("narrow", 390, "", False), ("dark", 1280, "", True))
CASES += (("filtered", 1280, FILTERS, False), ("narrow, dark, filtered", 390, FILTERS, True))
RUN = """<script>addEventListener("load", () => setTimeout(async () => {
  const {violations, incomplete} = await axe.run(document, {preload: false, resultTypes: ["violations", "incomplete"]});
  const short = ({id, impact, help, nodes}) =>
    ({id, impact, help, count: nodes.length, at: nodes[0].html.slice(0, 160)});
  const [wide, rows] = [innerWidth, filteredTable.visibleRows?.length ?? 0];
  const said = {wide, rows, violations: violations.map(short), unsure: incomplete.map(short)};
  parent.postMessage(JSON.stringify(said), "*");
}, 4000))</script>"""
FRAME = """<!DOCTYPE html><body><iframe src="page.html{hash}" width="{wide}" height="900"></iframe><pre></pre><script>
addEventListener("message", ({{data}}) => {{ document.querySelector("pre").textContent = "RESULT" + data + "END"; }});
</script>"""


def run_axe(page: str, folder: Path, browser: str, wide: int, address: str, dark: bool) -> dict:
    """Return axe's report on a page. The page is in a frame, since a window of Chromium has at
    least 500 pixels and a phone has fewer."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    (folder / "frame.html").write_text(
        FRAME.format(hash=html.escape(address), wide=wide), encoding="utf-8"
    )
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder}/profile",
        "--window-size=1400,1000",
    ]
    flags += [
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--virtual-time-budget=60000",
        "--dump-dom",
    ]
    command = [browser, *flags, (folder / "frame.html").as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    return json.loads(html.unescape(dom.partition("RESULT")[2].partition("END</pre>")[0]))


def main(file: str) -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser or not AXE.exists():
        print(f"axe: found no {'Chromium' if not browser else AXE}", file=sys.stderr)
        return 2
    page = Path(file).read_text(encoding="utf-8")
    scripts = f"<script>{AXE.read_text(encoding='utf-8')}</script>{RUN}"
    page = page.removesuffix("</body>\n</html>") + scripts + "</body>\n</html>"
    serious = 0
    for name, wide, address, dark in CASES:
        with TemporaryDirectory() as folder:
            findings = run_axe(page, Path(folder), browser, wide, address, dark)
        print(
            f"{name}: {findings['wide']} pixels, {findings['rows']} rows, {len(findings['violations'])} violations"
        )
        for entry in findings["violations"]:
            serious += entry["impact"] in SERIOUS
            print(
                f"  {entry['impact']}: {entry['id']}, {entry['count']} times: {entry['help']}\n    {entry['at']}"
            )
        for entry in findings["unsure"]:
            print(f"  not sure: {entry['id']}, {entry['count']} times")
    return int(serious > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
