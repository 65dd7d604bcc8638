"""Results folders from unknown sources with damaged or replaced files, and the verbs that read
them."""

import os
import shutil
from functools import lru_cache
from pathlib import Path

from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.reports import build_stored_report
from tests.fuzz import native
from tests.fuzz.mutation import edited
from tests.results.received import FOLDER, Received, make_received

REPLACEMENTS = st.sampled_from(("link", "pipe", "device", "folder", "nowhere", "circle"))


@lru_cache
def template() -> Received:
    return make_received(Path(native.folder().name) / "received", reported=False)


def received_folders() -> st.SearchStrategy[tuple]:
    """Draw a verb, and replacements of files or folders of the results: an edited text, a link, a
    pipe, a device."""
    names = {
        name.removeprefix(f"{FOLDER}/"): content for name, content in template().files().items()
    }
    attempts = f"raw/{template().batch}/state.json"
    names[attempts] = (template().results / attempts).read_bytes()
    folders = sorted({str(parent) for name in names for parent in Path(name).parents} - {"."})

    def of_file(name: str) -> st.SearchStrategy[tuple]:
        """Draw a replacement. The text of tables that one stage passes to the next is not
        edited."""
        table = name.endswith(".csv") and not name.startswith("raw/")
        return st.tuples(
            st.just(name), REPLACEMENTS if table else st.one_of(edited([names[name]]), REPLACEMENTS)
        )

    places = st.one_of(
        st.sampled_from(sorted(names)).flatmap(of_file),
        st.tuples(st.sampled_from(folders), REPLACEMENTS),
    )
    verbs = st.sampled_from(("collect", "fit", "predict", "compare", "status", "advise", "stored"))
    return st.tuples(verbs, st.lists(places, min_size=1, max_size=3))


def received_folder(given: tuple, folder: Path) -> None:
    """Run a verb on a folder with these replacements; fail if it changes a file outside the
    folder."""
    verb, replacements = given
    outside = folder / "outside"
    outside.write_text("outside")
    results = template().copy(folder / "root")
    for name, content in replacements:
        replace_path(results.results / name, content, outside)
    try:
        if verb == "stored":
            build_stored_report(results.results, anonymous=True)
            return
        done = results.invoke(verb)
        if not isinstance(done.exception, SystemExit | None):
            raise done.exception
        if done.exit_code == 2:
            (message,) = [
                line for line in done.output.splitlines() if line.startswith("commodel: ")
            ]
            raise UserError(message)
    finally:
        assert outside.read_text() == "outside"


def replace_path(path: Path, content: bytes | str, outside: Path) -> None:
    if not path.parent.is_dir() or path.parent.is_symlink():
        return  # an earlier replacement removed this folder
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == "pipe":
        os.mkfifo(path)
    elif content == "folder":
        path.mkdir()
    else:
        path.symlink_to(
            {"link": outside, "device": "/dev/zero", "nowhere": "/nowhere", "circle": path}[content]
        )
