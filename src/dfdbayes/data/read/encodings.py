"""What the bytes of a file are: a text in some encoding, or no text at all."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

from ...errors import DataError

SAMPLE = 2**18  # bytes from which encoding, separator and decimal mark are told, if they hold enough lines
ENOUGH = 5  # lines: the names, and rows of which one may be cut, and more than one is left to compare
MOST = 2**26  # bytes that are looked at for these

_OTHERS = (
    (b"PK\x03\x04", "an Excel or other zipped file", "give it its own ending (.xlsx), or save it as CSV"),
    (b"\xd0\xcf\x11\xe0", "a workbook of old Excel", "save it as .xlsx or CSV"),
    (b"\x1f\x8b", "compressed (gzip)", "unpack it first"),
    (b"BZh", "compressed (bzip2)", "unpack it first"),
    (b"\xfd7zXZ", "compressed (xz)", "unpack it first"),
    (b"PAR1", "a Parquet file", "let its name end in .parquet"),
    (b"$FL2", "an SPSS file", "let its name end in .sav"),
    (b"$FL3", "an SPSS file", "let its name end in .zsav"),
    (b"<stata_dta>", "a Stata file", "let its name end in .dta"),
    (b"%PDF", "a PDF document", "save the table it shows as CSV"),
    (b"\x80\x04\x95", "a pickled Python object, which is never loaded", "save the table as CSV or Parquet"),
    (b"RDX", "an R workspace", "save the table as CSV in R: write.csv(table, 'table.csv')"),
)
_MARKUP = ((b"<html", "a web page"), (b"<!doctype", "a web page"), (b"<table", "a web page"), (b"<?xml", "XML"))
_BYTE_ORDER_MARKS = (  # the longer ones first: that of UTF-32 begins as that of UTF-16 does
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NAMES = {"utf-8": "UTF-8", "cp1252": "Windows-1252 (Latin-1)"}


def shown(encoding: str) -> str:
    """An encoding's name as people write it."""
    return _NAMES.get(encoding, encoding.upper())


def beginning(path: Path, name: str) -> tuple[str, str, bool]:
    """The first part of a file as text with newlines alike, its encoding, and whether that part is all of it."""
    with path.open("rb") as handle:
        sample = handle.read(SAMPLE)
        while lines_in(sample) < ENOUGH and len(sample) < MOST and (more := handle.read(len(sample))):
            sample += more
        whole = not handle.read(1)
    for magic, what, remedy in _OTHERS:
        if sample.startswith(magic):
            raise DataError(f"{name} is no text: it is {what}. What to do: {remedy}.")
    for mark, what in _MARKUP:
        if sample.lstrip().lower().startswith(mark):
            raise DataError(f"{name} is {what}, not a table. What to do: save the table as CSV.")
    if not whole and lines_in(sample) < ENOUGH:
        raise DataError(
            f"the first lines of {name} are longer than {MOST / 2**20:g} MB, and nobody can tell how it is written. "
            "What to do: save the table with a line for each row; close quotation marks."
        )
    encoding = _encoding(sample, whole, name)
    text = codecs.getincrementaldecoder(encoding)("strict").decode(sample, whole)
    if "\0" in text:
        raise DataError(f"{name} holds zero bytes and is no text. What to do: save the table as CSV in UTF-8.")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), encoding, whole


def lines_in(sample: bytes) -> int:
    """How many lines end there, outside of double quotation marks."""
    outside = b"".join(sample.split(b'"')[::2])
    return max(outside.count(b"\n"), outside.count(b"\r"))


def _encoding(sample: bytes, whole: bool, name: str) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            return _required(sample, encoding, whole, name)
    zeros = [sample[first::2].count(0) for first in (0, 1)]
    if max(zeros) > 0.2 * len(sample) and min(zeros) < 0.1 * max(zeros):  # every second byte of Western text
        return _required(sample, "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le", whole, name)
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(sample, whole)
    except UnicodeDecodeError:
        return _required(sample, "cp1252", whole, name)  # which holds all of Latin-1 that is ever written
    return "utf-8"


def _required(sample: bytes, encoding: str, whole: bool, name: str) -> str:
    try:
        codecs.getincrementaldecoder(encoding)("strict").decode(sample, whole)
    except UnicodeDecodeError as problem:
        tried = "neither UTF-8 nor Windows-1252" if encoding == "cp1252" else f"not the {shown(encoding)} it says it is"
        raise DataError(
            f"{name} cannot be read: its text is {tried} (byte {problem.start + 1}). What to do: save it as UTF-8."
        ) from None
    return encoding


def shown_name(path: Path) -> str:
    """A file's name as text, whatever bytes it is made of."""
    return os.fsencode(path.name or path.absolute().name).decode("utf-8", "replace")
