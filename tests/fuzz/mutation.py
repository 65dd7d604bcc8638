"""Hostile inputs: valid samples with edits that often break parsers, and the pieces of such
edits."""

from collections.abc import Sequence

from hypothesis import strategies as st

NUMBERS = (
    "0", "-1", "1", "2", "3.5", "-0", "007", "1e3", "1e400", "-1e400", "1e-400", "nan", "inf", "-inf", "1_000",
    "٣", "½", "16777216", "16777217", "2147483647", "2147483648", "4294967296", "9223372036854775807",
    "9223372036854775808", "1000000000000", "1000000000000000000", "9" * 25, "9" * 400, "9" * 5000, "0x10", "1/0",
    "+5", "--5", "1.2.3", "٣٣",
)  # fmt: skip
TOKENS = (
    "", " ", "\n", "\r\n", "\r", "\t", "\0", "\x1b[31m", "\ufeff", "\u2028", "é", "🦆", "\ud7ff", "#", "'", '"',
    "\\", ",", ";", ":", "=", "=>", "@", "+", "-", "*", "/", "^", "x", "..", "../", "../../etc/passwd",
    "/dev/zero", "/", "~", "[", "]", "{", "}", "<", ">", "(", ")", "&a ", "*a", "!!python/object/apply:os.system ",
    "!", "|", "---\n", "%TAG", "null", "true", "no", "NaN", "Infinity", "<!ENTITY a 'b'>", "=1+1", "@SUM(A1)",
    "$(touch x)", "`touch x`", "; touch x", "library", "all", "auto", "bytes", "ranks", "seconds", "id", "from",
    "to", "factor", "step", "file:", "kary:2^24",
)  # fmt: skip
PIECES = st.one_of(st.sampled_from(NUMBERS), st.sampled_from(TOKENS), st.text(max_size=8))
REPETITIONS = st.sampled_from((2, 3, 70, 3000))


@st.composite
def edited(draw, samples: Sequence[bytes]) -> bytes:
    """Draw one of the samples and edit it: spans are removed, repeated, moved or replaced."""
    content = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        stop = min(start + draw(st.sampled_from((0, 1, 2, 5, 20, 1000))), len(content))
        span = content[start:stop]
        match draw(
            st.sampled_from(
                ("piece", "word", "word", "word", "bytes", "again", "cut", "line", "move")
            )
        ):
            case "piece":
                span = draw(PIECES).encode("utf-8", "surrogatepass")
            case "word":  # replace the text between two separators
                start, stop = find_word(content, start)
                span = draw(PIECES).encode("utf-8", "surrogatepass")
            case "bytes":
                span = draw(st.binary(max_size=4))
            case "again":
                span = span[:50] * draw(REPETITIONS)
            case "cut":
                span, stop = b"", draw(st.sampled_from((stop, len(content))))
            case "line":
                start = content.rfind(b"\n", 0, start) + 1
                stop = content.find(b"\n", start) + 1 or len(content)
                span = content[start:stop] * draw(st.sampled_from((0, 2, 50)))
            case "move":
                content = content[:start] + content[stop:]
                start = stop = draw(st.integers(0, len(content)))
        content = content[:start] + span + content[stop:]
    return content


def find_word(text: bytes, position: int) -> tuple[int, int]:
    """Return start and end of the word at a position, between separators."""
    ends = b" \t\n\r,:;=\"'[]{}()<>+@^"
    start = position
    while start > 0 and text[start - 1] not in ends:
        start -= 1
    stop = position
    while stop < len(text) and text[stop] not in ends:
        stop += 1
    return start, stop


def written(*forms: str) -> st.SearchStrategy[str]:
    """Draw a text from one of the forms; each % becomes a number or another piece."""

    def fill(form: str) -> st.SearchStrategy[str]:
        parts = form.split("%")
        small = st.integers(0, 40).map(str)
        holes = st.lists(
            st.one_of(small, small, PIECES), min_size=len(parts) - 1, max_size=len(parts) - 1
        )
        return holes.map(lambda pieces: parts[0] + "".join(map(str.__add__, pieces, parts[1:])))

    return st.one_of(*map(fill, forms), PIECES)
