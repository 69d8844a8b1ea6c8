# SPDX-License-Identifier: Apache-2.0
"""`make install`: what it installs is where the command and a Python look for it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, found_pythons

pytestmark = pytest.mark.skipif(not shutil.which("meson"), reason="meson is not installed")


@pytest.fixture
def installed(tmp_path):
    """(folder that stands for /, prefix)"""
    options = subprocess.run(["meson", "introspect", "--buildoptions", BUILD], capture_output=True, text=True, check=True).stdout
    (prefix,) = (o["value"] for o in json.loads(options) if o["name"] == "prefix")
    if prefix != "/usr/local":
        pytest.skip(f"{BUILD} is made to be installed in {prefix}, where no Python may look")
    run = subprocess.run(
        ["meson", "install", "-C", BUILD, "--no-rebuild"], env={**os.environ, "DESTDIR": str(tmp_path / "root")}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return tmp_path / "root", prefix


def looks_in(exe):
    """Where a Python looks for packages; folders that are not there yet too, which site leaves out of sys.path."""
    run = subprocess.run([exe, "-c", "import site, sys; print(*sys.path, *site.getsitepackages(), sep='\\n')"], capture_output=True, text=True)
    return run.stdout.splitlines()


def mesons_python():
    """The one that runs meson, which is the one that meson.build finds; None: it cannot be told."""
    with open(shutil.which("meson"), "rb") as file:
        first = file.readline().decode(errors="replace")
    return first[2:].strip() if first.startswith("#!") and "python" in first else None


def test_the_package_is_where_a_python_looks(installed):
    root, _ = installed
    (init,) = root.rglob("krait/__init__.py")
    assert {p.name for p in init.parent.iterdir()} >= {"__main__.py", "_agent.abi3.so", "libkrait-preload.so"}
    packages = "/" + str(init.parent.parent.relative_to(root))
    exe = mesons_python()
    if exe not in ("/usr/bin/python3", "/usr/local/bin/python3"):
        pytest.skip(f"meson is run by {exe}, which looks for nothing in /usr/local")
    assert packages in looks_in(exe)
    env = {**os.environ, "KRAIT": "", "PYTHONPATH": str(init.parent.parent)}
    run = subprocess.run([exe, "-c", "import krait; print(krait.command())"], env=env, capture_output=True, text=True)
    assert run.stdout.strip() == str(root / "usr/local/bin/krait"), run.stderr


def test_the_installed_command_finds_what_it_preloads(installed, any_python, tmp_path):
    root, prefix = installed
    command = [root / prefix[1:] / "bin" / "krait", "record", "-o", tmp_path / "trace", "--", any_python.exe, "-c", "1"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and "1 process, 1 thread" in run.stderr
    assert list((tmp_path / "trace").glob("*/metadata"))


@pytest.mark.parametrize("python", [pytest.param(p, id=str(p)) for p in found_pythons()[0] if not p.prefix])
def test_below_its_own_prefix_every_python_looks_in_the_folder_that_is_chosen(python):
    tool = Path(__file__).parents[2] / "tools" / "packages_folder.py"
    prefixes = {python.run("-c", "import sys; print(sys.prefix)").stdout.strip()}
    prefixes |= {"/usr/local"} & {str(Path(p).parents[2]) for p in looks_in(python.exe) if p.startswith("/usr/local/lib/")}
    for prefix in prefixes:
        below = python.run(tool, prefix).stdout.strip()
        assert f"{prefix}/{below}" in looks_in(python.exe), prefix
