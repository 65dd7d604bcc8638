"""Results of strangers as a whole folder: what is damaged or planted in it, and what the verbs make of that."""

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

PLANTED = st.sampled_from(("link", "pipe", "device", "folder", "nowhere", "circle"))


@lru_cache
def template() -> Received:
    return make_received(Path(native.folder().name) / "received", reported=False)


def received_folders() -> st.SearchStrategy[tuple]:
    """A verb, and a file or folder of the results that is something else: an edited text, a link, a pipe, a device."""
    names = {name.removeprefix(f"{FOLDER}/"): content for name, content in template().files().items()}
    story = f"raw/{template().batch}/state.json"
    names[story] = (template().results / story).read_bytes()
    folders = sorted({str(parent) for name in names for parent in Path(name).parents} - {"."})

    def of_file(name: str) -> st.SearchStrategy[tuple]:
        """Tables that stages hand on keep their columns: only what stands in other files is edited."""
        table = name.endswith(".csv") and not name.startswith("raw/")
        return st.tuples(st.just(name), PLANTED if table else st.one_of(edited([names[name]]), PLANTED))

    places = st.one_of(st.sampled_from(sorted(names)).flatmap(of_file), st.tuples(st.sampled_from(folders), PLANTED))
    verbs = st.sampled_from(("collect", "fit", "predict", "compare", "status", "advise", "stored"))
    return st.tuples(verbs, st.lists(places, min_size=1, max_size=3))


def received_folder(given: tuple, folder: Path) -> None:
    """Nothing outside is changed, whatever a verb meets."""
    verb, planted = given
    precious = folder / "precious"
    precious.write_text("precious")
    here = template().copy(folder / "root")
    for name, what in planted:
        plant(here.results / name, what, precious)
    try:
        if verb == "stored":
            build_stored_report(here.results, anonymous=True)
            return
        done = here.invoke(verb)
        if not isinstance(done.exception, SystemExit | None):
            raise done.exception
        if done.exit_code == 2:
            (complaint,) = [line for line in done.output.splitlines() if line.startswith("commodel: ")]
            raise UserError(complaint)
    finally:
        assert precious.read_text() == "precious"


def plant(place: Path, what: bytes | str, precious: Path) -> None:
    if not place.parent.is_dir() or place.parent.is_symlink():
        return  # another one took its place
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    if isinstance(what, bytes):
        place.write_bytes(what)
    elif what == "pipe":
        os.mkfifo(place)
    elif what == "folder":
        place.mkdir()
    else:
        place.symlink_to({"link": precious, "device": "/dev/zero", "nowhere": "/nowhere", "circle": place}[what])
