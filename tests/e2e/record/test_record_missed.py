# SPDX-License-Identifier: Apache-2.0
"""Pythons that cannot be recorded, and cannot say so: krait sees them from outside, and names them with the reason."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD

LIBRARY = BUILD / "python" / "krait"

# Enters the folder that is its first word, with the folders that its second word names, and runs the rest.
ENTER = """
jail=$1; shift
for folder in $1; do mkdir -p "$jail$folder"; mount --rbind "$folder" "$jail$folder"; done; shift
for name in bin lib lib64; do ln -sfn usr/$name "$jail/$name"; done
exec chroot "$jail" "$@"
"""

# krait looks at what is new every 20 ms.
APP = """
import sys, time
def f(): pass
f()
time.sleep(1)
print("done")
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""


@pytest.fixture
def jail(any_python, tmp_path):
    """jail(*folders): the words before a command that runs in a root with the interpreter, app.py, and these folders."""
    rights = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
    if subprocess.run(["unshare", *rights, "true"], capture_output=True).returncode:
        pytest.skip("no namespace for mounts can be made here")
    root = tmp_path / "jail"
    root.mkdir()
    (root / "app.py").write_text(APP)
    prefix = any_python.run("-c", "import sys; print(sys.base_prefix)").stdout.strip()

    def words(*folders):
        return ["unshare", *rights, "sh", "-c", ENTER, "sh", root, " ".join(map(str, {"/usr": 0, prefix: 0, **dict.fromkeys(folders, 0)}))]

    return words


def said(run):
    return " ".join(run.stderr.split())


@pytest.mark.parametrize("status", [0, 3])
def test_a_python_in_a_root_without_krait_is_named(record, any_python, jail, tmp_path, status):
    run = record.words(any_python, *jail(), any_python.exe, "app.py", status)
    assert run.status == (status or 125) and run.stdout == "done\n"
    assert f"({any_python.exe} app.py {status}) was not recorded: Python {any_python.version} in the root folder {tmp_path}/jail" in said(run), run.stderr
    assert f"where krait's files are missing: mount {LIBRARY} at the same path there" in said(run)
    assert "No Python was seen" not in run.stderr and not run.path.exists()


def test_it_is_recorded_with_the_folder_that_krait_names(record, any_python, jail):
    run = record.words(any_python, *jail(LIBRARY), any_python.exe, "app.py")
    assert run.status == 0 and "not recorded" not in run.stderr, run.stderr
    assert run.check(ended=False).calls()["f"] == 1


def test_several_are_named_together_beside_what_is_recorded(record, any_python, jail):
    record.script(
        """
        import subprocess, sys
        children = [subprocess.Popen(sys.argv[1:]) for _ in range(3)]
        print([child.wait() for child in children])
        """,
        "parent.py",
    )
    run = record(any_python, "parent.py", *jail(), any_python.exe, "app.py")
    assert run.status == 0 and run.stdout == "done\n" * 3 + "[0, 0, 0]\n"
    one = rf"\d+ \({any_python.exe} app.py\)"
    assert len(run.processes) == 1
    assert re.search(rf"Processes {one}, {one}, {one} were not recorded: Python", said(run)), run.stderr


def test_a_quiet_recording_has_the_exit_status_too(record, any_python, jail):
    run = record.words(any_python, *jail(), any_python.exe, "app.py", options=["--quiet"])
    assert run.status == 125 and not run.stderr


# Begins the interpreter behind the back of krait's library, which would pass its variables on.
WITHOUT_LIBRARY = """
import ctypes, os, platform, sys
words, env = sys.argv[2:], [sys.argv[1]] if sys.argv[1] else []
if not (pid := os.fork()):
    array = lambda texts: (ctypes.c_char_p * (len(texts) + 1))(*map(os.fsencode, texts), None)
    execve = {"x86_64": 59, "aarch64": 221}[platform.machine()]
    ctypes.CDLL(None).syscall(execve, os.fsencode(words[0]), array(words), array(env))
    os._exit(9)
print(os.waitpid(pid, 0)[1])
"""


