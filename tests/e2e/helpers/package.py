# SPDX-License-Identifier: Apache-2.0
"""The package krait, as it lies in the build's folder."""

from conftest import BUILD

PACKAGE = {"PYTHONPATH": str(BUILD / "python")}
