# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: the command, the interpreters, recordings.

KRAIT            the command under test; else build/krait
KRAIT_PYTHONS    run with these interpreters only: versions such as 3.8,3.13; else all that tools/pythons finds
"""

import fcntl
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

# Tests use helpers/ by name.
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "helpers")]
import callers_state  # noqa: E402
import kernel_made  # noqa: E402
from browser import browser, opened  # noqa: E402
from recording import ROOT, Recording  # noqa: E402
from running import Programs  # noqa: E402

KRAIT = os.environ.get("KRAIT", str(ROOT / "build" / "krait"))
BUILD = Path(KRAIT).resolve().parent
callers_state.forget()


@dataclass(frozen=True)
class Interpreter:
    version: str  # 3.13.0
    prefix: tuple  # what has to stand before a command that runs it: words, mostly none
    exe: str
    kind: str  # shared or static

    @property
    def number(self):
        return tuple(int(n) for n in self.version.split("-")[0].split(".")[:2])

    @property
    def has_monitoring(self):
        return self.number >= (3, 12)

    @property
    def origin(self):
        return "sid" if self.prefix else "pyenv" if "/versions/" in self.exe else "system" if self.exe.startswith("/usr/bin/") else "path"

    def __str__(self):
        return f"py{'.'.join(map(str, self.number))}-{self.origin}"

    def run(self, *args, **options):
        """Runs the interpreter without krait."""
        options = {"capture_output": True, "text": True, "timeout": 120, **options}
        return subprocess.run([*self.prefix, self.exe, *map(str, args)], **options)


LISTED = "KRAIT_TEST_PYTHONS_LISTED"


@lru_cache
def found_pythons():
    """(interpreters, [(version, why not)])"""
    if LISTED not in os.environ:  # xdist's workers have the environment of the process that starts them
        os.environ[LISTED] = subprocess.run([ROOT / "tools" / "pythons", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [line.split("\t") for line in os.environ[LISTED].splitlines()]
    wanted = [v for v in os.environ.get("KRAIT_PYTHONS", "").split(",") if v]
    chosen = [row for row in rows if not wanted or ".".join(row[row[0] == "skip"].split(".")[:2]) in wanted]
    pythons = [Interpreter(v, tuple(how.split()[:-1]), how.split()[-1], kind) for v, how, kind in chosen if v != "skip"]
    return pythons, [tuple(row[1:]) for row in chosen if row[0] == "skip"]


def python_params():
    pythons, absent = found_pythons()
    return [pytest.param(p, id=str(p)) for p in pythons] + [
        pytest.param(None, id=f"py{version}", marks=pytest.mark.skip(reason=f"no Python {version} here: {why}"))
        for version, why in absent
    ]


def pytest_generate_tests(metafunc):
    """`python` is one interpreter of every family of versions. The marker pythons(least, most) narrows that to versions;
    few_pythons takes one interpreter of each kind of hook, where any gives the same result, every_python one of each version.
    With --long all take all of them."""
    own = [mark for mark in metafunc.definition.iter_markers("parametrize") if "python" in mark.args[0]]
    if "python" not in metafunc.fixturenames or own:
        return
    params = python_params()
    if marker := metafunc.definition.get_closest_marker("pythons"):
        least, most = marker.kwargs.get("least", (3, 8)), marker.kwargs.get("most", (3, 99))
        params = [p for p in params if p.values[0] is None or least <= p.values[0].number <= most]
    if not metafunc.config.getoption("--long"):
        is_marked = metafunc.definition.get_closest_marker
        if is_marked("few_pythons"):
            params = one_of_each_hook(params)
        elif is_marked("every_python"):
            params = one_of_each_version(params)
        else:
            params = one_of_each_family(params, metafunc.definition.nodeid)
    metafunc.parametrize("python", params, indirect=False)


def is_for_few(item, few):
    """few_pythons on one value of a parameter: that one is for the few, the others are for all."""
    python = getattr(item, "callspec", None) and item.callspec.params.get("python")
    number = getattr(python, "number", None)  # a test may have values of its own under that name
    return number is None or family(number) in few or not item.get_closest_marker("few_pythons")


def one_of_each_hook(params):
    """Of the interpreters that need no other root, the newest with sys.monitoring and the newest without."""
    near = [p for p in params if p.values[0] and not p.values[0].prefix]
    kinds = {p.values[0].has_monitoring: p for p in sorted(near, key=lambda p: p.values[0].number)}
    return list(kinds.values()) or params[:1]


def one_of_each_version(params):
    """Of two builds of a version the one that one_of_each_hook does not take."""
    taken = {str(p.values[0]) for p in one_of_each_hook(params)}
    by_version = {}
    for p in params:
        version = p.values[0].number if p.values[0] else p.id
        if version not in by_version or str(by_version[version].values[0]) in taken:
            by_version[version] = p
    return list(by_version.values())


# Versions whose frames and hooks are like those of an earlier one: what one of a family shows, the others do.
ALIKE = {(3, 9): (3, 8), (3, 10): (3, 8), (3, 13): (3, 12), (3, 15): (3, 14)}


def family(number):
    return ALIKE.get(number, number)


def one_of_each_family(params, test):
    """The test's name decides which one: a test always runs on the same ones, and every version runs many tests."""
    families = {}
    for p in one_of_each_version(params):
        families.setdefault(family(p.values[0].number) if p.values[0] else p.id, []).append(p)
    return [members[zlib.crc32(test.encode()) % len(members)] for members in families.values()]


