# SPDX-License-Identifier: Apache-2.0
"""krait doctor: what it finds, what it says, what it returns."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from terminal import on_terminal

ROOT = pathlib.Path(__file__).resolve().parents[3]
KRAIT = os.environ.get("KRAIT", str(ROOT / "build" / "krait"))


def doctor(*args, env=None, cwd=None):
    full = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **(env or {})}
    return subprocess.run([KRAIT, "doctor", *args], env=full, cwd=cwd, capture_output=True, text=True, timeout=120)


def report(**kw):
    run = doctor("--json", **kw)
    return run, json.loads(run.stdout)


def doctor_on_terminal(columns, no_color=""):
    return on_terminal([KRAIT, "doctor"], columns, ("stdin", "stdout"), {**os.environ, "NO_COLOR": no_color})[0]


def fake_python(folder, name, answer, preload=True):
    """An ELF file that answers doctor's question as it is told; needs a C compiler."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler to make a made-up interpreter with")
    source = folder / (name + ".c")
    text = json.dumps("\n" + answer + "\n") if answer else '""'
    source.write_text("#include <stdio.h>\nint main(void) { fputs(%s, stdout); return 0; }\n" % text)
    static = [] if preload else ["-static"]
    subprocess.run([compiler, *static, "-o", str(folder / name), str(source)], check=True)


def only(folder):
    """An environment with that folder alone; what is in /usr/bin is found all the same."""
    return {"PATH": str(folder), "HOME": str(folder), "VIRTUAL_ENV": "", "PYENV_ROOT": str(folder)}


def entry(data, path):
    found = [p for p in data["pythons"] if p["path"] == str(path)]
    assert len(found) == 1, (path, data["pythons"])
    return found[0]


def test_a_python_on_the_path_is_found_and_its_hook_named():
    run, data = report(env={"PATH": os.path.dirname(sys.executable)})
    mine = [p for p in data["pythons"] if os.path.realpath(p["path"]) == os.path.realpath(sys.executable)]
    assert mine, data["pythons"]
    assert mine[0]["version"].startswith("%d.%d.%d" % sys.version_info[:3])
    assert mine[0]["supported"]
    hook = "sys.monitoring" if sys.version_info >= (3, 12) else "PyEval_SetProfile"
    assert mine[0]["hook"] == hook
    assert data["can_record"] and run.returncode == 0


@pytest.mark.parametrize(
    "answer, supported, says",
    [
        ("krait-python CPython 3 7 16 final 1 0", False, "too old"),
        ("krait-python CPython 2 7 18 final 1 0", False, "too old"),
        ("krait-python CPython 3 16 0 alpha 1 0", False, "newer"),
        ("krait-python CPython 3 13 0 final 1 1", False, "free-threaded"),
        ("krait-python PyPy 3 10 13 final 1 0", False, "not CPython"),
        ("", False, "does not start"),
        ("krait-python CPython 3 13", False, "does not start"),
    ],
)
def test_an_interpreter_that_cannot_be_recorded_is_refused_with_the_reason(tmp_path, answer, supported, says):
    fake_python(tmp_path, "python3", answer)
    _, data = report(env=only(tmp_path))
    found = entry(data, tmp_path / "python3")
    assert found["supported"] is supported
    assert says in found["fix"]
    assert found["hook"] is None


def test_an_interpreter_that_ignores_preloading_is_refused(tmp_path):
    fake_python(tmp_path, "python3", "krait-python CPython 3 12 1 final 0 0", preload=False)
    _, data = report(env=only(tmp_path))
    assert "LD_PRELOAD" in entry(data, tmp_path / "python3")["fix"]


