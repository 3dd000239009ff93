"""How a text file writes its table: separator, quotation marks, decimal mark, and the line of names.

All of it is told from the beginning of the file. What could be read in two ways is refused with both of them named.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...errors import DataError
from .encodings import ENOUGH, beginning, lines_in, shown
from .missing_codes import AMONG_NUMBERS, WORDS
from .numerals import Marks, is_number

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
LINES = 1000  # of a file from which its separator and its names are told
LOOKED_AT = 200  # of these whose cells are read as numbers
Cells = list[list[str]]


@contextmanager
def long_cells() -> Iterator[None]:
    """Let the csv module read cells beyond its usual 128 kB; its limit is the whole process's, and is given back."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


@dataclass(frozen=True)
class Dialect:
    """How a text file is written.

    Attributes
    ----------
    names : tuple of str
        Of all columns, also of those that the file does not name (``nameless``).
    headed : bool
        Whether its first line holds the names.
    skipped : int
        Lines before that, which are none of the table: ``sep=;``, or comments.
    loose : bool
        Whether there may be spaces around separators and quoted texts.
    longest : int
        Letters in the longest row of its beginning, where this is long.
    """

    encoding: str
    separator: str
    quote: str
    names: tuple[str, ...]
    headed: bool
    skipped: int
    loose: bool
    marks: Marks
    nameless: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    longest: int = 0

    @property
    def words(self) -> str:
        """In words, for people."""
        apart = "one column" if len(self.names) == 1 else f"separated by {SEPARATORS[self.separator]}"
        mark = {".": ", decimal points", ",": ", decimal commas", None: ""}[self.marks.given or self.marks.file]
        return f"{apart}{mark}, {shown(self.encoding)}"


def sniff(path: Path, name: str, decimal: str | None = None) -> Dialect:
    """How a file is written; ``decimal`` is what the user says of its decimal mark."""
    text, encoding, whole = beginning(path, name)
    lines = text.split("\n")
    skipped, declared = 0, None
    while skipped < len(lines) and (not lines[skipped].strip() or re.match(r'#|"?sep=', lines[skipped], re.I)):
        if lines[skipped].strip('"')[:4].lower() == "sep=":
            declared = lines[skipped].strip('"')[4:5]
        skipped += 1
    body = "\n".join(lines[skipped:])
    empty = DataError(f"{name} is empty: it needs a line of column names and at least two rows")
    if not body.strip():
        raise empty
    quote = _quote(body)
    few = "\n".join(lines[skipped : skipped + LINES])
    if lines_in(few.encode()) < ENOUGH:  # a cell has more lines than that
        few = body
    tables = {s: _cells(few, s, quote, whole and len(few) == len(body)) for s in SEPARATORS}
    separator = declared if declared in SEPARATORS else _separator(tables, path.suffix.lower(), name)
    cells = tables[separator]
    if not cells:  # a quotation mark and nothing else
        raise empty
    padded = re.search(rf"{re.escape(separator)} +{quote}", body) is not None
    heading = body.lstrip("\n").split("\n", 1)
    quoted = quote in heading[0] and quote not in "".join(heading[1:])[:2000].split("\n")[0]
    names, headed = names_of(cells, name, quoted)
    names = tuple(own or f"Unnamed: {j}" for j, own in enumerate(names))
    nameless = tuple(own for own in names if headed and own.startswith("Unnamed: "))
    marks = _marks(cells[headed:], names, decimal, separator)
    if marks.file is None and len(lines) > skipped + LINES and ("." in body or "," in body.replace(separator, "")):
        marks = _marks(_cells(body, separator, quote, whole)[headed:], names, decimal, separator)
    notes: tuple[str, ...] = (_zero(name),) if not headed and len(names) == 1 and cells[0] == ["0"] else ()
    if encoding == "cp1252":
        odd = next((word for word in re.findall(r"\w+", text) if not word.isascii()), "")
        notes += (
            f"{name} is not in UTF-8 and was read as Windows-1252 (Latin-1){f': {odd!r}, for example' if odd else ''}. "
            "What to do: nothing if names and texts look right; else save it as UTF-8.",
        )
    return Dialect(
        encoding,
        separator,
        quote,
        names,
        headed,
        skipped,
        padded or separator == " ",
        marks,
        nameless,
        notes,
        max(sum(map(len, row)) + len(row) for row in cells),
    )


