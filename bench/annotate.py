# SPDX-License-Identifier: Apache-2.0
"""What a mark, a span, a counter and a log record cost with krait, recorded or not, beside VizTracer's and OpenTelemetry's."""

import json
import os
import shlex
import shutil
import subprocess

import lib

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
}


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


def measure(python, tool, number):
    """{what: ns}"""
    record, inner = TOOLS[tool]
    trace, out = lib.OUT / "annotate-trace", lib.OUT / "annotate.json"
    shutil.rmtree(trace, ignore_errors=True)
    command = [*python.prefix, python.path, lib.HERE / "annotate_program.py", inner, str(number)]
    if record is not None:
        command = [lib.KRAIT, "record", "-q", "--buffer-size", "1G", "-o", trace, *record, "--", *command]
    env = {**os.environ, "ANNOTATE_OUT": str(out), "PYTHONPATH": str(lib.BUILD / "python")}
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

    runs = lib.interleaved(list(TOOLS), options.reps, one)
    rows = {tool: {what: lib.median([r[what] for r in of]) for what in of[0]} for tool, of in runs.items()}
    return {"python": python.version, "reps": options.reps, "versions": versions(python), "rows": rows}