def test_an_interpreter_that_never_answers_does_not_hang_doctor(tmp_path):
    source = tmp_path / "s.c"
    source.write_text("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    if not shutil.which("cc"):
        pytest.skip("no C compiler to make a made-up interpreter with")
    subprocess.run(["cc", "-o", str(tmp_path / "python3"), str(source)], check=True)
    _, data = report(env=only(tmp_path))
    assert "does not start" in entry(data, tmp_path / "python3")["fix"]


def test_scripts_and_tools_beside_python_are_not_taken_for_interpreters(tmp_path):
    for name in ("python3", "python3-config"):
        (tmp_path / name).write_text("#!/bin/sh\necho never run\n")
        (tmp_path / name).chmod(0o755)
    shutil.copy("/bin/true", tmp_path / "python-argcomplete")
    _, data = report(env=only(tmp_path))
    assert not [p for p in data["pythons"] if p["path"].startswith(str(tmp_path))]


def test_a_virtual_environment_counts_beside_its_base(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / ".venv")], check=True)
    _, data = report(cwd=tmp_path)
    venv = [p for p in data["pythons"] if p["found"] == "venv"]
    assert [os.path.basename(os.path.dirname(os.path.dirname(p["path"]))) for p in venv] == [".venv"]


def test_links_to_one_interpreter_are_listed_once():
    _, data = report()
    seen = [(os.path.realpath(p["path"]), os.path.realpath(os.path.dirname(p["path"]))) for p in data["pythons"]]
    assert len(seen) == len(set(seen))


def test_every_check_that_is_not_ok_says_what_to_do():
    _, data = report()
    assert {c["group"] for c in data["checks"]} == {"Recording", "Kernel"}
    for check in data["checks"]:
        assert check["state"] in ("ok", "warn", "no")
        assert check["value"]
        assert (check["fix"] is None) == (check["state"] == "ok"), check


def test_no_row_is_of_what_no_verb_uses():
    _, data = report()
    assert not [c for c in data["checks"] if c["name"] == "counters" or "no verb" in c["value"]]


def test_the_verbs_that_need_ptrace_are_named_and_work_where_it_is_said():
    """The claim is held against dump, which reads a process that krait did not start."""
    _, data = report()
    check = next(c for c in data["checks"] if c["name"] == "ptrace")
    assert "dump" in check["value"] and "top" in check["value"] and "no verb" not in check["value"]
    other = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    other.stdout.readline()
    dump = subprocess.run([KRAIT, "dump", str(other.pid)], capture_output=True, text=True, timeout=60)
    other.communicate()
    assert (check["state"] == "ok") <= (dump.returncode == 0), (check, dump.stderr)


FORBID = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FORBIDDEN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { 4, code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 99;
    execv(argv[1], argv + 1);
    return 98;
}
"""


def forbid(folder, call):
    """A program that starts another under a seccomp filter, as containers have it."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    (folder / "forbid.c").write_text(FORBID)
    program = folder / ("forbid-" + call)
    subprocess.run(["cc", "-DFORBIDDEN=__NR_" + call, "-o", program, folder / "forbid.c"], check=True)
    return program


@pytest.mark.parametrize(
    "call, says",
    [
        ("ptrace", "blocked by a seccomp filter (Operation not permitted): record --pid, top --exact, dump --native"),
        ("process_vm_readv", "blocked by a seccomp filter (Operation not permitted): record --sample, record --pid, top and dump"),
        ("swapoff", "programs started here inherit a seccomp filter: top and dump work, record --pid and top --exact refuse them"),
    ],
)
def test_a_seccomp_filter_is_named_with_the_verbs_that_it_stops(tmp_path, call, says):
    run = subprocess.run([forbid(tmp_path, call), KRAIT, "doctor", "--json"], env=only(tmp_path), capture_output=True, text=True, timeout=120)
    if run.returncode == 99:
        pytest.skip("no seccomp filters here")
    check = next(c for c in json.loads(run.stdout)["checks"] if c["name"] == "ptrace")
    assert check["value"].startswith(says)
    assert check["state"] == "warn" and "seccomp=unconfined" in check["fix"]