@pytest.fixture(autouse=True)
def leaves_no_process(request):
    """What a test that failed, or was interrupted, started is ended with it."""
    before = callers_state.processes()
    yield
    if left := callers_state.end_processes(before):
        warnings.warn(f"{request.node.nodeid} left behind: {'; '.join(left)}", stacklevel=1)


def pytest_unconfigure(config):
    callers_state.end_processes(below=True)


@pytest.fixture
def rounds(request):
    """rounds(few, many): how often a test tries what happens by chance: many times with --long."""
    return lambda few, many: many if request.config.getoption("--long") else few


@pytest.fixture(scope="session")
def any_python(own_pythons):
    """One interpreter, for what does not depend on its version."""
    return max(own_pythons, key=lambda p: p.number)


@pytest.fixture(scope="session")
def own_pythons():
    """All interpreters that need no other root: one can execute another."""
    pythons = [p for p in found_pythons()[0] if not p.prefix and "-" not in p.version]
    if not pythons:
        pytest.skip("no Python of this machine's own")
    return pythons


@pytest.fixture(scope="session")
def krait():
    """The command's path."""
    if not os.access(KRAIT, os.X_OK):
        pytest.fail(f"{KRAIT} is not built; run: make")
    return KRAIT


@pytest.fixture(scope="session")
def everyones_krait():
    """The command and its package where every user may run them: the build may lie below a folder that only its owner may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        shutil.copy(KRAIT, name)
        shutil.copytree(BUILD / "python" / "krait", Path(name) / "python" / "krait", ignore=shutil.ignore_patterns("__pycache__", "*.p"))
        yield f"{name}/{Path(KRAIT).name}"


def verb_json(krait, *args):
    run = subprocess.run([krait, *map(str, args), "--json"], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture
def run(krait, tmp_path):
    """run("report", folder, "--tree") in the test's folder, with its exit status checked; files of one verb begin with that."""

    def verb(*words, code=0):
        done = subprocess.run([krait, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stderr
        return done

    return verb


@pytest.fixture
def info(krait):
    return lambda folder, *options: verb_json(krait, "info", folder, *options)


@pytest.fixture
def report(krait):
    """The functions of `krait report --json`."""
    return lambda folder, *options: verb_json(krait, "report", folder, *options)["functions"]


@pytest.fixture
def events(krait):
    """Events as `krait cat --json` prints them."""

    def read(folder, expression=None):
        words = ["--filter", expression] if expression else []
        run = subprocess.run([krait, "cat", "--json", *words, str(folder)], capture_output=True, text=True, timeout=120)
        others = [line for line in run.stderr.splitlines() if "no event of this trace is called" not in line]
        assert run.returncode == 0 and not others, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines()]

    return read


@pytest.fixture
def cat(krait):
    def lines(folder, *words):
        run = subprocess.run([krait, "cat", *words, str(folder)], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        return run.stdout.splitlines()

    return lines


@contextmanager
def one_at_a_time():
    """There is one kernel, each recording of it clears away what dead ones left, and what a user may lock for rings is shared by
    his programs."""
    with open("/tmp/krait-kernel-tests.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def alone():
    """One test at a time."""
    with one_at_a_time():
        yield


@pytest.fixture
def synth(tmp_path):
    """synth(script) writes a recording with given times and returns its folder; tests/synth.c says the script."""

    def make(script, name="synth"):
        run = subprocess.run(
            [BUILD / "tests" / "synth", tmp_path / name], input=textwrap.dedent(script), capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr
        return tmp_path / name

    return make


@pytest.fixture
def both(synth):
    """both(calls, kernel's events): a recording with both parts, times in microseconds."""

    def make(calls, events, name="both", **options):
        folder = synth(calls, name)
        begin = kernel_made.EPOCH // 1000
        if "losses" in options:
            options["losses"] = [(cpu, begin + us, end and begin + end) for cpu, us, end in options["losses"]]
        kernel_made.write(folder / "kernel", [(begin + us, *rest) for us, *rest in events], **options)
        return folder

    return make


@pytest.fixture
def programs(tmp_path):
    """programs.start(python, source): a program that runs beside the test and ends with it; see Programs."""
    made = Programs(tmp_path)
    yield made
    made.end()


class Recorder:
    """Runs commands under `krait record`, in a folder of the test's own."""

    def __init__(self, krait, folder):
        self.krait, self.folder, self.count = krait, folder, 0

    def new_trace(self):
        self.count += 1
        return self.folder / f"trace{self.count}"

    def script(self, text, name="app.py"):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def command(self, python, words, trace, options=()):
        return [*python.prefix, self.krait, "record", "-o", str(trace), *map(str, options), "--", *map(str, words)]

    def start(self, python, *args, options=(), trace=None, **popen):
        """A Popen of a recording that goes on, and the folder."""
        trace = trace or self.new_trace()
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": self.folder, **popen}
        return subprocess.Popen(self.command(python, [python.exe, *args], trace, options), **popen), trace

    def words(self, python, *words, options=(), timeout=120, trace=None, env=None, **run):
        """Records any command line; `python` says where it runs."""
        trace = trace or self.new_trace()
        run = {"capture_output": True, "text": True, "cwd": self.folder, **run}
        env = {**os.environ, **env} if env else None
        result = subprocess.run(self.command(python, words, trace, options), timeout=timeout, env=env, **run)
        return Recording(trace, result)

    def __call__(self, python, *args, **options):
        """Records the interpreter with these arguments."""
        return self.words(python, python.exe, *args, **options)

    def text(self, python, text, *args, ok=True, **options):
        """Records a program given as text; with `ok` it has to end well."""
        result = self(python, self.script(text), *args, **options)
        assert not ok or result.status == 0, result.stderr
        return result


@pytest.fixture
def record(krait, tmp_path):
    """record(python, *args), record.text(python, source), record.words(python, *command): see Recorder."""
    return Recorder(krait, tmp_path)


@pytest.fixture
def venv(tmp_path, tmp_path_factory):
    """venv(python) makes a virtual environment of the test's own, and gives the interpreter in it. Without pip it is there at once.
    With packages it is one for all tests and workers of this run: it takes ten seconds, and nobody changes it."""
    base = tmp_path_factory.getbasetemp()
    of_run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(python, *packages, pip=True):
        if not packages:
            return new_venv(python, tmp_path / "venv", pip)
        folder = of_run / "-".join(["venv", str(python), *packages])
        with open(f"{folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (folder / "complete").exists():
                return inside_venv(python, folder)
            by = lender_of_pip(python)
            inside = new_venv(python, folder, pip=not by)
            install(inside, *packages, by=by)
            (folder / "complete").touch()
            return inside

    return make


def inside_venv(python, folder):
    return Interpreter(python.version, python.prefix, str(folder / "bin" / "python"), python.kind)


def new_venv(python, folder, pip):
    made = python.run("-m", "venv", "--clear", *([] if pip else ["--without-pip"]), folder)
    if made.returncode:
        pytest.skip(f"{python} makes no virtual environment: {(made.stdout + made.stderr).strip().splitlines()[-1]}")
    return inside_venv(python, folder)


# Prints what runs an interpreter's pip for another: the file that `pip --python` runs too, after it has started twice; else, of a
# Debian's without pip, the wheel that ensurepip would install.
RUNNER = """
import glob, os, sysconfig
try:
    import pip
    runs = os.path.join(os.path.dirname(pip.__file__), "__pip-runner__.py")
except ImportError:
    runs = os.path.join(sysconfig.get_config_var("WHEEL_PKG_DIR") or "", "pip-*.whl")
print(*[path if path.endswith(".py") else os.path.join(path, "pip") for path in glob.glob(runs)[:1]])
"""


@lru_cache(maxsize=None)
def runner_of_pip(python):
    return python.run("-c", RUNNER).stdout.strip()


def lender_of_pip(python):
    """The interpreter, if its pip can install for another: an environment needs none of its own then, which takes seconds to make."""
    return python if runner_of_pip(python) else None


@contextmanager
def certificates(python):
    """The environment of a pip that goes by this machine's certificates, also where the interpreter has another root."""
    here = os.environ.get("PIP_CERT", "")
    if not python.prefix or not here:
        yield os.environ
        return
    with tempfile.NamedTemporaryFile(prefix="certificates-", suffix=".pem") as copy:
        copy.write(Path(here).read_bytes())
        copy.flush()
        yield {**os.environ, "PIP_CERT": copy.name, "SSL_CERT_FILE": copy.name}


def is_offline(errors):
    """What pip says where it reaches no index."""
    return "Could not find a version" in errors or "NewConnectionError" in errors


def install(python, *packages, by=None):
    """pip install into a virtual environment, with its own pip or that of another interpreter; without a network that is a skip."""
    pip = [runner_of_pip(by)] if by else ["-m", "pip"]
    with certificates(python) as environment:
        run = python.run(*pip, "install", "--quiet", "--disable-pip-version-check", *packages, env=environment)
    if run.returncode:
        (pytest.skip if is_offline(run.stderr) else pytest.fail)(f"pip install {' '.join(map(str, packages))}: {run.stderr.strip()[-300:]}")


@pytest.fixture(scope="session")
def chromium():
    """One browser: a test opens pages of its own in it, and closes them."""
    with browser() as made:
        yield made


@pytest.fixture
def open_page(krait, chromium):
    """open_page(folder, hash="") in a window of 1280 pixels."""
    made = []

    def show(folder, hash=""):
        made.append(opened(krait, chromium, folder, hash))
        return made[-1].__enter__()

    yield show
    for each in made:
        each.__exit__(None, None, None)


@pytest.fixture
def small_disk(tmp_path):
    """small_disk(bytes): a folder on a file system of this size."""
    mounted = []

    def make(size):
        folder = tmp_path / f"small{len(mounted)}"
        folder.mkdir()
        run = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, text=True)
        if run.returncode:
            pytest.skip(f"no right to mount a small file system: {run.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", "--lazy", folder], check=True)


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the long tests too, and every test of `python` on all versions")


# Each worker begins with a part of the tests, in this order, and takes from others' ends what they have not begun. First those of
# minutes, so that the workers end together; then those of the page, which wait a lot: one worker's browser is beside the programs of
# the others, and not four at the end.
FIRST = ("test_cpython", "test_record_vm", "view/test_page")


def place(item):
    return next((place for place, name in enumerate(FIRST) if name in item.nodeid), len(FIRST))


def pytest_collection_modifyitems(config, items):
    """Tests for --long are left out by name, not counted as skipped: nobody asked for them."""
    items.sort(key=place)
    if config.getoption("--long"):
        return
    few = {family(p.values[0].number) for p in one_of_each_hook(python_params()) if p.values[0]}
    is_kept = {i: not i.get_closest_marker("long") and is_for_few(i, few) for i in items}
    config.hook.pytest_deselected(items=[i for i in items if not is_kept[i]])
    items[:] = [i for i in items if is_kept[i]]


def pytest_collection_finish(session):
    """The tests live to the end: the garbage collector need not look through them again and again."""
    gc.freeze()


def pytest_report_header(config):
    pythons, absent = found_pythons()
    return [f"krait: {KRAIT}", "pythons: " + " ".join(map(str, pythons))] + [f"no Python {v}: {why}" for v, why in absent]


