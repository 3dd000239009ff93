"""What can be asked of a fitted map: its sites."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ...errors import SettingError
from ...results.accessor import ACCESSORS, AbstractAccessor
from .model import Autologistic


@ACCESSORS.register("map")
class MapAccessor(AbstractAccessor):
    """``fit.map``: one observed map."""

    fits = "maps (dfd.models.Autologistic)"

    def sites(self, interval: float = 0.95) -> pd.DataFrame:
        """Each site: what was observed, and its category's chance given its neighbours; see `Fit.predict`."""
        self._warn_of_draws()
        model, checks = self.fit.model, self.fit.checks
        assert isinstance(model, Autologistic)
        return model.predict(self.fit.joint_draws, interval, None if checks is None else checks.sites)

    def predict(self, newdata: Any = None, interval: float = 0.95) -> pd.DataFrame:
        """The same, as of any model: a map has no other sites than its own."""
        if newdata is not None:
            raise SettingError("a map predicts its own sites; give those without a value a row, missing='impute'")
        return self.sites(interval)
