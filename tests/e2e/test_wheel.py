# SPDX-License-Identifier: Apache-2.0
"""`pip install .`: one wheel brings the command, the agent and the package to every Python."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import Interpreter, Recorder, found_pythons, install
from recording import ROOT

sys.path.insert(0, str(ROOT / "tools"))
pytestmark = pytest.mark.timeout(900)  # krait is built: 40 s of CPU time


@pytest.fixture(scope="module")
def wheel(any_python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    made = any_python.run("-m", "venv", folder / "venv")
    assert made.returncode == 0, made.stderr
    pip = Interpreter(any_python.version, (), str(folder / "venv" / "bin" / "python"), any_python.kind)
    run = pip.run("-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT, timeout=800)
    if run.returncode and "Could not find a version" in run.stderr:
        pytest.skip("what builds wheels cannot be had: no network")
    assert run.returncode == 0, run.stderr[-3000:]
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_is_for_every_python_from_3_8_on(wheel):
    assert "-cp38-abi3-linux_" in wheel.name
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        tag = next(z.read(n).decode() for n in names if n.endswith("/WHEEL"))
    assert "krait/_agent.abi3.so" in names and any(n.endswith("/scripts/krait") for n in names)
    assert "Tag: cp38-abi3-linux_" in tag


def test_what_is_loaded_into_programs_needs_libc_alone(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as z:
        z.extractall(tmp_path)
    for path in (tmp_path / "krait").glob("*.so"):
        read = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
        needed = {line.split("[")[1].rstrip("]") for line in read.stdout.splitlines() if "(NEEDED)" in line}
        assert needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2"}, path.name


def oldest_and_newest():
    pythons = sorted((p for p in found_pythons()[0] if "-" not in p.version), key=lambda p: p.number)
    return [pytest.param(p, id=str(p)) for p in {str(p): p for p in (pythons[:1] + pythons[-1:])}.values()]


@pytest.mark.parametrize("python", oldest_and_newest())
def test_installed_from_one_wheel_it_records(wheel, venv, tmp_path, python):
    inside = venv(python)
    install(inside, wheel)
    # Nothing of the build folder may help: only the installed command is called, away from the sources.
    record = Recorder(str(Path(inside.exe).parent / "krait"), tmp_path)
    run = record(inside, "-c", "def f(): pass\nfor _ in range(10): f()", env={"KRAIT": ""})
    assert run.status == 0, run.stderr
    assert run.check().calls()["f"] == 10
    run = inside.run("-c", "import krait\nwith krait.recording('t'):\n    len('')\nprint(krait.__version__)", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "0.1.0\n"), run.stderr
    assert inside.run("-m", "krait", "--version", cwd=tmp_path).stdout == "krait 0.1.0\n"


def test_a_free_threaded_python_is_refused_with_the_reason(monkeypatch):
    import sysconfig
    import types

    fake = types.ModuleType("mesonpy")  # the refusal comes before anything of it is called
    monkeypatch.setitem(sys.modules, "mesonpy", fake)
    import build_wheel

    real = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else real(name))
    with pytest.raises(SystemExit, match="free-threaded"):
        build_wheel.build_wheel("nowhere")


def test_retagging_keeps_the_wheels_record_right(wheel):
    """Every file's hash in RECORD is that of the file: pip checks it no longer, others do."""
    import base64
    import hashlib

    with zipfile.ZipFile(wheel) as z:
        record = next(n for n in z.namelist() if n.endswith("/RECORD"))
        for line in z.read(record).decode().splitlines():
            name, digest, _ = line.rsplit(",", 2)
            if name != record:
                want = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(z.read(name)).digest()).rstrip(b"=").decode()
                assert digest == want, name
