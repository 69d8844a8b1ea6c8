# SPDX-License-Identifier: Apache-2.0
"""`make install`: what it installs is where the command and a Python look for it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, found_pythons
from recording import ROOT

pytestmark = pytest.mark.skipif(not shutil.which("meson"), reason="meson is not installed")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that stands for /, as `make install` leaves it where a krait of before lies in the way."""
    if BUILD != ROOT / "build":
        pytest.skip(f"{BUILD} is not what tools/install installs")
    root = tmp_path_factory.mktemp("root")
    old = root / "usr/local/lib/python3/dist-packages/krait"
    old.mkdir(parents=True)
    (old / "libkrait-preload.so").write_text("of another krait")
    env = {**os.environ, "PREFIX": "/usr/local", "DESTDIR": str(root), "PYTHONHOME": "/nowhere"}  # as a caller may have it
    run = subprocess.run([ROOT / "tools" / "install"], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"remove it: rm -r {old}\n" in run.stdout
    return root


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
    root = installed
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


def test_the_package_takes_the_command_that_was_installed_with_it(installed, any_python, tmp_path):
    """Not another one beside the interpreter."""
    (init,) = installed.rglob("krait/__init__.py")
    (tmp_path / "krait").write_text("#!/bin/sh\n")
    (tmp_path / "krait").chmod(0o755)
    (tmp_path / "python3").symlink_to(any_python.exe)
    env = {**os.environ, "KRAIT": "", "PYTHONPATH": str(init.parent.parent)}
    run = subprocess.run([tmp_path / "python3", "-c", "import krait; print(krait.command())"], env=env, capture_output=True, text=True)
    assert run.stdout.strip() == str(installed / "usr/local/bin/krait"), run.stderr


def test_the_installed_command_finds_what_it_preloads(installed, any_python, tmp_path):
    command = [installed / "usr/local/bin/krait", "record", "-o", tmp_path / "trace", "--", any_python.exe, "-c", "1"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and "1 process, 1 thread" in run.stderr
    assert "ld.so" not in run.stderr  # the other krait's was not taken
    assert list((tmp_path / "trace").glob("*/metadata"))


@pytest.mark.skipif(not Path("/etc/debian_version").exists(), reason="other systems look in other folders")
def test_the_library_is_where_the_loader_and_pkg_config_look(installed):
    """Without dpkg-dev too, which meson asks: the folder is told to it."""
    folder = "/usr/local/" + subprocess.run([ROOT / "tools" / "libdir"], capture_output=True, text=True, check=True).stdout.strip()
    assert (installed / folder[1:] / "libkrait-read.so.2").exists()
    loader = subprocess.run(["/sbin/ldconfig", "-v", "-N", "-X"], capture_output=True, text=True)
    assert f"\n{folder}:" in loader.stdout or f"Can't stat {folder}" in loader.stderr
    searched = subprocess.run(["pkg-config", "--variable=pc_path", "pkg-config"], capture_output=True, text=True).stdout.strip().split(":")
    assert f"{folder}/pkgconfig" in searched


@pytest.mark.parametrize("python", [pytest.param(p, id=str(p)) for p in found_pythons()[0] if not p.prefix])
def test_below_its_own_prefix_every_python_looks_in_the_folder_that_is_chosen(python):
    tool = Path(__file__).parents[3] / "tools" / "packages_folder.py"
    prefixes = {python.run("-c", "import sys; print(sys.prefix)").stdout.strip()}
    prefixes |= {"/usr/local"} & {str(Path(p).parents[2]) for p in looks_in(python.exe) if p.startswith("/usr/local/lib/")}
    for prefix in prefixes:
        below = python.run(tool, prefix).stdout.strip()
        assert f"{prefix}/{below}" in looks_in(python.exe), prefix


@pytest.mark.long
def test_after_the_demo_its_reader_types_krait_and_imports_it(any_python, tmp_path):
    if BUILD != ROOT / "build":
        pytest.skip(f"{BUILD} is not what tools/demo builds")
    demo = ["env", "-u", "TERM", "PYTHONHOME=/nowhere", "sh", ROOT / "tools" / "demo"]
    run = subprocess.run(demo, capture_output=True, text=True, timeout=250)
    if "pip could not install" in run.stderr:
        pytest.skip("what the demo records cannot be had: no network")
    assert run.returncode == 0, run.stderr
    (line,) = (line for line in run.stdout.splitlines() if line.startswith("    export "))
    script = f"{line}; krait --version && {any_python.exe} -c 'import krait; print(krait.command())'"
    typed = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert typed.stdout == f"krait 0.1.0\n{ROOT}/build/krait\n", typed.stderr
    assert "make install" in run.stdout
