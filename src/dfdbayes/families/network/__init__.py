"""Networks of columns."""

from . import narrative as narrative
