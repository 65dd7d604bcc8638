"""Complete the site when it is built.

Added are two files from the project's root, the tutorial of the example of an extension, the pages
of the models, the tables of the verbs and of the API, and the reports of the gallery. Links to
files that are no pages become their names. Formulas become MathML, without scripts.
"""

import re
from pathlib import Path

import api_pages
import family_pages
import table_pages
import verb_pages
from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md")
TUTORIAL, TUTORIAL_PAGE = "examples/extension/README.md", "extending.md"
FORMULA = re.compile(r"^```math\n(.+?)\n```$", re.MULTILINE | re.DOTALL)
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)]+)\)")
FUNCTIONS = "<!-- functions of the API: docs/api_pages.py -->"
TABLES = "<!-- tables: docs/table_pages.py -->"
VERBS = "<!-- verbs: docs/verb_pages.py -->"
GALLERY = "reports/example"  # committed reports, copied into the site
FAMILIES, TABLE = "Models", "<!-- table of families: docs/family_pages.py -->"
# of pages that mkdocs.yml does not list, by their folder
SECTIONS = {"docs": "Reference", "methods": "Explanation"}


def on_config(config):
    """Add the pages of the model families to the navigation, by their titles, and every page that
    it does not list."""
    groups = {
        name: pages
        for entry in config.nav
        if isinstance(entry, dict)
        for name, pages in entry.items()
    }
    (families,) = (entry[FAMILIES] for entry in groups["Reference"] if isinstance(entry, dict))
    families += [
        {entry.title: f"families/{name}.md"} for name, entry in family_pages.families().items()
    ]
    listed = {
        "index.md",
        *(page for pages in groups.values() for page in pages if isinstance(page, str)),
    }
    for path in sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/methods").glob("*.md")]):
        page = path.relative_to(ROOT / "docs").as_posix()
        if page not in listed:
            groups[SECTIONS[path.parent.name]].append(page)


def on_files(files, config):
    for name, text in family_pages.pages().items():
        files.append(File.generated(config, f"families/{name}", content=text))
    for path in sorted((ROOT / GALLERY).iterdir()):
        files.append(File.generated(config, f"gallery/{path.name}", abs_src_path=str(path)))
    for name in PAGES:
        text = (
            (ROOT / name)
            .read_text(encoding="utf-8")
            .replace("](docs/", "](")
            .replace(TUTORIAL, TUTORIAL_PAGE)
        )
        files.append(File.generated(config, name, content=text))
    files.append(
        File.generated(config, TUTORIAL_PAGE, content=(ROOT / TUTORIAL).read_text(encoding="utf-8"))
    )
    return files


def on_page_markdown(markdown, page, config, files):
    depth = page.file.src_uri.count("/")
    if page.file.src_uri == "families/index.md":
        markdown = markdown.replace(TABLE, family_pages.table())
    if page.file.src_uri == "api.md":
        markdown = markdown.replace(FUNCTIONS, api_pages.describe_functions())
    if page.file.src_uri == "verbs.md":
        markdown = markdown.replace(VERBS, verb_pages.describe_verbs())
    if page.file.src_uri == "tables.md":
        markdown = markdown.replace(TABLES, table_pages.describe_tables())
    markdown = FORMULA.sub(lambda match: f"<p>{convert(match[1], display='block')}</p>", markdown)
    return OUTSIDE.sub(lambda match: _link(match, depth), markdown)


def _link(match, depth):
    """Return a link to a page of the site, or the name of a file of the project, for a link that
    leaves docs/."""
    text, target = match[1], match[2]
    if target.startswith(GALLERY):
        return f"[{text}]({'../' * depth}{target.replace(GALLERY, 'gallery', 1)})"
    if target.partition("#")[0] in PAGES:
        return f"[{text}]({'../' * depth}{target})"
    if (ROOT / "docs" / target.partition("#")[0]).exists():
        return match[0]
    name = text.strip("`")
    return f"`{target}`" if target.endswith(name) else f"{text} (`{target}`)"
