"""Write the notes of a release from CHANGELOG.md, and print what is left to do by hand.

python packaging/release.py FOLDER    the folder has the built distributions"""

import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEADING = re.compile(r"^## (\S+)(?: \((.+)\))?$", re.MULTILINE)


def extract_notes(changelog: str, version: str) -> tuple[str, str]:
    """Return the section of a version, and the remark in its heading, such as `unreleased`."""
    headings = list(HEADING.finditer(changelog))
    for number, heading in enumerate(headings):
        if heading[1] == version:
            following = headings[number + 1 :]
            end = following[0].start() if following else len(changelog)
            return changelog[heading.end() : end].strip() + "\n", heading[2] or ""
    found = ", ".join(heading[1] for heading in headings)
    raise SystemExit(f"CHANGELOG.md: found versions {found}, wanted a section {version}")


def read_version() -> str:
    text = (ROOT / "workflow/commodel/__init__.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert match is not None
    return match[1]


def main(folder: Path) -> None:
    version = read_version()
    notes, remark = extract_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    (folder / "notes.md").write_text(notes, encoding="utf-8")
    files = sorted(path for path in folder.iterdir() if path.suffix in (".gz", ".whl"))
    # an index takes no wheel with a library for just any Linux
    uploaded = [path for path in files if "-linux_" not in path.name]
    print(f"release {version}: notes in {folder / 'notes.md'}")
    for path in files:
        print(f"  {path.name}  sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
    if remark:
        print(f"CHANGELOG.md says '{version} ({remark})': write the date before you upload")
    print(f"nothing was uploaded; to do so: twine upload {' '.join(map(str, uploaded))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
