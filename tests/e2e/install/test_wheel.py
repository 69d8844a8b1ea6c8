# SPDX-License-Identifier: Apache-2.0
"""`pip install .`: one wheel brings the command, the agent and the package to every Python."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from conftest import Recorder, found_pythons, install, lender_of_pip, new_venv
from recording import ROOT

sys.path.insert(0, str(ROOT / "tools"))
pytestmark = pytest.mark.timeout(900)  # krait is built


# With the options and at the depth of build/: as far as they are its own, objects are those that tools/test has compiled already.
COMPILED_ONCE = {**os.environ, "CC": "ccache gcc", "CXX": "ccache g++"} if shutil.which("ccache") else None


def build_wheel(python, folder, build):
    """With that Python, into the folder. The build folder is for all of them: most of krait is compiled once."""
    pip = lender_of_pip(python) or new_venv(python, folder / "venv", pip=True)
    settings = [f"--config-settings={text}" for text in (f"build-dir={build}", "setup-args=-Dwerror=true")]
    run = pip.run("-m", "pip", "wheel", "--quiet", "--no-deps", *settings, "-w", folder, ROOT, timeout=800, env=COMPILED_ONCE)
    if run.returncode and "Could not find a version" in run.stderr:
        pytest.skip("what builds wheels cannot be had: no network")
    assert run.returncode == 0, run.stderr[-3000:]
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def build():
    folder = Path(tempfile.mkdtemp(prefix="build-wheel-", dir=ROOT))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def wheel(any_python, tmp_path_factory, build):
    """One for all of xdist's workers: whoever comes first builds it, with the headers that build/ has, if they are there."""
    python = next((p for p in found_pythons()[0] if p.origin == "system"), any_python)
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "wheel"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = list(folder.glob("*.whl"))
        return built[0] if built else build_wheel(python, folder, build)


def test_the_wheel_is_for_every_python_from_3_8_on(wheel):
    assert "-cp38-abi3-linux_" in wheel.name
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        tag = next(z.read(n).decode() for n in names if n.endswith("/WHEEL"))
    assert "krait/_agent.abi3.so" in names
    for name in ("scripts/krait", "data/share/man/man1/krait.1", "data/share/man/man1/krait-record.1", "data/share/bash-completion/completions/krait"):
        assert any(n.endswith(f".data/{name}") for n in names), name
    assert "Tag: cp38-abi3-linux_" in tag


def test_what_is_loaded_into_programs_needs_libc_alone(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as z:
        z.extractall(tmp_path)
    for path in (tmp_path / "krait").glob("*.so"):
        read = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
        needed = {line.split("[")[1].rstrip("]") for line in read.stdout.splitlines() if "(NEEDED)" in line}
        assert needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2"}, path.name


def oldest_and_newest(own=False):
    """With `own`, of those that are in this machine's own root."""
    pythons = sorted((p for p in found_pythons()[0] if "-" not in p.version and not (own and p.prefix)), key=lambda p: p.number)
    return [pytest.param(p, id=str(p)) for p in {str(p): p for p in (pythons[:1] + pythons[-1:])}.values()]


def of_this_machine():
    return [pytest.param(p, id=str(p)) for p in found_pythons()[0] if not p.prefix and "-" not in p.version]


def each_with_headers():
    """What a version adds the oldest has not, and what one drops the newest has not: those between add little."""
    between = {str(p.values[0]) for p in of_this_machine()} - {p.id for p in oldest_and_newest(own=True)}
    return [pytest.param(*p.values, id=p.id, marks=[pytest.mark.long] * (p.id in between)) for p in of_this_machine()]


@pytest.mark.parametrize("python", each_with_headers())
def test_the_agent_compiles_with_the_headers_of_every_python(python, tmp_path):
    folder = python.run("-c", "import sysconfig; print(sysconfig.get_path('include'))").stdout.strip()
    if not (Path(folder) / "Python.h").exists():
        pytest.skip(f"no headers of {python} in {folder}")
    defines = ["-D_GNU_SOURCE", "-DPy_LIMITED_API=0x03080000", '-DKRAIT_VERSION="0"']
    warnings = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]
    sources = sorted((ROOT / "src" / "python").glob("*.c"))
    command = ["cc", "-std=gnu17", "-fsyntax-only", *defines, *warnings, f"-I{ROOT}/src", f"-I{ROOT}/include", f"-isystem{folder}", *sources]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[:3000]


@pytest.mark.long
@pytest.mark.parametrize("python", of_this_machine())
def test_built_with_every_python_it_records_there(build, venv, tmp_path, python):
    (tmp_path / "wheel").mkdir()
    inside = venv(python)
    install(inside, build_wheel(python, tmp_path / "wheel", build))
    assert_records(inside, tmp_path)


@pytest.mark.parametrize("python", oldest_and_newest())
def test_installed_from_one_wheel_it_records(wheel, venv, tmp_path, python):
    pip = lender_of_pip(python)
    inside = venv(python, pip=not pip)
    install(inside, wheel, by=pip)
    assert_records(inside, tmp_path)


def assert_records(inside, tmp_path):
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
