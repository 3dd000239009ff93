"""Built-in data, by name."""

from __future__ import annotations

from dataclasses import replace

from ...core.dataset import Dataset
from .dataset import read

_SALES = (514, 503, 457, 423, 326, 233, 195, 139, 101, 77, 56, 40, 37, 22, 9, 7, 10, 9, 3, 2, 2, 2) + (0,) * 8 + (1,)


def sales() -> Dataset:
    """Quarterly sales of an item of clothing in 3168 stores (Shmueli et al., 2005).

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> dfd.datasets.sales().n
    3168
    """
    data = read(dict(enumerate(_SALES)))
    return replace(data, columns=("sales",), source="sales (Shmueli et al., 2005)")


BY_NAME = {"sales": sales}
