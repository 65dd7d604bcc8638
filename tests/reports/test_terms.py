"""Terms are explained where they come first, and nothing else of a text changes."""

import re

from markupsafe import Markup
from tests.documented import ROOT

from commodel.reports.html.page import TERMS, Defined, page_html, terms_of


def test_a_term_is_explained_once_and_the_text_stays():
    text = 'Of 7 jobs, a job & <b>"lop"</b>: loppy, held-out-ish; regret, regrets'
    markup = Defined(TERMS | {"jobs": TERMS["job"], "lop": "<\"lop's"})(text)
    assert re.findall(r'<abbr title="[^"]*">([^<]*)</abbr>', markup) == ["jobs", "lop", "regret"]
    assert Markup(re.sub("</?abbr[^>]*>", "", markup)).unescape() == text
    assert 'title="&lt;&#34;lop&#39;s"' in markup


def test_the_page_explains_mu_and_every_family_that_it_names(report):
    page = page_html(report)
    assert {"μ", "jobs"} <= set(re.findall(r'<abbr title="[^"]+">([^<]*)</abbr>', page))
    assert terms_of(report)["loggp"].startswith("Loggp: T(m) = L")
    assert re.search(r'<th [^>]*title="max\(predicted/measured[^>]*>μ</th>', page)


def test_definitions_are_those_of_the_documentation():
    """The same words are explained there; here shorter, or otherwise."""
    words = re.findall(r"^\| ([\w μ]+) \| ", (ROOT / "docs/report.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"job", "μ", "held out", "regret", "not told apart"} <= set(words) & set(TERMS)
