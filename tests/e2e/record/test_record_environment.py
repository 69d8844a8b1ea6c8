# SPDX-License-Identifier: Apache-2.0
"""What a program starts is recorded whatever environment it is given, and sees that environment alone."""

import shlex
import shutil
import subprocess

import pytest

CHILD = 'import os\ndef child(): pass\nchild()\nprint({k: v for k, v in os.environ.items() if k != "LC_CTYPE"}, flush=True)\n'  # PEP 538 sets that

# Each begins the child with an environment that krait's variables are not in: `me` is the interpreter, `code` its program.
WAYS = {
    "empty": "subprocess.run([me, '-c', code], env={})",
    "few": "subprocess.run([me, '-c', code], env={'A': 'b', 'PATH': '/bin:/usr/bin'})",
    "env -i": "subprocess.run(['env', '-i', 'A=b', me, '-c', code])",
    "env -u": "subprocess.run(['env', '-u', 'KRAIT_SESSION', '-u', 'LD_PRELOAD', me, '-c', code], env=few)",
    "through shells": "subprocess.run(['sh', '-c', 'exec sh -c \\'\"$0\" -c \"$1\"\\' \"$0\" \"$1\"', me, code], env={'PATH': '/bin:/usr/bin', 'PWD': '/'})",
    "own preload": "subprocess.run([me, '-c', code], env={'LD_PRELOAD': 'libm.so.6'})",
    "preload replaced": "subprocess.run([me, '-c', code], env={**few, 'LD_PRELOAD': 'libm.so.6'})",
    "execve": "os.fork() or os.execve(me, [me, '-c', code], {'A': 'b'})\nos.wait()",
    "execvpe": "os.fork() or os.execvpe('env', ['env', me, '-c', code], {'PATH': os.environ['PATH']})\nos.wait()",
    "fexecve": "os.fork() or os.execve(os.open(me, os.O_RDONLY), [me, '-c', code], {})\nos.wait()",
    "posix_spawn": "os.waitpid(os.posix_spawn(me, [me, '-c', code], {}), 0)",
    "posix_spawnp": "os.waitpid(os.posix_spawnp('env', ['env', me, '-c', code], {}), 0)",
    "spawnve": "os.spawnve(os.P_WAIT, me, [me, '-c', code], {})",
    "cleared": "os.environ.clear()\nsubprocess.run([me, '-c', code])",
    "390 variables": "subprocess.run([me, '-c', 'import os\\ndef child(): pass\\nchild()\\nprint(len(os.environ))'], env={f'V{i}': 'x' for i in range(390)})",
    "a small stack": "threading.stack_size(32768)\nt = threading.Thread(target=lambda: os.posix_spawn(me, [me, '-c', code], {}))\nt.start()\nt.join()\nos.wait()",
}


def program(way):
    return f"""
import os, subprocess, sys, threading
me, code = sys.executable, {CHILD!r}
few = {{k: v for k, v in os.environ.items() if k in ("HOME", "PATH")}}
{WAYS[way]}
"""


def named(text, number):
    """The child has a function of its own in each way."""
    return text.replace("child", f"child{number}")


def test_children_with_an_environment_of_their_own_are_recorded(record, any_python):
    """Each way in a fork of the program, so that what it changes there is its own."""
    ways = [f"code = {named(CHILD, n)!r}\n{named(way, n)}" for n, way in enumerate(WAYS.values())]
    text = program("few").replace(WAYS["few"], "") + f"""
for way in {ways!r}:
    pid = os.fork()
    if not pid:
        exec(way)
        os._exit(0)
    os.waitpid(pid, 0)
    print("--", flush=True)
"""
    run = record.text(any_python, text)
    calls = run.check(ended=False).calls()
    assert {way: calls[f"child{n}"] for n, way in enumerate(WAYS)} == dict.fromkeys(WAYS, 1)
    alone = any_python.run(record.folder / "app.py", cwd=record.folder).stdout.split("--\n")
    assert dict(zip(WAYS, run.stdout.split("--\n"))) == dict(zip(WAYS, alone)) and all(alone[:-1])


@pytest.mark.every_python
def test_every_python_is_recorded_and_sees_the_environment_it_was_given(record, python):
    run = record.text(python, program("few"))
    assert run.check(ended=False).calls()["child"] == 1
    assert "'A': 'b'" in run.stdout and "KRAIT" not in run.stdout and "LD_PRELOAD" not in run.stdout