def _marks(rows: Cells, names: tuple[str, ...], decimal: str | None, separator: str) -> Marks:
    rows = [row for row in rows if len(row) == len(names)]
    columns = {own: dict.fromkeys(row[j] for row in rows) for j, own in enumerate(names)}
    return Marks.of(columns, decimal, separator == "," and len(names) > 1)


def _zero(name: str) -> str:
    return (
        f"the first line of {name} is 0 and was read as a row; pandas writes such a line as the name of a column "
        "without one. What to do: write a name above the data."
    )


def _quote(body: str) -> str:
    """Double quotation marks, or single ones where only these stand around the first line's cells."""
    first = body.lstrip("\n").split("\n", 1)[0].strip()
    return "'" if '"' not in body and re.fullmatch(r"'[^']*'([,;\t| ]+'[^']*')*", first) else '"'


def tidied(lines: Iterator[str] | Sequence[str], separator: str) -> Iterator[str]:
    """Lines as the csv module reads them: where spaces separate, none at the ends, and no tabs between."""
    for line in lines:
        yield f"{line.strip().expandtabs(1)}\n" if separator == " " else line


def _cells(body: str, separator: str, quote: str, whole: bool) -> Cells:
    """The cells of a text, without empty lines; the last line of a part of a file may be cut, and is left out."""
    lines = tidied(io.StringIO(body), separator)
    reader = csv.reader(lines, delimiter=separator, quotechar=quote, skipinitialspace=True)
    try:
        with long_cells():
            found = [row for row in reader if row and row != [""]]
    except csv.Error:  # a cell of more than 2 GB
        return []
    return [[cell.strip() for cell in row] for row in (found if whole or len(found) < 2 else found[:-1])]


def _separator(tables: dict[str, Cells], suffix: str, name: str) -> str:
    """The separator under which all lines have as many cells; none of two that both make a table of numbers."""
    regular = {s: _share(cells) for s, cells in tables.items() if _width(cells) > 1}
    alone = _share(tables["\t"]) if _width(tables["\t"]) == 1 else 0.0  # as one column, commas and all
    if regular:
        if " " in regular and len(regular) > 1 and regular[" "] < 1:
            del regular[" "]  # names and texts hold spaces, too
        if list(regular) == [" "] and regular[" "] == 0:
            return "\t"  # texts of so many words each
        if regular.get("\t") == regular.get(" "):
            regular.pop(" ", None)  # whose columns are those of the tabs, which are read as spaces there
        best = max(regular, key=lambda s: regular[s])
        rivals = [s for s in regular if s != best and regular[s] == regular[best]]
        rivals = [] if rivals and "\t" in (best, *rivals) and suffix == ".tsv" else rivals
        if rivals:
            raise DataError(
                f"{name} may be separated by {SEPARATORS[best]} or by {SEPARATORS[rivals[0]]}: under both, all lines "
                f"have as many cells. What to do: put a first line that says which, for example sep={best}"
            )
        if alone == 1 and best in ", " and _width(tables[best]) == 2:
            _require_two(tables, best, suffix, name)
        return best
    if alone == 1 and all(len(cells[0]) == 1 for cells in tables.values() if cells):
        return "\t"  # a column of decimal commas
    if all(_width(tables[s]) == 1 for s in ",;\t|"):
        return "\t"
    default = "\t" if suffix == ".tsv" else ","
    return max((default, *SEPARATORS), key=lambda s: _agreement(tables[s]))


