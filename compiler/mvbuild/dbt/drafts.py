"""SourceFile + edits -> MappedText: a file of the dbt project as mvbuild gets it, with the map back."""

from __future__ import annotations

from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.parse.splice import Edit, edited
from mvbuild.source import MappedText, SourceFile, Span


@dataclass(slots=True)
class Draft:
    """A text file and the edits to make in it. An edit inside another one is dropped; an edit around others replaces them."""

    file: SourceFile
    edits: list[Edit] = field(default_factory=list)

    def replace(self, start: int, end: int, new: str) -> None:
        if any(e.start <= start and end <= e.end and e.start < e.end for e in self.edits):
            return
        self.edits = [e for e in self.edits if not (start <= e.start and e.end <= end and start < end)]
        self.edits.append(Edit(start=start, end=end, new=new, origin=Span(self.file, start, max(end, start))))

    def remove(self, start: int, end: int) -> None:
        """Remove [start, end), and the whole lines if nothing else is on them."""
        self.replace(*whole_lines(self.file.text, start, end), "")

    def insert(self, at: int, new: str) -> None:
        self.edits.append(Edit(start=at, end=at, new=new, origin=Span(self.file, at, at)))

    @property
    def result(self) -> MappedText:
        return edited(MappedText.of(self.file), self.edits, spaced=False)

    def copy(self) -> Draft:
        return Draft(self.file, list(self.edits))


def whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """[start, end), or the lines that it covers if only blanks are beside it."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last + 1
    if text[first:start].strip() or text[end:last].strip():
        return start, end
    return first, last
