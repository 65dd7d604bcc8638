"""How wide words are in the letters of charts, so that a name has the room that it needs, and stands in two lines or is
cut only where there is none."""

# Of Arial and its like, in thousandths of their size.
WIDTHS = {
    **dict.fromkeys("ijl", 222),
    **dict.fromkeys(" \u00a0!,./:;\\[]ftI|", 278),
    **dict.fromkeys("()-r`{}", 333),
    **dict.fromkeys("ckszvxyJ", 500),
    **dict.fromkeys("abdeghnopqu0123456789_?#$≈–", 556),
    **dict.fromkeys("^+<=>~×", 584),
    **dict.fromkeys("ABEKPSVXY&", 667),
    **dict.fromkeys("CDHNRUw", 722),
    **dict.fromkeys("GOQ", 778),
    **dict.fromkeys("mM", 833),
    **dict.fromkeys("W%…@", 1000),
}
OTHER = 611
ROUNDING = 0.01  # pixels
HYPHENS = "-:, "  # behind which a line may end


def width(text: str, size: float) -> float:
    return sum(WIDTHS.get(letter, OTHER) for letter in text) * size / 1000


def broken(text: str) -> list[str]:
    """In two lines, the longer one as short as can be; in one, where it has no place to end a line."""
    places = [at + 1 for at, letter in enumerate(text[:-1]) if letter in HYPHENS]
    if not places:
        return [text]
    at = min(places, key=lambda place: max(width(text[:place], 1), width(text[place:], 1)))
    return [text[:at].rstrip(" "), text[at:]]


def needed(text: str, size: float, lines: int) -> float:
    return max(width(line, size) for line in (broken(text) if lines == 2 else [text]))


def fitting(text: str, room: float, size: float, lines: int = 1) -> str | list[str]:
    """In as few lines as can be, and cut where it has no room in these either."""
    if width(text, size) <= room + ROUNDING:
        return text
    if lines == 2 and len(two := broken(text)) == 2:
        return [cut(line, room, size) for line in two]
    return cut(text, room, size)


def cut(text: str, room: float, size: float) -> str:
    most = next((at for at in range(len(text), 2, -1) if width(text[:at], size) <= room + ROUNDING), 2)
    return text if most == len(text) else f"{text[: most - 1]}…"


def shared(needs: list[float], room: float) -> list[float]:
    """Widths that add up to `room`: the same for all that this is enough for, and what the others need. Where there is
    too little room all have too little."""
    if sum(needs) > room:
        return [need * room / sum(needs) for need in needs]
    widths, rest = dict(enumerate(needs)), set(range(len(needs)))
    while rest:
        even = (room - sum(widths[at] for at in widths.keys() - rest)) / len(rest)
        wider = {at for at in rest if needs[at] > even}
        if not wider:
            widths |= dict.fromkeys(rest, even)
            break
        rest -= wider
    return [widths[at] for at in range(len(needs))]