def _require_two(tables: dict[str, Cells], separator: str, suffix: str, name: str) -> None:
    """Refuse two columns that may be one of numbers with decimal commas, or with spaces between thousands."""
    first, alone = tables[separator][0], tables["\t"]
    bare = _numeric(alone[0][0]) and (separator == " " or suffix != ".csv")  # commas are what .csv says
    if len(first) == 1 or bare:
        raise DataError(
            f"{name} may be one column of numbers such as {alone[-1][0]}, or two columns separated by "
            f"{SEPARATORS[separator]}. What to do: write sep=; above the data if it is one column; if it is two, put "
            "semicolons between them, and a line with the names of both above."
        )


def _width(cells: Cells) -> int:
    """How many cells all lines have; 0 if they differ. The first line may have one less, or a last one without name."""
    if not cells:
        return 0
    first, widths = len(cells[0]), {len(row) for row in cells[1:]}
    if len(widths) > 1:
        return 0
    width = widths.pop() if widths else first
    if first == width:
        return width
    if first == width - 1 and (_trailing(cells) or _row_names(cells)):
        return width
    return width if first == width + 1 and cells[0][-1] == "" else 0


def _trailing(cells: Cells) -> bool:
    """Whether every line but the first ends in a separator."""
    return all(row[-1] == "" for row in cells[1:])


def _row_names(cells: Cells) -> bool:
    """Whether the lines below the first begin with names of rows, as R writes them."""
    return len({row[0] for row in cells[1:]}) == len(cells) - 1 and not all(map(is_number, cells[0]))


def _share(cells: Cells) -> float:
    """The share of numbers and missing values among the cells below the first line."""
    below = [cell for row in cells[1 : 1 + LOOKED_AT] or cells for cell in row]
    return sum(map(_numeric, below)) / max(1, len(below))


def _agreement(cells: Cells) -> float:
    """The share of lines with as many cells as most, which are several."""
    if not cells or len(cells[0]) < 2:
        return 0.0
    return Counter(len(row) for row in cells).get(len(cells[0]), 0) / len(cells)


def _numeric(cell: str) -> bool:
    return cell in WORDS or cell in AMONG_NUMBERS or is_number(cell)


def names_of(cells: Cells, name: str, quoted: bool = False) -> tuple[tuple[str, ...], bool]:
    """Names of the columns, and whether the file has them: a first line of numbers is data.

    Numbers that are counted up (0, 1, 2 or 2019, 2020) may be names as well, and nobody can tell.
    """
    first, width = cells[0], _width(cells) or len(cells[0])
    below = [row for row in cells[1:] if len(row) == width]
    if len(first) == width - 1:
        return ((*first, "") if _trailing(cells) else ("", *first)), True
    if len(first) == width + 1:
        return tuple(first[:-1]), True
    numbers = [cell for cell in first if is_number(cell)]
    words = [j for j, cell in enumerate(first) if not _numeric(cell)]
    unnamed = tuple(f"x{j + 1}" if width > 1 else "x" for j in range(width))
    if quoted or (not numbers and not words):
        return tuple(first), True
    varied = [j for j in words if len({row[j] for row in below} - WORDS) > 1]  # some tick boxes by their names
    again = [j for j in varied if any(row[j] == first[j] for row in below)]
    if not words:
        if len(numbers) == len(first) and _counted_up(first):
            raise DataError(_names_or_row(name, first))
        return unnamed, False
    if again == words:
        return unnamed, False  # a row like those below
    like = all(_numeric(row[j]) for row in below[:LOOKED_AT] for j, cell in enumerate(first) if is_number(cell))
    if again or (numbers and like and not _counted_up(numbers) and below):
        raise DataError(_names_or_row(name, first))
    return tuple(first), True


def _names_or_row(name: str, first: list[str]) -> str:
    shown = ", ".join(first[:6]) + (", ..." if len(first) > 6 else "")
    return (
        f"the first line of {name} is {shown}: are these names of columns or a row of data? "
        "Write a line of names that are not numbers above the data, or in place of the numbers."
    )


def _counted_up(cells: Sequence[str]) -> bool:
    """Whether cells are what a program writes as names where there are none: 0, 1, 2, ... or a run of numbers."""
    try:
        values = [int(cell) for cell in cells]
    except ValueError:
        return False
    run = values == list(range(values[0], values[0] + len(values)))
    return run and len(values) > 1
