# SPDX-License-Identifier: Apache-2.0
"""tools/printable: the table of the characters that repr() shows as they are."""

import pytest
from recording import ROOT


@pytest.mark.every_python
def test_the_table_is_that_of_the_interpreter(python):
    check = python.run(ROOT / "tools" / "printable", "check")
    assert check.returncode == 0, check.stderr
