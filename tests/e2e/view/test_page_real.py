# SPDX-License-Identifier: Apache-2.0
"""The page of `krait view` on recordings of real programs, and on kernel traces of LTTng: it shows what the other verbs print."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser import opened
from conftest import BUILD, verb_json
from corpus import CORPUS  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cat"))

SERVER = """
import http.server, threading, urllib.request

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = render(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

def render(path):
    return "".join(f"<p>{i} {path}</p>" for i in range(300)).encode()

def load(port, n):
    for i in range(n):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/{i}").read()

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, name="server").start()
clients = [threading.Thread(target=load, args=(server.server_port, 15), name=f"client{i}") for i in range(4)]
[c.start() for c in clients]
[c.join() for c in clients]
server.shutdown()
"""
TESTED = """
import json, pytest

@pytest.mark.parametrize("n", range(20))
def test_round_trip(n):
    assert json.loads(json.dumps({"n": [n] * n})) == {"n": [n] * n}

def test_that_fails():
    assert sum(range(10)) == 46
"""
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def ns(text):
    value, unit = text.split()
    return float(value.replace(",", "")) * UNITS[unit]


def near(value):
    return pytest.approx(value, rel=2e-3, abs=1)


def name_of(function):
    full = f"{function['module']}.{function['name']}" if function["module"] else function["name"]
    return full + (" (C)" if function["kind"] == "c" else "")


def assert_functions(page, krait, folder):
    """The table's first rows, and the calls that a click on one lists, are those of krait report."""
    page.press("1")
    told = verb_json(krait, "report", folder, "--limit", "0")["functions"]
    rows = [row for row in page.rows() if row]
    assert len(rows) > 5
    for row, function in zip(rows, told):
        named, self_ns, total, calls = row[0], row[1], row[-7], row[-6]
        assert (named, int(calls.replace(",", ""))) == (name_of(function), function["calls"])
        assert ns(self_ns) == near(function["self_ns"]) and ns(total) == near(function["total_ns"])
    page.page.locator(".table-rows .row").nth(2).click()
    page.press("3")
    assert page.text(".finder-title h2") == name_of(told[2]) and page.text(".note").startswith(f"{told[2]['calls']:,} call")
    assert ns(page.text(".note .actions button").removeprefix("Slowest: ")) == near(told[2]["max_ns"])


def assert_syscalls(page, krait, folder):
    page.press("6")
    told = {row["name"]: row for row in verb_json(krait, "states", folder, "--by", "syscall", "--limit", "0")["syscalls"]}
    rows = page.rows(".table-rows .row")
    assert rows
    for name, took, calls, errors, *_, longest in rows:
        row = told[name]
        assert (int(calls.replace(",", "")), int(errors.replace(",", ""))) == (row["calls"], row["errors"]), name
        assert ns(took) == near(row["total_ns"]) and ns(longest) == near(row["max_ns"])


def assert_events(page, krait, folder, name):
    """As many events as krait cat prints."""
    printed = subprocess.run([krait, "cat", "--filter", f'name == "{name}"', folder], capture_output=True, text=True, check=True).stdout
    page.press("0", "Escape", "8")
    page.page.locator(".event-filter").fill(f'name == "{name}"')
    page.page.wait_for_function(
        """(text) => {
          for (const rows of document.querySelectorAll('.table-rows')) rows.scrollTop = rows.scrollHeight; // more is loaded there
          return [...document.querySelectorAll('.message')].some((said) => said.textContent.startsWith(text));
        }""",
        arg=f"{len(printed.splitlines()):,} event", timeout=60_000,
    )  # fmt: skip


@pytest.mark.long
def test_the_demos_recording(krait, chromium):
    """`make demo` has recorded flake8."""
    folder = BUILD.parent / "build-demo" / "trace"
    if not folder.exists():
        pytest.skip("make demo was not run")
    with opened(krait, chromium, folder) as page:
        assert_functions(page, krait, folder)
        assert_events(page, krait, folder, "process:*")
        assert page.errors == []


@pytest.mark.long
def test_a_web_server_under_load(krait, record, any_python, chromium, alone):
    kernel = ("--kernel",) if os.geteuid() == 0 else ()
    folder = record.text(any_python, SERVER, options=kernel).path
    with opened(krait, chromium, folder) as page:
        assert_functions(page, krait, folder)
        if page.page.evaluate("() => window.krait.context.trace.kernel") and kernel:
            assert_syscalls(page, krait, folder)
            assert_events(page, krait, folder, "syscall_entry_accept4")
        assert page.errors == []


@pytest.mark.long
def test_pytest_of_a_package(krait, record, any_python, chromium, tmp_path):
    (tmp_path / "test_package.py").write_text(TESTED)
    if any_python.prefix:
        pytest.skip("the tests' own interpreter, which has pytest, cannot be run there")
    folder = record.words(any_python, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_package.py").path
    with opened(krait, chromium, folder) as page:
        assert_functions(page, krait, folder)
        page.press("/")
        page.page.keyboard.type("test_round_trip")
        page.pause()
        page.press("Enter")
        assert page.text(".note").startswith("20 calls")
        assert page.errors == []


@pytest.mark.parametrize("name", ["basic-kernel-analysis", "picotrace"])
def test_kernel_traces_of_lttng(krait, chromium, tmp_path, name):
    found = sorted(path.parent for path in CORPUS.glob(f"**/{name}/kernel/metadata")) if CORPUS.exists() else []
    if not found:
        pytest.skip(f"no trace {name} in {CORPUS}")
    folder = shutil.copytree(found[0], tmp_path / "trace")  # the index is kept beside it
    with opened(krait, chromium, folder) as page:
        assert_syscalls(page, krait, folder)
        page.press("5")
        states = {(row[6], row[5]): ns(row[0]) for row in page.rows()}
        told = {row["tid"]: row for row in verb_json(krait, "states", folder, "--by", "thread", "--limit", "0")["threads"]}
        words = {"on CPU": "user_ns", "on CPU, in the kernel": "system_ns", "ready: woken": "woken_ns"}
        words |= {f"waits: {what}": f"blocked_{what}_ns" for what in ("disk", "network", "timer", "lock", "other")}
        checked = [(states[who, state], told[int(who.split()[-1])][words[state]]) for who, state in states if state in words]
        assert checked and all(shown == near(expected) for shown, expected in checked)
        assert page.errors == []
