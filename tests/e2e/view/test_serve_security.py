# SPDX-License-Identifier: Apache-2.0
"""Who may ask the server of `krait view`, and what a hostile request gets: nothing."""

import concurrent.futures
import json
import signal
import socket
import subprocess

import pytest
from served import Server

CODES = """
process 5 python3
code 1 python app main app.py 1
code 2 python app load app.py 10
thread 5 MainThread
0us call 1
100us call 2
400us return
1000us return
"""


@pytest.fixture
def served(krait, synth):
    server = Server(krait, synth(CODES))
    yield server
    server.end(signal.SIGKILL)


def test_a_link_opens_the_page(served):
    status, headers, body = served.ask("")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8" and b"<html" in body
    for name, kind in (("app.js", "text/javascript"), ("app.css", "text/css")):
        status, headers, body = served.ask(name)
        assert status == 200 and headers["Content-Type"].startswith(kind) and body


@pytest.mark.parametrize("path", ["", "app.js", "api/trace", "api/nothing", "nothing"])
def test_each_answer_forbids_what_the_page_does_not_need(served, path):
    _, headers, _ = served.ask(path)
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store" and headers["Access-Control-Allow-Origin"] is None


def test_a_wrong_token_gets_nothing(served):
    right, good = f"/{served.token}/api/trace", {"Host": served.host}
    assert served.status(right, **good) == 200
    other = "0" * 32 if served.token[0] != "0" else "1" * 32
    paths = ["/", "/api/trace", "/app.js", f"/{other}/", f"/{other}/api/trace", f"/{served.token[:-1]}/api/trace"]
    paths += [f"/{served.token}x/api/trace", f"/{served.token.upper()}/../{other}/", f"/{served.token}", f"/x/{served.token}/"]
    for path in paths:
        answer = served.send(f"GET {path} HTTP/1.1\r\nHost: {served.host}\r\nConnection: close\r\n\r\n")
        assert answer.split()[1] in (b"403", b"404") and not answer.split(b"\r\n\r\n", 1)[1], (path, answer)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.1:1", "localhost", "127.0.0.1:PORT.evil", ""])
def test_another_host_gets_nothing(served, host):
    host = host.replace("PORT", str(served.port))
    answer = served.send(f"GET /{served.token}/api/trace HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    assert b"python3" not in answer and answer.split()[1] in (b"400", b"403")


def test_no_host_gets_nothing(served):
    for version in ("1.0", "1.1"):
        answer = served.send(f"GET /{served.token}/api/trace HTTP/{version}\r\n\r\n")
        assert b"python3" not in answer and not answer.startswith(b"HTTP/1.1 200")


def test_a_page_of_another_origin_gets_nothing(served):
    path, host = f"/{served.token}/api/trace", served.host
    for origin in ("http://evil.example", "null", f"https://{host}", f"http://{host}.evil.example", "http://127.0.0.1:1", "file://"):
        assert served.status(path, Host=host, Origin=origin) == 403, origin
    for site in ("cross-site", "same-site"):
        assert served.status(path, Host=host, Sec_Fetch_Site=site) == 403
    assert served.status(path, Host=host, Origin=f"http://{host}", Sec_Fetch_Site="same-origin") == 200
    assert served.status(path, Host=f"localhost:{served.port}", Origin=f"http://localhost:{served.port}") == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "MKCOL", "CONNECT", "get"])
def test_other_methods_are_refused(served, method):
    head = f"Host: {served.host}\r\nContent-Length: 0\r\nConnection: close\r\n"
    if method == "OPTIONS":
        head += f"Origin: http://{served.host}\r\nAccess-Control-Request-Method: PUT\r\n"
    answer = served.send(f"{method} /{served.token}/api/trace HTTP/1.1\r\n{head}\r\n")
    assert b"python3" not in answer and b"Access-Control" not in answer
    assert int(answer.split()[1]) in (400, 405, 501), answer


def test_no_preflight_is_answered_without_a_token(served):
    head = f"Host: {served.host}\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: GET\r\nConnection: close\r\n"
    answer = served.send(f"OPTIONS /x HTTP/1.1\r\n{head}\r\n")
    assert b"Access-Control" not in answer and answer.split()[1] == b"403"


@pytest.mark.parametrize(
    "path",
    ["../../etc/passwd", "..%2f..%2fetc/passwd", "%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/etc/passwd", "api/../../../etc/passwd",
     "..\\..\\etc\\passwd", "app.js%00.html", "app.js/", "./../app.js/..", "api/", "api", "api/trace/", "api/trace%00", "\x80\xff"],
)  # fmt: skip
def test_there_are_no_other_files(served, path):
    answer = served.send(f"GET /{served.token}/{path} HTTP/1.1\r\nHost: {served.host}\r\nConnection: close\r\n\r\n")
    assert b"root:" not in answer and answer.split()[1] in (b"400", b"403", b"404"), answer[:200]


