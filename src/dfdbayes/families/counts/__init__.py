"""Counts and binary columns."""

from ...core.registry import import_modules

import_modules(__name__)
