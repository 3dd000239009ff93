"""Saved fits, read back. Nothing in a file is executed."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
import pandas as pd
from jaxtyping import Float
from numpyro.distributions import Distribution

from .. import families as models
from .._util.codec import LackingError, from_plain, to_plain
from .._util.resources import fits_memory
from .._util.tables import Table
from ..core.calibration import Curvature
from ..core.dataset import Dataset
from ..core.losses.base import AbstractLoss
from ..core.mixing import entries_of
from ..core.model import AbstractModel
from ..core.objective import Objective, arranged
from ..core.parameters import EDGE, ZEROS
from ..data.formulas import Design, parse
from ..data.observed import Observed
from ..errors import DataError, DfdbayesError, ModelError
from ..results import selections
from ..results.fitted import Chosen
from ..results.saving import BESIDE, FORMAT, OWN, POSTERIOR, UNFINISHED, structure_of
from .fit_result import Fit

if TYPE_CHECKING:
    import xarray as xr


def load(path: str | Path, model: AbstractModel | None = None) -> Fit:
    """Read a fit written by `Fit.save`, or the folder of a run on the command line. Nothing in it is executed.

    ``model`` is needed only where a model of one's own should be used further (to predict, say).
    """
    import h5netcdf
    import xarray as xr

    h5netcdf.File._writable = False  # its files lack this while they are opened, and say so again if that fails
    path = Path(path)
    if path.is_dir() and (path / POSTERIOR).is_file():
        if (path / UNFINISHED).exists():
            raise DataError(f"'{path}' was left while its files were written; run the command again with --force")
        path = path / POSTERIOR
    if not path.is_file():
        raise DataError(f"there is no file '{path}'")
    try:
        _require_plain(path)
        with xr.open_datatree(path, engine="h5netcdf") as opened:
            tree = opened.load()
        about = json.loads(tree.attrs["dfdbayes"])
        number = int(about["format"])
        if number in (2, FORMAT):  # 2 is that of version 0.2
            return _restored(tree, about if number == FORMAT else up_to_date(about, tree), model)
    except ModelError:
        raise
    except Exception as problem:  # whatever a damaged or alien file makes the libraries say
        said = (str(problem).splitlines() or [""])[0]
        raise DataError(
            f"'{path.name}' is not a fit saved by dfdbayes, or it is damaged ({type(problem).__name__}: {said})"
        ) from problem
    if number > FORMAT:
        raise DataError(f"'{path.name}' was saved by a newer version of dfdbayes (format {number}); update to read it")
    raise DataError(
        f"'{path.name}' was saved by dfdbayes 0.1 (format {number}), whose parameters had other names. What to do: fit "
        "again, or read it with that version."
    )


def _require_plain(path: Path) -> None:
    """Refuse a file whose arrays lie in other files, which has groups in circles, or arrays that no memory holds."""
    import h5py

    seen, bytes_ = set(), 0.0
    with h5py.File(path, "r") as file:
        left: list[h5py.Group] = [file]
        while left:
            group = left.pop()
            for name in group:
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    raise ValueError(f"'{name}' is a link to somewhere else")
                part = group[name]
                at = h5py.h5o.get_info(part.id).addr
                if at in seen:
                    raise ValueError(f"'{name}' is there twice")
                seen.add(at)
                if isinstance(part, h5py.Group):
                    left.append(part)
                elif isinstance(part, h5py.Dataset):
                    if part.external or part.is_virtual:
                        raise ValueError(f"the numbers of '{name}' are in another file")
                    bytes_ += float(part.size or 0) * part.dtype.itemsize
    if not fits_memory(bytes_):
        raise ValueError(f"it says that it holds {bytes_ / 2**30:.0f} GiB")


def _model_of(
    settings: dict[str, Any],
    data: Dataset,
    tree: xr.DataTree,
    about: dict[str, Any],
    model: AbstractModel | None = None,
) -> AbstractModel:
    """A model, or that of this name and options, with its formulas where it has some."""
    options, formulas = dict(settings["options"]), settings.get("formulas")
    form = options.pop("form", None) if formulas else None
    base = models.by_name(settings["model"], data.d, options) if model is None else model
    if not formulas:
        return base
    base = base.for_covariates(form, ZEROS in formulas)
    known, of_its_own = {p.name for p in base.space.parameters}, (about["identity"] or {}).get("base") is not None
    if not known >= set(formulas) or (base.base_identity is not None) != of_its_own:
        raise ModelError(f"the formulas are not of the model '{base.name}'")
    arrays = tree["regression"].to_dataset()
    observed = Observed.from_file({str(name): arrays[name].values for name in arrays}, about["regression"])
    designs = [
        Design.of(name, parse(text, name)[1], observed.rows, coded=base.domain.d == 1)[0]
        for name, text in formulas.items()
    ]
    return base.with_designs(designs, data, observed)


def _is_of_the_file(model: AbstractModel, about: dict[str, Any], data: Dataset) -> bool:
    """Whether a built-in model is the one that was fitted, and no model of one's own of that name.

    Hashes of a model's parts are those of one version of this package and of JAX. Where they differ, the names decide,
    and for a model whose code is among the parts the value of its loss where the file has the minimum.
    """
    kept, found, minimum = about["identity"] or {}, structure_of(model), about["minimum"]
    if found == kept:
        return True
    if any(found.get(part) != kept.get(part) for part in ("model", "parameters", "formulas")):
        return False
    if not kept["code"] and not (kept.get("base") or {}).get("code"):
        return True
    model = model.labelled(data.columns)
    loss = _loss(about["settings"]["loss_arguments"], model)
    if loss is None:
        return False
    try:
        data.check(model.domain)
        value = Objective(model, arranged(model, data), loss)(minimum["theta"])
    except DfdbayesError:
        return False
    return bool(np.isclose(value, minimum["value"], rtol=1e-8, atol=1e-8))


def _loss(described: Any, model: AbstractModel | None) -> AbstractLoss | None:
    """A loss by what was written of it; None where that needs a model or a function that is not there."""
    known = {} if model is None else {"model": model}
    try:
        return from_plain(described, AbstractLoss | None, "loss", **known)
    except LackingError:
        return None


def _curvature(saved: xr.Dataset | None) -> Curvature | None:
    if saved is None:
        return None
    parts: dict[str, Any] = {field.name: saved[field.name].values for field in fields(Curvature)}
    return Curvature(**parts | {"beta": float(parts["beta"])})


def _data(kept: xr.Dataset, about: dict[str, Any]) -> Dataset:
    repeats = kept["observations"].values if "observations" in kept else kept["counts"].values
    return Dataset(
        rows=kept["rows"].values.astype(np.int64),
        counts=kept["counts"].values,
        columns=tuple(about["columns"]),
        first=kept["first"].values,
        dropped=about["dropped"],
        source=about["source"],
        named=about["named"],
        notes=tuple(about["notes"]),
        given=kept["given"].values if "given" in kept else None,
        given_columns=tuple(about["given"]),
        cluster=kept["cluster"].values.astype(np.int64) if "cluster" in kept else None,
        repeats=None if np.array_equal(repeats, kept["counts"].values) else repeats,
        observed=kept["observed"].values.astype(bool) if "observed" in kept else None,
    )


def _require_declared(fit: Fit) -> None:
    """Refuse what is not of the type that it is declared to have; a model and a loss were made by functions that do."""
    hints = {name: hint for name, hint in get_type_hints(Fit).items() if name not in ("model", "loss")}
    parts = {name: (getattr(fit, name), hint) for name, hint in hints.items()}
    parts["settings"] = fit.settings, Chosen
    if fit.model is not None and fit.model.designs:
        parts["regression"] = fit.model.observed, Observed
    for name, (value, hint) in parts.items():
        from_plain(value, hint, name)
    if (len(fit.data.columns), len(fit.minimum.names)) != (fit.data.d, len(fit.minimum.vector)):
        raise ValueError("not as many names as columns or parameters")


def up_to_date(about: dict[str, Any], tree: xr.DataTree) -> dict[str, Any]:
    """What a file of version 0.2 says, as it would be written now."""
    found = about | {"format": FORMAT}
    if about["checks"] is not None:
        checks = dict(about["checks"])
        findings = {one["kind"]: one for one in (checks["goodness"] or {}).get("findings", [])}
        checks["misfits"] = [
            {"sentence": sentence, "remedy": remedy, "finding": findings[kind]}
            for sentence, remedy, kind in checks.get("misfits", [])
        ]
        if checks.get("agreement") is not None and checks["agreement"].get("apart") is None:
            checks["agreement"] = checks["agreement"] | {"apart": float("nan")}
        found["checks"] = checks
    if about["uncalibrated"] is not None:
        entries = list(entries_of(Table.of_dataset(tree["posterior"].to_dataset())))
        found["uncalibrated"] = to_plain(pd.DataFrame(about["uncalibrated"], index=entries))
    if about.get("influential") is not None:
        found["influential"] = to_plain(pd.DataFrame(about["influential"]).set_index("row"))
    return found


def _model_and_lost(
    about: dict[str, Any], data: Dataset, tree: xr.DataTree, model: AbstractModel | None
) -> tuple[AbstractModel | None, list[str]]:
    """The model of a file, or the one given for it, and what is lost of it."""
    settings = about["settings"]
    if model is not None:
        if settings.get("formulas") and not model.designs:
            model = _model_of(settings, data, tree, about, model)
        model = model.labelled(data.columns)
        names = tuple(about["minimum"]["names"])
        if model.space.names != names:
            raise ModelError(
                f"the model given has the parameters {', '.join(model.space.names[:6])}; those of the file are "
                f"{', '.join(names[:6])}"
            )
        return model, []
    try:
        model = _model_of(settings, data, tree, about)
    except ModelError:
        return None, ["model"]
    if not _is_of_the_file(model, about, data):  # a model of one's own that has the name of a built-in one
        return None, ["model"]
    priors = settings["prior_arguments"]
    known = {name: from_plain(plain, Distribution, name) for name, plain in priors.items() if plain is not None}
    model = model.with_space(model.space.with_priors(known)).labelled(data.columns)
    return model, [f"prior of {name}" for name, plain in priors.items() if plain is None]


def _restored(tree: xr.DataTree, about: dict[str, Any], model: AbstractModel | None) -> Fit:
    parts = {title: group.to_dataset() for title, group in tree.children.items()}
    data = _data(parts["observed_data"], about["data"])
    model, lost = _model_and_lost(about, data, tree, model)
    loss = _loss(about["settings"]["loss_arguments"], model)
    theta = from_plain(about["minimum"]["theta"], dict[str, float | Float[np.ndarray, "..."]], "theta")
    written = about | {"minimum": about["minimum"] | {"theta": theta}}
    kept, drawn = parts["calibration"], parts.get("selections")
    found = from_plain(
        {name: part for name, part in written.items() if name not in BESIDE}, Fit,
        model=model, data=data, loss=loss, missing=(*lost, *(["loss"] if loss is None else [])),
        incomplete=_data(parts["incomplete_data"], about["data"]) if "incomplete_data" in parts else None,
        groups={title: Table.of_dataset(own) for title, own in parts.items() if title not in OWN},
        selections={} if drawn is None else selections.from_table(Table.of_dataset(drawn)),
        names=tuple(about["minimum"]["names"]), minimisers=kept["minimisers"].values,
        outcomes=tuple(map(str, kept["outcomes"].values)), curvature=_curvature(parts.get("curvature")),
        edges=() if model is None else tuple(entry for p in model.space.of_role(EDGE) for entry in p.entries),
    )  # fmt: skip
    _require_declared(found)
    return found.prepared()  # what a file has not, before anybody looks at it
