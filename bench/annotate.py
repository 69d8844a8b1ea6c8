# SPDX-License-Identifier: Apache-2.0
"""What a mark, a span, a counter, a log record and a task's switch cost with krait, recorded or not, beside VizTracer's,
OpenTelemetry's and LTTng's Python agent's."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import lib
import lttng_session

NUMBER, QUICK_NUMBER = 2_000, 1_000

# name -> (options of krait record; None: without it; the program's tool)
TOOLS = {
    "krait, nobody records": (None, "krait"),
    "krait record --log": (["--log"], "krait"),
    "krait record --log, no calls": (["--log", "--no-c-calls", "--exclude", "*"], "krait"),
    "VizTracer": (None, "viztracer"),
    "VizTracer, no calls": (None, "viztracer-sparse"),
    "OpenTelemetry, no SDK": (None, "opentelemetry-api"),
    "OpenTelemetry": (None, "opentelemetry"),
    "LTTng's agent, no session": (None, "lttng"),
    "LTTng's agent": (None, "lttng"),
}
# LTTng's Python agent, which Debian has for its own Python: the package itself is for every version.
AGENT = Path("/usr/lib/python3/dist-packages/lttngust")


def environment(python):
    """A virtual environment with the other tools, made once."""
    venv = lib.OUT / ("venv-annotate-" + python.version)
    path = venv / "bin" / "python"
    if not (venv / "made").exists():
        lib.say("making %s" % venv)
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([*python.prefix, python.path, "-m", "venv", venv], check=True)
        pip = [*python.prefix, path, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "viztracer", "opentelemetry-sdk"], check=True)
        (venv / "made").touch()
    return lib.Python(python.version, shlex.join([*python.prefix, str(path)]), python.linked)


def versions(python):
    code = "from importlib.metadata import version as v; print(v('viztracer'), v('opentelemetry-sdk'))"
    viztracer, sdk = lib.quiet([*python.prefix, python.path, "-c", code]).stdout.split()
    return {"viztracer": viztracer, "opentelemetry-sdk": sdk}


@contextlib.contextmanager
def agents_folder(tool):
    """A folder that has LTTng's Python agent alone, while its log records are recorded where `tool` says so."""
    if TOOLS[tool][1] != "lttng":
        yield None
        return
    if not AGENT.exists():
        raise lib.Missing("python3-lttngust is not installed")
    with tempfile.TemporaryDirectory(prefix="lttng-", dir=lib.OUT) as folder, contextlib.ExitStack() as stack:
        (Path(folder) / AGENT.name).symlink_to(AGENT)
        if tool == "LTTng's agent":
            channel = ["enable-channel", "-u", "bench", "--subbuf-size=2M", "--num-subbuf=8"]
            stack.enter_context(lttng_session.session(Path(folder) / "trace", channel, ["enable-event", "--python", "bench"]))
        else:
            stack.enter_context(lttng_session.daemon())
        yield folder


def measure(python, tool, number):
    """{what: ns}"""
    with agents_folder(tool) as agent:
        return measured(python, tool, number, [agent] if agent else [])


def measured(python, tool, number, places):
    record, inner = TOOLS[tool]
    trace, out = lib.OUT / "annotate-trace", lib.OUT / "annotate.json"
    shutil.rmtree(trace, ignore_errors=True)
    command = [*python.prefix, python.path, lib.HERE / "annotate_program.py", inner, str(number)]
    if record is not None:
        command = [lib.KRAIT, "record", "-q", "--buffer-size", "1G", "-o", trace, *record, "--", *command]
    env = {**os.environ, "ANNOTATE_OUT": str(out), "PYTHONPATH": os.pathsep.join([str(lib.BUILD / "python"), *places])}
    done = subprocess.run([str(w) for w in command], env=env, capture_output=True, text=True)
    shutil.rmtree(trace, ignore_errors=True)
    if done.returncode:
        raise RuntimeError("%s: %s" % (tool, lib.last_line_of(done.stderr)))
    result = json.loads(out.read_text())
    out.unlink()
    return result


def run(python, options):
    python = environment(python)
    number = QUICK_NUMBER if options.quick else NUMBER

    def one(tool):
        lib.say("annotate: " + tool)
        return measure(python, tool, number)

    tools = list(TOOLS)
    for tool in ("LTTng's agent, no session", "LTTng's agent"):
        try:
            one(tool)
        except lib.Missing as e:
            lib.say("annotate: %s: %s" % (tool, e))
            tools.remove(tool)
    runs = lib.interleaved(tools, options.reps, one)
    rows = {tool: {what: lib.median([r[what] for r in of]) for what in of[0]} for tool, of in runs.items()}
    return {"python": python.version, "reps": options.reps, "versions": versions(python), "rows": rows}
