"""Models by name: each is put into one table where it is defined, with the options that a name may come with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .._util.codec import plain_or_none
from ..core.dataset import Dataset
from ..core.domain import Domain
from ..core.graphs import of, parse
from ..core.log_mass_errors import MADE
from ..core.model import AbstractModel, Model
from ..core.registry import Registry
from ..errors import ModelError, close

WEAK_SD = 3.0  # of a weak prior of a coefficient whose covariate has the scale of 1: odds times 20
Options = Mapping[str, Any]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """What a model given by name is made with.

    Attributes
    ----------
    name : str
    example : str
        What to write where it is needed and not given.
    read : callable
        The value from what a user gave, which may be text.
    """

    name: str
    example: str = ""
    read: Callable[[Any], Any] = lambda given: given

    def among(self, options: Options) -> Any:
        """Its value; None where it is not given."""
        given = options.get(self.name)
        return None if given is None else self.read(given)

    def needed(self, options: Options) -> Any:
        """Its value, without which there is no model."""
        found = self.among(options)
        if found is None:
            shown = f", for example {self.example}" if self.example else ""
            raise ModelError(f"this model needs {self.name if self.name.endswith('s') else f'a {self.name}'}{shown}")
        return found


GRAPH = Option(
    "graph",
    "options={'graph': dfd.graphs.grid(6, 6)}, on the command line --graph grid:6x6",
    lambda given: parse(given) if isinstance(given, str) else of(given),
)


@dataclass(frozen=True)
class Named:
    """How a model is made that a user gives by name.

    Attributes
    ----------
    name : str
    make : callable
        ``make(columns, options)``, with the number of columns of the data.
    takes : tuple of str
        The options that there are.
    about : str
        One line about the model.
    whole : bool
        Whether its data are one observation, which it reads itself.
    of_data : callable, optional
        ``of_data(data, options, domain)``, of a model that looks at its columns first.
    is_known : callable
        Whether options say all that it would look at columns for.
    paper : mapping
        Options of the form that the paper's priors need.
    with_formula : tuple of str
        Options that there are where a formula is given.
    function : callable, optional
        The function of `dfdbayes.models` that makes it.
    """

    name: str
    make: Callable[[int, Options], AbstractModel]
    takes: tuple[str, ...]
    about: str
    whole: bool = False
    of_data: Callable[[Dataset, Options, Domain], AbstractModel] | None = None
    is_known: Callable[[Options], bool] = lambda options: False
    paper: Options = field(default_factory=dict)
    with_formula: tuple[str, ...] = ()
    function: Callable[..., AbstractModel] | None = None

    def __call__(self, columns: int, options: Options, prior: Any = None) -> AbstractModel:
        """The model for so many columns; with ``prior="paper"`` in the form that the paper's priors need."""
        options = dict(options) | dict(self.paper) if isinstance(prior, str) else options
        self.require(options)
        return self.make(columns, options)

    def needs_data(self, options: Options | None) -> bool:
        """Whether it has to look at the columns first."""
        return self.of_data is not None and not self.is_known(options or {})

    def own(self, options: Options | None) -> dict[str, Any]:
        """Those among the options of several models that this one takes."""
        return {key: value for key, value in (options or {}).items() if key in self.takes}

    def require(self, options: Options) -> None:
        """Refuse options that it does not take."""
        for key, value in options.items():
            if value is not None and key not in self.takes:
                known = f"takes {', '.join(self.takes)}" if self.takes else "takes no options"
                other = "choose another model"
                if key in ("at", "neighbours"):
                    other = "choose 'autologistic', the model of one map with a row for each site"
                raise ModelError(f"'{self.name}' has no {key}: it {known}. Leave out {key} (--{key}), or {other}.")


MODELS: Registry[Named] = Registry("model", ModelError)


