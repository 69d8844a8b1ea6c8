# SPDX-License-Identifier: Apache-2.0
"""`krait view` as a program that a test asks: with HTTP as a browser speaks it, and with bytes that no browser would send."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

LINK = re.compile(r"http://(\[?[0-9a-f.:]+?\]?):(\d+)/([0-9a-f]{32})/\n")


class Server:
    def __init__(self, krait, *args, **popen):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **popen}
        self.process = subprocess.Popen([krait, "view", *map(str, args), "--no-open"], **options)
        self.url = self.process.stdout.readline()
        found = LINK.fullmatch(self.url)
        assert found, self.url + self.process.stderr.read()
        self.url, self.token, self.port = self.url.strip(), found[3], int(found[2])
        self.host = f"{found[1]}:{self.port}"

    def ask(self, path, headers=None, method="GET", body=None):
        """(status, headers, body) of what lies behind the token."""
        request = urllib.request.Request(self.url + path, data=body, headers=headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.headers, refused.read()

    def api(self, name, code=200, **params):
        query = urllib.parse.urlencode(params, safe=",")
        status, _, body = self.ask(f"api/{name}" + (f"?{query}" if query else ""))
        assert status == code, (status, body)
        return json.loads(body)

    def send(self, text):
        """The answer to raw bytes, up to where the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as peer:
            answer = b""
            with contextlib.suppress(OSError):  # it may close before it has read all
                peer.sendall(text if isinstance(text, bytes) else text.encode())
                peer.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                while part := peer.recv(65536):
                    answer += part
        return answer

    def status(self, path, **headers):
        """Of a request with these headers and no others."""
        lines = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
        answer = self.send(f"GET {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n")
        return int(answer.split()[1]) if answer else 0

    def built(self):
        """api/trace once the index is whole."""
        until = time.monotonic() + 30
        while True:
            trace = self.api("trace")
            if trace["index"]["done"]:
                return trace
            assert time.monotonic() < until
            time.sleep(0.02)

    def end(self, how=signal.SIGINT):
        """Ends it; returns its exit status and what it said."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said


@pytest.fixture
def serve(krait):
    """serve(trace, ...): a Server whose index is whole."""
    servers = []

    def start(*words):
        servers.append(Server(krait, *words))
        servers[-1].trace = servers[-1].built()
        return servers[-1]

    yield start
    ended = [server.end() for server in servers]
    assert all(status == 0 for status, _ in ended), ended
