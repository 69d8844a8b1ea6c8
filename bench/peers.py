# SPDX-License-Identifier: Apache-2.0
"""Tools of others that look at running programs: py-spy and Austin, from PyPI, in an environment of their own that is made once."""

import functools
import pathlib
import subprocess
import venv

import lib

PACKAGES = ("py-spy", "austin-dist", "austin-python")


@functools.lru_cache(maxsize=None)
def environment():
    """Its folder of programs."""
    folder = lib.OUT / "venv-peers"
    if not (folder / "made").exists():
        lib.say("making %s" % folder)
        venv.create(folder, clear=True, with_pip=True)
        for package in PACKAGES:
            subprocess.run([folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", package], check=True)
        (folder / "made").touch()
    return folder / "bin"


def py_spy():
    return environment() / "py-spy"


def runs(command):
    return subprocess.run([str(w) for w in [*command, "--version"]], capture_output=True).returncode == 0


@functools.lru_cache(maxsize=None)
def newer_libc():
    """What runs a program with the C library of the folder that tools/pythons makes; [] where there is none."""
    roots = [pathlib.Path(p.prefix[-1]) for p in lib.pythons() if p.prefix]
    loaders = [r / "lib64" / "ld-linux-x86-64.so.2" for r in roots]
    return [[loader, "--library-path", loader.parents[1] / "usr" / "lib" / "x86_64-linux-gnu"] for loader in loaders if loader.exists()][:1]


def austin(python):
    """Its command, for processes of this interpreter; raises lib.Missing. Its binary may need a newer libc than the machine has."""
    program = [environment() / "austin"]
    ways = [[*python.prefix, *program]] if python.prefix else [program] + [[*way, *program] for way in newer_libc()]
    for way in ways:
        if runs(way):
            return way
    raise lib.Missing("Austin's binary needs a newer C library than this machine has")


def inside(python, pid):
    """What stands before a command that opens the interpreter by its path where the process is."""
    return ["nsenter", "--target", pid, "--mount", "--root", "--wd"] if python.prefix else []


def versions():
    listing = lib.quiet([environment() / "pip", "list", "--format=freeze", "--disable-pip-version-check"]).stdout
    return {name: version for name, version in (line.split("==") for line in listing.split() if "==" in line) if name in PACKAGES}


def folded_of_austin(path):
    """Austin's own format as lines of text."""
    text = path.with_suffix(".txt")
    subprocess.run([environment() / "mojo2austin", path, text], check=True, capture_output=True)
    return text