@pytest.mark.skipif(os.geteuid() != 0, reason="to mount, and to become another user")
@pytest.mark.parametrize(
    "scope, says, fix",
    [
        (1, "only children can be attached to", "sudo sysctl kernel.yama.ptrace_scope=0"),
        (2, "only an administrator can attach", "run krait as root"),
        (3, "nobody can attach until the next boot", "/etc/sysctl.d"),
    ],
)
def test_yama_is_named_where_it_refuses_ptrace(tmp_path, scope, says, fix):
    """As Ubuntu has it (1); the file is made up, and a filter refuses what Yama would."""
    shutil.copy(KRAIT, tmp_path / "krait")
    forbid(tmp_path, "ptrace")
    for folder in (tmp_path, *tmp_path.parents):
        if str(folder).startswith("/tmp/pytest-of"):
            folder.chmod(0o755)
    as_nobody = "import os, sys; os.setgid(65534); os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"
    script = """
        mount --make-rprivate / && mount -t tmpfs nodev /proc/sys/kernel && mkdir /proc/sys/kernel/yama || exit 77
        echo "$1" > /proc/sys/kernel/yama/ptrace_scope
        exec {} -c "$2" ./forbid-ptrace ./krait doctor --json
    """.format(sys.executable)
    run = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", str(scope), as_nobody], cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=120)
    if run.returncode in (77, 99):
        pytest.skip(f"nothing can be mounted, or no filters: {run.stderr}")
    check = next(c for c in json.loads(run.stdout)["checks"] if c["name"] == "ptrace")
    assert check["value"].startswith(f"kernel.yama.ptrace_scope is {scope}: {says}")
    assert "record --pid, top and dump" in check["value"]
    assert check["state"] == "warn" and fix in check["fix"]


@pytest.mark.skipif(os.geteuid() != 0, reason="to mount, and to become another user")
def test_a_tracefs_whose_instances_another_user_makes_and_cannot_write_in(tmp_path):
    """The folder of instances may be given to a user; what the kernel puts into a new one belongs to the mount's owner."""
    doctor_as_nobody = "import subprocess, sys; print(subprocess.run(sys.argv[1:], user=65534, group=65534, capture_output=True, text=True).stdout)"
    shutil.copy(KRAIT, tmp_path / "krait")
    for folder in (tmp_path, *tmp_path.parents):
        if str(folder).startswith("/tmp/pytest-of"):
            folder.chmod(0o755)
    script = """
        mount --make-rprivate / && mkdir -p t && mount -t tracefs nodev t || exit 77
        old=$(stat -c %a t) instances=$(stat -c %a t/instances)
        chmod 755 t; chmod 777 t/instances
        {} -c "$1" ./krait doctor --json
        chmod $instances t/instances; chmod $old t
    """.format(sys.executable)
    run = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", doctor_as_nobody], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    if run.returncode == 77 or not run.stdout.strip():
        pytest.skip(f"no tracefs can be mounted here: {run.stderr}")
    check = next(c for c in json.loads(run.stdout)["checks"] if c["name"] == "tracefs")
    assert check["state"] == "warn" and "root" in check["fix"] and "cannot be recorded by this user" in check["value"]


def test_few_open_files_are_noticed():
    run = subprocess.run(
        ["sh", "-c", 'ulimit -n 64 && exec "$0" doctor --json', KRAIT], capture_output=True, text=True, timeout=120
    )
    files = [c for c in json.loads(run.stdout)["checks"] if c["name"] == "open files"][0]
    assert files["state"] == "warn"
    assert files["value"].startswith("64 ")
    assert "ulimit -n" in files["fix"]


def test_text_and_json_say_the_same():
    text = doctor()
    _, data = report()
    marks = dict(re.findall(r"^  (?:ok|warn|no)\s+(.{13})  (\S+)", text.stdout, re.M))
    for check in data["checks"]:
        assert check["name"].ljust(13) in marks, check
    assert "Python calls can be recorded." in text.stdout
    assert text.returncode == 0
    assert text.stderr == ""


@pytest.mark.parametrize("columns", [80, 140])
def test_lines_fit_the_terminal(columns):
    text = re.sub(r"\x1b\[[0-9;]*m", "", doctor_on_terminal(columns))
    words = [w for w in text.split() if len(w) > columns - 40]
    if words:
        pytest.skip("a path is wider than the terminal: %s" % words[0])
    too_long = [line for line in text.split("\n") if len(line) > columns]
    assert not too_long


def test_colour_is_for_terminals_and_yields_to_no_color():
    assert "\x1b[" in doctor_on_terminal(80)
    assert "\x1b[" not in doctor_on_terminal(80, "1")
    assert "\x1b[" not in doctor().stdout


def test_an_operand_is_refused():
    run = doctor("extra")
    assert run.returncode == 2
    assert "extra" in run.stderr
