# SPDX-License-Identifier: Apache-2.0
"""Programs to attach to. Each prints the PID to attach to, works until the file `stop` is there, and says at the end whether all of its
results were right: "done True". They are in malloc, in the loader, in fork, in C code or in the kernel most of the time."""

SPIN = """
import os
def inner(n): return n + 1
def outer():
    n = 0
    for i in range(1000): n = inner(n)
    return n
print(os.getpid(), flush=True)
while not os.path.exists("stop"):
    assert outer() == 1000
print("done", True, flush=True)
"""

JOIN = """
import os, threading, time
def inner(n): return n + 1
def work():
    n = 0
    while not os.path.exists("stop"):
        for i in range(1000): n = inner(n)
        time.sleep(0.001)
thread = threading.Thread(target=work)
thread.start()
print(os.getpid(), flush=True)
thread.join()
print("done", True, flush=True)
"""

WAITS = """
import os, select, threading
def inner(n): return n + 1
def sit(): return select.select([], [], [], 0.05)
print(os.getpid(), flush=True)
while not os.path.exists("stop"):
    sit()
    for i in range(1000): inner(i)
print("done", True, flush=True)
"""

DEEP = """
import os, sys
sys.setrecursionlimit(5000)
def inner(n): return n + 1
def down(n): return down(n - 1) if n else spin()
def spin():
    while not os.path.exists("stop"):
        for i in range(1000): inner(i)
print(os.getpid(), flush=True)
down(500)
print("done", True, flush=True)
"""

ALLOCATES = """
import os, threading
wrong = []
def churn(seed):
    while not os.path.exists("stop"):
        blocks = [bytes([seed]) * n for n in (700, 5000, 70000, 300000)]
        if any(set(b) != {seed} for b in blocks): wrong.append(seed)
threads = [threading.Thread(target=churn, args=(n,)) for n in range(3)]
for t in threads: t.start()
print(os.getpid(), flush=True)
for t in threads: t.join()
print("done", not wrong, flush=True)
"""

LOADS = """
import _ctypes, ctypes, os, threading
wrong = []
def load():
    while not os.path.exists("stop"):
        handle = _ctypes.dlopen("libm.so.6", 2)
        if not _ctypes.dlsym(handle, "cos"): wrong.append(1)
        _ctypes.dlclose(handle)
thread = threading.Thread(target=load)
thread.start()
print(os.getpid(), flush=True)
load()
thread.join()
print("done", not wrong, flush=True)
"""

FORKS = """
import os
wrong = []
def child(n): return n % 7
print(os.getpid(), flush=True)
n = 0
while not os.path.exists("stop"):
    n += 1
    pid = os.fork()
    if not pid: os._exit(child(n))
    if os.waitpid(pid, 0)[1] >> 8 != n % 7: wrong.append(n)
print("done", not wrong, flush=True)
"""

THREADS = """
import os, threading
counts = []
def work(n): counts.append(sum(range(n)))
print(os.getpid(), flush=True)
rounds = 0
while not os.path.exists("stop"):
    rounds += 1
    threads = [threading.Thread(target=work, args=(100,)) for _ in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
print("done", counts == [4950] * 8 * rounds, flush=True)
"""

RECURSES = """
import os
wrong = []
def down(n):
    if n == 0: raise ValueError(n)
    return down(n - 1)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(os.getpid(), flush=True)
while not os.path.exists("stop"):
    try: down(900)
    except ValueError as e:
        if e.args != (0,): wrong.append(e)
    if fib(12) != 144: wrong.append("fib")
print("done", not wrong, flush=True)
"""

# C code for some tenths of a second: with the GIL (a regular expression that tries all ways), and without it.
C_CALLS = """
import hashlib, os, re
wrong, first = [], []
def with_gil(): return re.match("(a+)+$", "a" * 22 + "b")
def without_gil(): return hashlib.pbkdf2_hmac("sha256", b"x", b"y", 200000)
first.append(without_gil())
print(os.getpid(), flush=True)
while not os.path.exists("stop"):
    if with_gil() is not None or without_gil() != first[0]: wrong.append(1)
print("done", not wrong, flush=True)
"""

# C code that holds the GIL for as many seconds as the file `hold` says.
HOLDS = """
import ctypes, os, time
def inner(n): return n + 1
def hold(seconds): return ctypes.PyDLL(None).usleep(int(seconds * 1e6))
print(os.getpid(), flush=True)
while not os.path.exists("stop"):
    for i in range(1000): inner(i)
    time.sleep(0.001)
    if os.path.exists("hold"):
        seconds = float(open("hold").read())
        os.rename("hold", "holding")
        hold(seconds)
        os.unlink("holding")
print("done", True, flush=True)
"""