@pytest.mark.parametrize(
    "query",
    ["tile?track=0", "tile?track=99&level=0&tile=0", "tile?track=0&level=55&tile=0", "tile?track=0&level=255&tile=0",
     "tile?track=0&level=256&tile=0", "tile?track=4294967296&level=0&tile=0", "tile?track=0&level=54&tile=99999999999",
     "tile?track=0&level=0&tile=18446744073709551616", "tile?track=-1&level=0&tile=0", "tile?track=0&track=0&level=0&tile=0",
     "tile?track=&level=0&tile=0", "tile?track=0x0&level=0&tile=0", "tile?track=0&level=0&tile=0&more=1", "trace?page=0", "trace?=",
     "bin?track=0&level=4&tile=0&bin=512&depth=0", "bin?track=0&level=4&tile=0&bin=0&depth=4294967296", "search", "search?text=%",
     "search?text=%00", "search?text=%zz", "functions?threads=a", "functions?threads=1,,2", "functions?threads=4294967296", "calls",
     "call?track=0&at=0&depth=18446744073709551615", "call?track=1&at=0&depth=0", "next?track=77&at=0"],
)  # fmt: skip
def test_a_wrong_parameter_is_told(served, query):
    served.built()
    status, headers, body = served.ask(f"api/{query}")
    assert status in (400, 404) and headers["Content-Type"] == "application/json"
    assert json.loads(body)["error"]


def test_oversized_requests_are_refused(served):
    host = f"Host: {served.host}\r\nConnection: close\r\n"
    for text in (
        f"GET /{served.token}/api/search?text={'a' * 100_000} HTTP/1.1\r\n{host}\r\n",
        f"GET /{served.token}/api/trace HTTP/1.1\r\n{host}X: {'a' * 100_000}\r\n\r\n",
        f"GET /{served.token}/api/trace HTTP/1.1\r\n{host}" + "".join(f"X{i}: 1\r\n" for i in range(5000)) + "\r\n",
        "A" * 100_000,
        b"\0" * 50_000,
    ):
        answer = served.send(text)
        assert not answer.startswith(b"HTTP/1.1 200"), answer[:200]
    assert served.api("search", text="a" * 1024) and served.api("search", code=400, text="a" * 1025)
    assert served.api("functions", threads=",".join(map(str, range(1000))))
    assert served.api("functions", code=400, threads="1," * 4097 + "1")
    assert served.api("trace")


def test_a_client_that_says_nothing_stops_nobody(served):
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(10)]
    for i, peer in enumerate(silent):
        peer.sendall(b"GET / HT"[: i % 8])
    assert served.api("trace")
    for peer in silent:
        peer.close()


def test_a_hundred_requests_at_once(served):
    trace = served.built()
    names = ["api/trace", "api/functions", "api/flame", "api/funcs", "api/tile?track=0&level=10&tile=0", "app.js", "api/calls?func=1"]
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda i: served.ask(names[i % len(names)]), range(100)))
    assert {status for status, *_ in answers} == {200}
    of_trace = [json.loads(answers[i][2]) for i in range(0, len(answers), len(names))]
    assert all({**one, "index": None} == {**of_trace[0], "index": None} for one in of_trace)  # it has the bytes read so far
    for i, (_, _, body) in enumerate(answers):
        assert i % len(names) == 0 or body == answers[i % len(names)][2]
    assert of_trace[0]["tracks"] == trace["tracks"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_frees_the_port(krait, synth, how):
    server = Server(krait, synth(CODES))
    with socket.create_connection(("127.0.0.1", server.port)) as idle:
        idle.sendall(f"GET /{server.token}/api/trace HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        assert idle.recv(20).startswith(b"HTTP/1.1 200")
        status, said = server.end(how)
    assert status == 0 and "Traceback" not in said
    again = Server(krait, synth(CODES, "again"), "--port", server.port)
    assert again.port == server.port and again.token != server.token
    assert again.end()[0] == 0


def test_only_this_machine_reaches_it(served):
    listening = {line.split()[1] for line in open("/proc/net/tcp").read().splitlines()[1:] if line.split()[3] == "0A"}
    listening |= {line.split()[1] for line in open("/proc/net/tcp6").read().splitlines()[1:] if line.split()[3] == "0A"}
    assert [a.split(":")[0] for a in listening if a.endswith(f":{served.port:04X}")] == ["0100007F"]


def run(krait, *args):
    return subprocess.run([krait, "view", *map(str, args), "--no-open"], capture_output=True, text=True, timeout=60)


def test_an_address_elsewhere_is_chosen_and_told(krait, synth):
    server = Server(krait, synth(CODES), "--listen", "0.0.0.0")
    path = f"/{server.token}/api/trace"
    assert server.status(path, Host=f"192.0.2.1:{server.port}") == 200
    assert server.status(path, Host=f"evil.example:{server.port}") == 403
    status, said = server.end()
    assert status == 0 and "whoever reaches this address" in said


@pytest.mark.parametrize(
    "options, why", [(["--listen", "nowhere"], "nowhere"), (["--port", "65536"], "65536"), (["--listen", "192.0.2.1"], "192.0.2.1")]
)
def test_where_it_cannot_listen(krait, synth, options, why):
    result = run(krait, synth(CODES), *options)
    assert result.returncode in (1, 2) and why in result.stderr and not result.stdout


def test_a_port_that_is_taken(krait, synth):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = run(krait, synth(CODES), "--port", port)
    assert result.returncode == 1 and str(port) in result.stderr
