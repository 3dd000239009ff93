"""Lattices: Ising and Potts models."""

from ...core.registry import import_modules

import_modules(__name__)