PIP = """
import hashlib, os, site, sys, zipfile
from pip._internal.cli.main import main as pip
NAME, INFO = "made-1.0-py3-none-any.whl", "made-1.0.dist-info/"
def text(i): return f"def f{i}(a, b):\\n    return [a + b + n for n in range({i})]\\n" * 20
with zipfile.ZipFile(NAME, "w") as wheel:
    names = [f"made/m{i}.py" for i in range(40)]
    for i, name in enumerate(names): wheel.writestr(name, text(i))
    wheel.writestr(INFO + "METADATA", "Metadata-Version: 2.1\\nName: made\\nVersion: 1.0\\n")
    wheel.writestr(INFO + "WHEEL", "Wheel-Version: 1.0\\nGenerator: made\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(INFO + "RECORD", "".join(n + ",,\\n" for n in names + [INFO + "METADATA", INFO + "WHEEL", INFO + "RECORD"]))
wrong = []
folder = next(p for p in sys.path if p.endswith("site-packages"))
print(os.getpid(), flush=True)
while not os.path.exists("stop"):
    if pip(["install", "-qqq", "--no-index", "--no-deps", "--force-reinstall", "--disable-pip-version-check", NAME]): wrong.append("pip")
    for i in range(40):
        if open(f"{folder}/made/m{i}.py").read() != text(i): wrong.append(i)
print("done", not wrong, flush=True)
"""

# What prints is who asks; the PID is that of the server's worker.
DJANGO = """
import http.client, json, os, socket, subprocess, sys, time
open("service.py", "w").write('''
import os
from django.conf import settings
settings.configure(DEBUG=False, ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="x",
                   TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
import django
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, JsonResponse
from django.template import engines
from django.urls import path
def pid(request): return JsonResponse({"pid": os.getpid()})
def page(request, n):
    text = engines["django"].from_string("{% for i in n %}<li>{{ i }}</li>{% endfor %}")
    return HttpResponse(text.render({"n": range(n)}))
urlpatterns = [path("pid", pid), path("page/<int:n>", page)]
application = get_wsgi_application()
''')
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect("socket")
def get(what):
    connection = Connection("x")
    connection.request("GET", what)
    text = connection.getresponse().read().decode()
    connection.close()
    return text
def first():
    for _ in range(600):
        try: return json.loads(get("/pid"))["pid"]
        except OSError: time.sleep(0.1)
server = subprocess.Popen([sys.executable, "-m", "gunicorn", "--log-level", "error", "--workers", "1", "--threads", "3", "--timeout", "120", "--bind", "unix:socket", "service"])
worker = first()
print(worker, flush=True)
wrong, n = [], 0
while not os.path.exists("stop"):
    n = (n + 1) % 40
    if get(f"/page/{n}") != "".join(f"<li>{i}</li>" for i in range(n)): wrong.append(n)
if json.loads(get("/pid"))["pid"] != worker: wrong.append("another worker")
server.terminate()
server.wait()
print("done", not wrong, flush=True)
"""

NUMPY = """
import os
import numpy
a = numpy.arange(90000.0).reshape(300, 300) % 17 + numpy.eye(300) * 300
first, wrong = a @ a, []
print(os.getpid(), flush=True)
while not os.path.exists("stop"):
    if not numpy.allclose(a @ a, first): wrong.append("product")
    if not numpy.allclose(numpy.linalg.solve(a, first), a): wrong.append("solve")
print("done", not wrong, flush=True)
"""

UVLOOP = """
import asyncio, os
import uvloop
wrong = []
async def answer(reader, writer):
    while line := await reader.readline():
        writer.write(line[::-1][1:] + b"\\n")
    writer.close()
async def ask(n):
    reader, writer = await asyncio.open_unix_connection("socket")
    while not os.path.exists("stop"):
        text = b"%d" % n
        n += 1
        writer.write(text + b"\\n")
        if await reader.readline() != text[::-1] + b"\\n": wrong.append(n)
    writer.close()
async def main():
    server = await asyncio.start_unix_server(answer, "socket")
    print(os.getpid(), flush=True)
    await asyncio.gather(*(ask(n * 1000) for n in range(5)))
    server.close()
asyncio.set_event_loop(loop := uvloop.new_event_loop())
loop.run_until_complete(main())
print("done", not wrong, flush=True)
"""

# The programs by name, and the packages that they need.
PLAIN = {"join": JOIN, "allocates": ALLOCATES, "loads": LOADS, "forks": FORKS, "threads": THREADS, "recurses": RECURSES, "c_calls": C_CALLS}
REAL = {
    "pip": (PIP, []),
    "django": (DJANGO, ["django", "gunicorn"]),
    "numpy": (NUMPY, ["numpy"]),
    "uvloop": (UVLOOP, ["uvloop"]),
}
