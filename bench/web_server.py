# SPDX-License-Identifier: Apache-2.0
"""A web server that lives by system calls: a thread a connection, and for each request it looks at a folder and sends a file.

Prints its port on the first line. SIGTERM ends it; then it prints the CPU seconds that serving took.
"""

import http.server
import os
import pathlib
import signal
import socketserver
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and file by one system call

    def do_GET(self):
        with os.scandir(HERE) as entries:
            size = sum(entry.stat().st_size for entry in entries)
        with open(HERE / "README.md", "rb") as file:
            body = file.read() + b"%d" % size
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *words):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # wrk has had enough
            super().handle_error(request, client_address)


def end(*_):
    sys.exit(0)


signal.signal(signal.SIGTERM, end)
with Server(("127.0.0.1", 0), Handler) as server:
    start = time.process_time()
    print(server.server_address[1], flush=True)
    try:
        server.serve_forever()
    finally:
        print(time.process_time() - start, flush=True)
