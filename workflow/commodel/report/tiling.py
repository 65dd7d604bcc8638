"""A square that is shared out in rectangles, as a picture: how each is filled and what stands in it, the same in every
writer."""

from dataclasses import dataclass

MOST_RECTANGLES = 400  # rectangles that anybody can look at
SMALLEST_NUMBER = 8.0  # pixels of a number that can be read


@dataclass(frozen=True, slots=True)
class Rectangle:
    """In units of the square, y downwards."""

    label: str
    x: int
    y: int
    width: int
    height: int
    fill: str
    about: str = ""  # shown when it is pointed at

    def letters(self, unit: float) -> float:
        """The size in which its label fits, where a unit of the square has so many pixels; 0: none does."""
        size = min(15.0, 0.7 * self.height * unit, 1.3 * self.width * unit / max(1, len(self.label)))
        return size if size >= SMALLEST_NUMBER else 0.0


@dataclass(frozen=True, slots=True)
class Tiling:
    name: str
    title: str
    side: int
    rectangles: tuple[Rectangle, ...]
    legend: tuple[tuple[str, str], ...]  # colours and what they mean
    note: str = ""
    alt: str = ""  # what the picture shows, in words