def named(
    name: str, *more: str, takes: tuple[str | Option, ...] = (), columns: str = "",
    model: Callable[..., AbstractModel] | None = None, **about: Any,
) -> Callable[[F], F]:  # fmt: skip
    """Put a model into the table of models by name, as a decorator.

    Parameters
    ----------
    name, more
        What it may be called.
    takes : tuple of str or Option
        Arguments of the function that are options.
    columns : str, optional
        The argument that is the number of columns, where it is not among the options.
    model : callable, optional
        The model's function, where what is decorated is ``make(columns, options)``.
    about
        Other attributes of `Named`.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> dfd.models.by_name("potts", 0, {"graph": "grid:3x3", "states": 4}).name
    'potts'
    """

    def add(function: F) -> F:
        shown = function if model is None else model
        own = [one if isinstance(one, Option) else Option(one) for one in takes]
        make = function if model is not None else _from_options(function, own, columns)
        line = (shown.__doc__ or "").splitlines()[0]
        MODELS.register(name, *more)(Named(name, make, tuple(one.name for one in own), line, function=shown, **about))
        return function

    return add


def _from_options(
    function: Callable[..., AbstractModel], takes: Sequence[Option], number: str
) -> Callable[[int, Options], AbstractModel]:
    """Makes a model by its function, whose arguments are options."""
    known = inspect.signature(function).parameters

    def make(columns: int, options: Options) -> AbstractModel:
        given = {one.name: value for one in takes if (value := one.among(options)) is not None}
        if number:
            given.setdefault(number, columns)
        for one in takes:
            if one.name not in given and known[one.name].default is inspect.Parameter.empty:
                one.needed(options)
        return function(**given)

    return make


_SPREAD = (
    ". 'cmp' (Conway-Maxwell-Poisson) is the model for counts that vary more, or less, than Poisson counts: up to a "
    "geometric distribution, a negative binomial with size (theta) 1; data with a smaller size vary more than it can."
)
_OTHERS = {
    "negative-binomial": _SPREAD, "nb": _SPREAD, "nbinom": _SPREAD, "negbin": _SPREAD, "quasi-poisson": _SPREAD,
    "logistic": ". 'bernoulli' with formula='y ~ x' is logistic regression.",
    "logit": ". 'bernoulli' with formula='y ~ x' is logistic regression.",
    "ordinal": ". 'network' takes ordinal columns.", "ggm": ". 'network' takes binary, ordinal and count columns.",
    "zip": ". Too many zeros: 'poisson' or 'cmp' with formula='y ~ x' and zeros='~ 1' (a hurdle).",
    "zero-inflated-poisson": ". Too many zeros: 'poisson' or 'cmp' with formula='y ~ x' and zeros='~ 1' (a hurdle).",
}  # fmt: skip
"""What people call models by elsewhere, and what serves here."""


def names() -> dict[str, str]:
    """The short name of every built-in model with one line about it."""
    return {name: model.about for name, model in sorted(MODELS.items()) if name == model.name}


def named_model(name: str) -> Named:
    """How the model is made that a name stands for; an error that says what serves where there is none."""
    if "~" in name:
        raise ModelError(f"'{name}' is a formula and no model: dfd.fit('poisson', data, formula='{name}')")
    if name not in MODELS:
        hint = close(name, MODELS) or _OTHERS.get(str(name).lower().replace(" ", "-").replace("_", "-"), ".")
        raise ModelError(f"there is no model '{name}'{hint} Known models: {', '.join(names())}.")
    return MODELS.by_name(name)


def by_name(name: str, d: int, options: Options | None = None, prior: Any = None) -> AbstractModel:
    """A built-in model for data with ``d`` columns; ``options`` are those of its Python function.

    With ``prior="paper"``, in the form that the paper's priors need.
    """
    return named_model(name)(d, dict(options or {}), prior)


def how_to_make(given: Any) -> str:
    """What to write where a model was wanted and something else was given."""
    if any(given is one.function for _, one in MODELS.items()):
        return f"write dfd.models.{given.__name__}()"
    if given is Model or (callable(given) and not isinstance(given, type)):
        return f"write {MADE}"
    return "give a name such as 'cmp', or dfd.models.Poisson()"


def paper_priors(model: AbstractModel) -> dict[str, Any]:
    """The priors of Matsubara et al. (2024) for a model of theirs; none where the model's own are theirs."""
    return model.paper_priors


def plain_options(model: AbstractModel) -> dict[str, Any]:
    """A model's options in values that JSON can hold, as far as it can; `by_name` takes them back."""
    return {name: plain_or_none(value) or value for name, value in model.options.items()}