@pytest.mark.parametrize("variable", ["", "KRAIT_SESSION="])
def test_a_python_without_the_library_is_named_unless_it_asks_for_that(record, any_python, tmp_path, variable):
    (tmp_path / "child.py").write_text(APP)
    run = record.text(any_python, WITHOUT_LIBRARY, variable, any_python.exe, "child.py")
    assert run.stdout == "done\n0\n"
    named = f"child.py) was not recorded: Python {any_python.version} without krait's library: it is statically linked" in said(run)
    assert named == (not variable), run.stderr


FORKS = """
import os, time
children = []
for _ in range(120):
    if not (pid := os.fork()):
        time.sleep(60)
        os._exit(0)
    children.append(pid)
time.sleep(20)
for pid in children:
    os.kill(pid, 9)
"""


@pytest.mark.long
def test_of_very_many_a_hundred_are_named_and_the_others_counted(record, any_python, tmp_path):
    """A recording of days would keep them all. On a slow machine krait looks at fewer than are there."""
    (tmp_path / "child.py").write_text(FORKS)
    run = record.text(any_python, WITHOUT_LIBRARY, "", any_python.exe, "child.py")
    named = int(re.search(r"and (\d+) more were not recorded: Python", said(run))[1])
    counted = re.search(r"(\d+) process(es)? more w(as|ere) not recorded", said(run))
    assert run.status == 0 and named <= 95, run.stderr
    assert not counted or named == 95 and int(counted[1]) <= 21, run.stderr


def test_children_that_are_not_to_be_recorded_are_not_named(record, any_python, tmp_path):
    (tmp_path / "child.py").write_text(APP)
    run = record.text(any_python, WITHOUT_LIBRARY, "", any_python.exe, "child.py", options=["--no-children"])
    assert run.stdout == "done\n0\n" and "not recorded" not in run.stderr


def test_a_python_that_does_not_see_the_recording_from_its_namespaces_is_named(record, any_python, tmp_path):
    rights = ["--net", "--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--net", "--mount"]
    if subprocess.run(["unshare", *rights, "true"], capture_output=True).returncode:
        pytest.skip("no namespace for mounts can be made here")
    hide = 'mount -t tmpfs none "$1" && mount -t tmpfs none /proc && shift && exec "$@"'
    code = "import time; time.sleep(2); print('done')"
    run = record.words(any_python, "unshare", *rights, "sh", "-c", hide, "sh", tmp_path, any_python.exe, "-c", code)
    assert run.status == 125 and run.stdout == "done\n"
    assert f"was not recorded: Python {any_python.version} in another network namespace, from where it did not reach krait by the file .join" in said(run), run.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_python_of_another_user_in_another_network_namespace_is_named(everyones_krait, tmp_path):
    folder = Path(everyones_krait).parent / "roots"
    folder.mkdir()
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    words = ["unshare", "--net", *as_nobody, "/usr/bin/python3", "-c", "import time; time.sleep(2)"]
    run = subprocess.run([everyones_krait, "record", "-o", folder / "trace", "--", *words], capture_output=True, text=True, timeout=60)
    assert run.returncode == 125
    assert "running as user 65534, krait as user 0: start krait as that user" in " ".join(run.stderr.split()), run.stderr


def test_what_the_command_left_behind_is_named_with_wait(record, any_python, jail):
    words = ["sh", "-c", '"$@" & exit 0', "sh", *jail(), any_python.exe, "app.py"]
    run = record.words(any_python, *words, options=["--wait"])
    assert run.status == 125 and run.stdout == "done\n"
    assert "where krait's files are missing" in said(run), run.stderr


def test_the_browser_of_view_is_not_below_the_command(record, any_python, tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(f"#!{any_python.exe} -I\nimport os, time\nwhile not os.path.exists({str(tmp_path)!r} + '/ended'): time.sleep(0.01)\n")
    browser.chmod(0o755)
    command = record.command(any_python, [any_python.exe, "-c", "import time; time.sleep(1)"], tmp_path / "trace", ["--view"])
    env = {**os.environ, "BROWSER": str(browser), "DISPLAY": ":99"}
    krait = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, cwd=tmp_path)
    lines = []
    for line in krait.stderr:
        lines.append(line)
        if "krait flame" in line:
            krait.send_signal(signal.SIGINT)
    krait.wait()
    (tmp_path / "ended").touch()
    assert "not recorded" not in "".join(lines)