def test_grandchildren_of_a_cleaned_environment_too(record, any_python):
    run = record.text(
        any_python,
        """
        import subprocess, sys
        inner = "import subprocess, sys\\ndef child(): pass\\nchild()\\nsubprocess.run([sys.executable, '-c', 'def grandchild(): pass\\\\ngrandchild()'])"
        subprocess.run([sys.executable, "-c", inner], env={})
        """,
    )
    calls = run.check(ended=False).calls()
    assert calls["child"] == 1 and calls["grandchild"] == 1 and len(run.processes) == 3


def test_other_programs_see_the_environment_they_were_given(record, any_python):
    run = record.text(any_python, "import subprocess\nprint(subprocess.run(['env'], env={'A': 'b'}, stdout=subprocess.PIPE).stdout)")
    assert run.stdout == "b'A=b\\n'\n"


def test_a_large_environment_goes_as_it_is(record, any_python):
    run = record.text(
        any_python,
        """
        import os, subprocess, sys
        code = "import os; print(len(os.environ))"
        print(subprocess.run([sys.executable, "-c", code], env={f"V{i}": "x" for i in range(3000)}).returncode)
        """,
    )
    assert run.stdout == any_python.run(record.folder / "app.py").stdout
    assert len(run.processes) == 1


def test_an_empty_session_is_an_environment_that_is_not_to_be_recorded(record, any_python):
    run = record.text(any_python, "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'def child(): pass\\nchild()'], env={'KRAIT_SESSION': ''})")
    run.check()
    assert len(run.processes) == 1


def test_without_children_the_first_python_alone_is_recorded(record, any_python):
    inner = "import os, subprocess, sys\nprint(sorted(os.environ))\ndef f(): pass\nf()\nsubprocess.run([sys.executable, '-c', 'def f(): pass\\nf()'], env={})"
    run = record.words(any_python, "env", "-i", "A=b", any_python.exe, "-c", inner, options=["--no-children"])
    run.check()
    assert len(run.processes) == 1 and run.calls()["f"] == 1
    assert "'A'" in run.stdout and "KRAIT" not in run.stdout and "LD_PRELOAD" not in run.stdout


def test_a_preload_of_the_program_s_own_comes_back_without_children(record, any_python):
    run = record(any_python, "-c", "import os; print(os.environ['LD_PRELOAD'])", options=["--no-children"], env={"LD_PRELOAD": "libm.so.6:libdl.so.2"})
    assert run.stdout == "libm.so.6:libdl.so.2\n"


LIBC_CALLS = [
    'execl(python, python, "-c", code, NULL)',
    'execlp(python, python, "-c", code, NULL)',
    'execle(python, python, "-c", code, NULL, none)',
    "execv(python, words)",
    "execvp(python, words)",
    "execve(python, words, none)",
    "execvpe(python, words, none)",
    "fexecve(open(python, O_RDONLY), words, none)",
    "execveat(AT_FDCWD, python, words, none, 0)",
    "execve(python, words, NULL)",
]


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_all_of_libc_s_ways_to_begin_a_program(record, any_python, tmp_path):
    cases = "".join(f"case {n}: {call}; break;\n" for n, call in enumerate(LIBC_CALLS))
    (tmp_path / "begin.c").write_text(
        f"""
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdlib.h>
        #include <unistd.h>
        int main(int argc, char **argv)
        {{
            char *python = argv[1], *code = argv[2], *none[] = {{ NULL }}, *words[] = {{ python, "-c", code, NULL }};
            int way = atoi(argv[3]);
            clearenv();
            switch (way) {{
            {cases}
            }}
            return 3;
        }}
        """
    )
    subprocess.run(["cc", "-w", "-o", tmp_path / "begin", tmp_path / "begin.c"], check=True)
    text = "".join(f'"$0" "$1" {shlex.quote(named(CHILD, n))} {n} || exit\n' for n in range(len(LIBC_CALLS)))
    run = record.words(any_python, "sh", "-c", text, tmp_path / "begin", any_python.exe)
    assert run.status == 0 and run.stdout == "{}\n" * len(LIBC_CALLS)
    calls = run.check().calls()
    assert {call: calls[f"child{n}"] for n, call in enumerate(LIBC_CALLS)} == dict.fromkeys(LIBC_CALLS, 1)


def test_what_the_program_preloads_comes_first(record, any_python):
    """Some has to: sanitizers end a program where they do not."""
    run = record.words(any_python, "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": "libm.so.6"})
    assert run.stdout.startswith("libm.so.6:") and run.stdout.endswith("libkrait-preload.so\n")
