# SPDX-License-Identifier: Apache-2.0
"""krait view --perfetto hands the exported trace to Perfetto's page, and to no other."""

import fcntl
import re
import signal
import subprocess
import urllib.error
import urllib.request

import pytest
from kernel_made import begins, ends, switch
from kernel_made import write as write_kernel
from wall_made import CODES

PAGE = "https://ui.perfetto.dev"
CALLS = CODES + "0us call 1\n100us call 2\n400us return\n1000us return\n"
# What Perfetto's page does with its parameter, and nothing else of it: its page is on the network.
STAND_IN = """<!doctype html><title>stand-in</title><pre></pre><script type="module">
const url = new URLSearchParams(location.hash.slice(location.hash.indexOf('?'))).get('url');
const answer = await fetch(url).then((r) => r.arrayBuffer()).then((b) => 'bytes ' + b.byteLength, (e) => 'refused ' + e);
document.querySelector('pre').textContent = answer;
</script>"""


@pytest.fixture
def handed(krait, synth):
    """(link, address of the trace, its bytes as krait export writes them): the port is one for the whole machine."""
    with open("/tmp/krait-perfetto-tests.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        trace = synth(CALLS)
        subprocess.run([krait, "export", trace, "--to", "perfetto", "-o", trace / "x.pftrace"], check=True, capture_output=True)
        words = [krait, "view", "--perfetto", "--no-open", trace]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        link = process.stdout.readline().strip()
        found = re.fullmatch(rf"{PAGE}/#!/\?url=(http://127\.0\.0\.1:9001/[0-9a-f]{{32}}\.pftrace)", link)
        assert found, link + process.stderr.read()
        yield link, found[1], (trace / "x.pftrace").read_bytes()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 0 and "The browser, not krait, loads Perfetto's page from the network" in said


@pytest.fixture
def kernel_handed(krait, tmp_path):
    """As `handed`, of a kernel's trace with the lanes that an analysis declares."""
    with open("/tmp/krait-perfetto-tests.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_kernel(tmp_path / "kernel", [switch(0, 0, 5), begins(100, "read", fd=3), ends(150, "read", ret=7), switch(200, 5, 0)])
        words = [tmp_path / "kernel", "-f", "syscalls"]
        subprocess.run([krait, "export", *words, "--to", "perfetto", "-o", tmp_path / "x.pftrace"], check=True, capture_output=True)
        process = subprocess.Popen([krait, "view", "--perfetto", "--no-open", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        link = process.stdout.readline().strip()
        assert "url=" in link, process.stderr.read()
        yield link.split("url=")[1], (tmp_path / "x.pftrace").read_bytes()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def ask(url, method="GET", **headers):
    """(status, what it says of origins, body)"""
    request = urllib.request.Request(url, headers={k.replace("_", "-"): v for k, v in headers.items()}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers["Access-Control-Allow-Origin"], answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers["Access-Control-Allow-Origin"], refused.read()


def test_lanes_of_a_kernels_trace_are_handed_over(kernel_handed):
    url, trace = kernel_handed
    assert ask(url, Origin=PAGE) == (200, PAGE, trace) and b"read" in trace


def test_perfettos_page_gets_the_trace_and_nobody_else(handed):
    _, url, trace = handed
    assert ask(url, Origin=PAGE) == (200, PAGE, trace)
    assert ask(url, method="OPTIONS", Origin=PAGE) == (200, PAGE, b"")
    for refused in (
        ask(url, Origin="https://evil.example"),
        ask(url, Origin="null"),
        ask(url, Host="evil.example:9001"),
        ask(re.sub("[0-9a-f](?=[0-9a-f]{11}[.])", lambda digit: "0" if digit[0] != "0" else "1", url), Origin=PAGE),
        ask("http://127.0.0.1:9001/", Origin=PAGE),
    ):
        assert refused == (403, None, b"")
    assert ask(url, method="POST", Origin=PAGE)[0] == 405


@pytest.mark.parametrize("origin, wanted", [(PAGE, "bytes"), ("https://evil.example", "refused")])
def test_a_browser_lets_that_page_read_it(handed, chromium, origin, wanted):
    link, _, trace = handed
    context = chromium.new_context()
    context.grant_permissions(["local-network-access"], origin=origin)  # newer Chromium asks its user
    page = context.new_page()
    page.route(f"{origin}/**", lambda route: route.fulfill(body=STAND_IN, content_type="text/html"))
    page.goto(link.replace(PAGE, origin))
    page.wait_for_selector("pre:not(:empty)")
    said = page.text_content("pre")
    context.close()
    assert said.startswith(wanted) and (said == f"bytes {len(trace)}" or wanted == "refused")


ERRORS = [
    (("--perfetto", "--svg", "x.svg"), 2, "--perfetto does not go with --svg"),
    (("--perfetto", "--port", "8080"), 2, "--port: Perfetto's page asks 127.0.0.1:9001 alone"),
]


@pytest.mark.parametrize("words, code, said", ERRORS)
def test_what_does_not_go_together_is_said(run, synth, words, code, said):
    assert said in run("view", synth(CALLS), *words, code=code).stderr


def test_a_port_that_is_taken_is_said(run, handed):
    assert "cannot listen on 127.0.0.1:9001; another program may have that port" in run("view", "synth", "--perfetto", "--no-open", code=1).stderr
