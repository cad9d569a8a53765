"""Macros of dbt-sparkevolve."""

import os

PACKAGE_PATH = os.path.dirname(__file__)
