# SPDX-License-Identifier: Apache-2.0
"""krait record as a guest: the program runs as without it, and what goes wrong harms neither it nor the recording."""

import platform
import fcntl
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from package import PACKAGE
from recording import PACKET_HEAD, Recording
from terminal import on_terminal, open_terminal

SIGNALLED = lambda number: (-number, 128 + number)  # noqa: E731 - as a parent or as a shell sees it


@pytest.mark.few_pythons
@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_exit_status_passes_through(record, python, status):
    run = record(python, "-c", f"raise SystemExit({status})")
    assert run.status == status
    assert run.check().main.ending == ("exit", status)


@pytest.mark.few_pythons
def test_output_input_and_arguments_are_the_programs_own(record, python):
    run = record(
        python, "-c", "import sys; print(sys.argv[1:], sys.stdin.read()); print('e', file=sys.stderr)", "-o", "--", "x y", input="typed"
    )
    assert run.stdout == "['-o', '--', 'x y'] typed\n"
    assert run.stderr.startswith("e\n")


@pytest.mark.few_pythons
def test_modules_commands_and_scripts_of_an_environment(record, python, venv, tmp_path):
    assert record(python, "-m", "json.tool", "--help").check().calls()["main"] >= 1
    inside = venv(python, pip=False)
    script = tmp_path / "venv" / "bin" / "hello"
    script.write_text(f"#!{inside.exe}\ndef hello():\n    print('hello')\nhello()\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    run = record.words(python, script)
    assert run.stdout == "hello\n" and run.status == 0
    assert run.check().calls()["hello"] == 1


@pytest.mark.few_pythons
def test_a_shell_that_ends_up_running_python(record, python):
    run = record.words(python, "sh", "-c", f"{python.exe} -c 'def f(): pass\nf()' && exit 4")
    assert run.status == 4
    assert run.check().calls()["f"] == 1


DAEMON = """
    import os, time
    def f(): pass
    if os.fork(): os._exit(0)
    os.setsid()
    for _ in range(10):
        f()
        time.sleep(0.05)
"""


@pytest.mark.few_pythons
def test_with_wait_what_the_command_leaves_running_is_recorded_to_its_end(record, python):
    script = record.script(DAEMON)
    run = record.words(python, "sh", "-c", f"{python.exe} {script} >/dev/null 2>&1 & exit 3", options=["--wait"])
    assert run.status == 3 and "still running" not in run.stderr
    assert run.check(ended=False).calls()["f"] == 10


@pytest.mark.few_pythons
def test_without_wait_it_is_recorded_until_the_command_ends_which_is_said(record, python):
    script = record.script(
        """
        import os, time
        def f(): pass
        f()
        open("begun", "w").close()
        while not os.path.exists("ended"): time.sleep(0.01)
        f()
        """
    )
    until = "while ! [ -e begun ]; do sleep 0.01; done"
    run = record.words(python, "sh", "-c", f"{python.exe} {script} >/dev/null 2>&1 & {until}")
    (record.folder / "ended").touch()
    assert run.status == 0 and "1 process is still running; its recording ends here: --wait goes on with it" in run.stderr
    assert run.check(ended=False).calls()["f"] == 1 and run.main.ending == ("stop", -1)


def test_ctrl_c_ends_the_waiting(record, any_python):
    script = record.script("import time\ndef f(): pass\nf()\nprint('ready', flush=True)\ntime.sleep(60)\n")
    words = ["sh", "-c", f"{any_python.exe} {script} & echo $!"]
    process = subprocess.Popen(
        record.command(any_python, words, trace := record.new_trace(), ["--wait"]),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )
    daemon = int(process.stdout.readline())
    assert process.stdout.readline() == "ready\n"
    for _ in range(500):  # as long as the shell has not ended it is the command's own
        process.send_signal(signal.SIGINT)
        if process.poll() is not None:
            break
        time.sleep(0.1)
    os.kill(daemon, signal.SIGKILL)
    errors = process.stderr.read()
    assert process.wait(timeout=30) == 0 and "1 process is still running" in errors
    assert Recording(trace).check(ended=False).calls()["f"] == 1


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_ctrl_c_ends_the_waiting_also_as_the_command_ends(record, any_python, tmp_path):
    """A library that krait runs with interrupts it once, when it has just taken the command's status."""
    (tmp_path / "late.c").write_text(
        """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <signal.h>
        #include <string.h>
        #include <sys/types.h>
        pid_t waitpid(pid_t pid, int *status, int options)
        {
            static int times;
            pid_t (*real)(pid_t, int *, int) = (pid_t(*)(pid_t, int *, int))dlsym(RTLD_NEXT, "waitpid");
            pid_t ended = real(pid, status, options);
            if (ended > 0 && strcmp(program_invocation_short_name, "krait") == 0 && times++ == 0)
                raise(SIGINT);
            return ended;
        }
        """
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "late.so", tmp_path / "late.c", "-ldl"], check=True)
    script = record.script("import time\ndef f(): pass\nf()\nopen('begun', 'w').close()\ntime.sleep(60)\n")
    begun = f"{any_python.exe} {script} >/dev/null 2>&1 & echo $!; while ! [ -e begun ]; do sleep 0.01; done"
    run = record.words(
        any_python, "sh", "-c", begun, options=["--wait"], timeout=50, env={"LD_PRELOAD": str(tmp_path / "late.so")}
    )
    assert run.status == 0 and "1 process is still running" in run.stderr
    os.kill(int(run.stdout), signal.SIGKILL)


def test_a_command_that_runs_no_python_is_said(record, any_python):
    run = record.words(any_python, "true")
    assert run.status == 0
    figures, why = run.stderr.splitlines()
    assert figures.endswith("0 events, 0 B") and "No Python was seen" in why
    assert not run.path.exists()
    run = record.words(any_python, "sleep", "0.1", options=["--for", "10ms"])
    assert run.status == 0 and "No Python was seen until then\n" in run.stderr


@pytest.mark.parametrize("command, status", [("true", 0), ("no-such-command-at-all", 127)])
def test_an_empty_folder_that_was_there_before_stays(record, any_python, tmp_path, command, status):
    (tmp_path / "mine").mkdir()
    run = record.words(any_python, command, trace=tmp_path / "mine")
    assert run.status == status and list((tmp_path / "mine").iterdir()) == []


def test_an_empty_folder_that_was_named_with_a_slash_goes_too(krait, tmp_path):
    subprocess.run([krait, "record", "-o", f"{tmp_path}/trace/", "--", "true"], capture_output=True, check=True)
    assert not (tmp_path / "trace").exists()


def test_a_recording_in_a_recording_is_the_inner_ones(krait, record, any_python):
    run = record.words(any_python, krait, "record", "-o", record.folder / "inner", "--", any_python.exe, "-c", "def f(): pass\nf()")
    assert Recording(record.folder / "inner").check().calls()["f"] == 1
    assert not run.processes and "another krait" in run.stderr


def test_the_summary_says_what_there_is_and_what_to_type(record, any_python, info):
    run = record.text(any_python, "def f(): pass\nfor _ in range(1000): f()\n")
    assert not run.stdout
    said = run.stderr
    for word in ("process", "thread", "event", "krait report", str(run.path)):
        assert word in said, f"{word!r} is not in {said!r}"
    assert "\033" not in said
    facts = info(run.path)
    assert facts["processes"] == 1 and facts["threads"] >= 1
    assert facts["events"] == sum(len(t.events) for t in run.main.threads) + len(run.main.definitions)
    assert facts["duration_ns"] > 0 and not any(facts["lost"].values())
    assert facts["bytes"] == sum(f.stat().st_size for f in run.path.rglob("*") if f.is_file())


@pytest.mark.parametrize("name", ["my trace", "it's", "-x", "-", "a\nb", "\033[31mred", "é", "~", "$HOME", "back\\slash'\t"])
def test_the_commands_to_type_can_be_pasted(krait, any_python, tmp_path, name):
    command = [krait, "record", "-o", f"./{name}" if name != "-x" else name, "--", any_python.exe, "-c", "pass"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60).stderr
    first, *_, report, flame = said.splitlines()
    assert all(c.isprintable() or c == "\n" for c in said)
    assert first.startswith("krait: ") and len(said.splitlines()) == 3
    for line, verb in (report.replace("Next:", ""), "report"), (flame, "flame"):
        words = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, text=True, check=True).stdout.split("\0")
        assert words[:2] == ["krait", verb] and os.path.normpath(words[2]) == os.path.normpath(name)
        run = subprocess.run(["bash", "-c", line.replace("krait", krait, 1)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "options, text, verbs",
    [
        ([], "pass", ["report", "flame"]),
        (["--exclude", "*", "--no-c-calls"], "pass", ["cat", "view"]),
        (["--exclude", "*", "--no-c-calls", "--log", "*"], "import logging; logging.warning('x')", ["report --by mark", "cat", "view"]),
        (["--exclude", "*", "--no-c-calls"], "import krait\nwith krait.span('a'): krait.mark('b')", ["report --by mark", "intervals --span '*'", "cat", "view"]),
    ],
)
def test_the_next_commands_show_what_there_is(krait, any_python, record, options, text, verbs):
    run = record.text(any_python, text, options=options, env=PACKAGE)
    lines = [line.strip() for line in run.stderr.partition("Next:")[2].splitlines()]
    assert [" ".join(w for w in line.split()[1:] if "/" not in w).removesuffix(" -o flame.svg") for line in lines] == verbs
    for line in (line for line in lines if " cat " in line or " report " in line or " intervals " in line):
        done = subprocess.run(["bash", "-c", line.replace("krait", krait, 1)], capture_output=True, text=True, timeout=60)
        assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr


def test_a_name_that_is_not_utf8_can_be_pasted(krait, any_python, tmp_path):
    command = [os.fsencode(krait), b"record", b"-o", b"a\xff\x9b", b"--", any_python.exe.encode(), b"-c", b"pass"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60).stderr
    assert said.isascii() and rb"report $'a\xff\x9b'" in said


@pytest.mark.parametrize("verb", [["flame", "-o"], ["export", "--to", "folded", "-o"]])
def test_a_files_name_is_harmless_for_the_terminal(krait, record, any_python, verb):
    run = record(any_python, "-c", "pass")
    done = subprocess.run([krait, verb[0], run.path, *verb[1:], run.path / "\033[31m.svg"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "\\x1b[31m.svg" in done.stderr and "\033" not in done.stderr


def test_quiet_is_silent(record, any_python):
    run = record(any_python, "-c", "pass", options=["-q"])
    assert (run.status, run.stdout, run.stderr) == (0, "", "")
    assert run.processes


def test_a_folder_of_its_own_is_made_when_none_is_named(krait, any_python, tmp_path):
    command = [krait, "record", "--", any_python.exe, "-c", "pass"]
    for _ in range(2):
        assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
    folders = list(tmp_path.iterdir())
    assert len(folders) == 2 and all(Recording(f).processes for f in folders)


@pytest.mark.parametrize("option", ["--ring-size=4K", "--max-threads=600000", "--max-threads=3000000000", "--max-overhead=101", "--kernel=none-such", "--include=", "--exclude="])
def test_of_wrong_usage_the_program_does_not_run(krait, tmp_path, option):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("x")
    command = [krait, "record", option, "-o", tmp_path / "full", "--", "echo", "ran"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (2, "")
    assert option.split("=")[0] in run.stderr or option.split("=")[1] in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_what_is_said_fits_the_terminal(krait, tmp_path):
    """Broken at blanks: a terminal would do it in mid-word."""
    said = {}
    for columns in (400, 60):
        text, status = on_terminal([krait, "record", "-o", tmp_path / "t", "--", "true"], columns, ("stderr",))
        assert status == 0 and "No Python was seen" in text
        said[columns] = text.split("\n", 1)[1]  # behind the figures
    assert len(said[400].splitlines()) == 1 and said[400].split() == said[60].split()
    assert max(len(line) for line in said[60].splitlines()) <= 60


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2])
def test_signals_pass_through(record, any_python, number):
    script = record.script(
        """
        import os, signal, sys, time
        def handler(number, frame):
            os.write(1, b"got %d\\n" % number)  # not print: it may have interrupted one
            sys.exit(5)
        signal.signal(int(sys.argv[1]), handler)
        print("ready", flush=True)
        for _ in range(3000): time.sleep(0.01)  # what comes between Python's look for signals and the call is seen after it
        """
    )
    process, trace = record.start(any_python, script, int(number))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == (f"got {int(number)}\n", 5)
    assert Recording(trace).check().calls()["handler"] == 1


def test_a_terminal_that_hangs_up_tells_the_command_once(record, any_python, tmp_path):
    """As when a window is closed that runs krait and no shell: the kernel tells the leader of the session alone."""
    script = record.script(
        """
        import signal, sys, time
        told = []
        signal.signal(signal.SIGHUP, lambda number, frame: told.append(number))
        print("ready", flush=True)
        until = time.monotonic() + 10
        while not told and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.1)
        open(sys.argv[1], "w").write(str(told))
        """
    )
    command = record.command(any_python, [any_python.exe, script, tmp_path / "told"], record.new_trace())
    main, side = open_terminal()
    process = subprocess.Popen(["setsid", "--ctty", *command], stdin=side, stdout=side, stderr=side)
    os.close(side)
    with open(main, "rb") as terminal:
        while b"ready" not in terminal.readline():
            pass
    assert process.wait(timeout=60) == 0
    assert (tmp_path / "told").read_text() == f"[{int(signal.SIGHUP)}]"


@pytest.mark.parametrize("options", [[], ["--wait"]], ids=["", "wait"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_that_comes_while_the_command_is_started_reaches_it(record, any_python, tmp_path, number, options):
    """A lease on the command's file keeps its exec waiting (fcntl(2), Leases)."""
    command = tmp_path / "sleep"
    shutil.copy(shutil.which("sleep"), command)
    with open(command) as leased:
        fcntl.fcntl(leased, fcntl.F_SETSIG, signal.SIGURG)  # which says that somebody waits: ignored
        fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        process = subprocess.Popen(record.command(any_python, [command, 50], record.new_trace(), options), stderr=subprocess.DEVNULL)
        wait_until(lambda: fcntl.fcntl(leased, fcntl.F_GETLEASE) != fcntl.F_WRLCK)
        process.send_signal(number)
    assert process.wait(timeout=60) in SIGNALLED(number)


@pytest.mark.parametrize("ignored", [[], ["PIPE"], ["HUP", "INT", "QUIT"]], ids=["none", "PIPE", "nohup"])
def test_the_program_ignores_the_signals_it_would_ignore_without_krait(krait, tmp_path, ignored):
    trap = f"trap '' {' '.join(ignored)}; " if ignored else ""
    look = ["grep", "SigIgn", "/proc/self/status"]

    def ignores(*command):
        shell = ["sh", "-c", f'{trap}exec "$@"', "sh", *map(str, command)]
        said = subprocess.run(shell, capture_output=True, text=True, timeout=60).stdout.split()[1]
        return int(said, 16) & 0x7FFFFFFF  # 32 and 33 are glibc's own: posix_spawn ignores them until they are used

    assert ignores(krait, "record", "-q", "-o", tmp_path / "trace", "--", *look) == ignores(*look)


def test_the_status_passes_through_where_krait_is_started_to_ignore_sigchld(krait, tmp_path):
    """No wait tells it there: so this signal alone the program does not begin to ignore, of which grep says 1."""
    look = ["grep", "-q", "^SigIgn:.*1....$", "/proc/self/status"]
    command = ["env", "--ignore-signal=CHLD", krait, "record", "-q", "-o", tmp_path / "trace", "--", *look]
    assert subprocess.run(command, timeout=60).returncode == 1
    assert subprocess.run(command[:2] + look, timeout=60).returncode == 0


@pytest.mark.few_pythons
def test_a_program_killed_by_a_signal(record, python):
    run = record(python, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert run.status in SIGNALLED(signal.SIGTERM)
    assert run.main.ending == ("signal", signal.SIGTERM)
    run.check(ended=False)


@pytest.mark.few_pythons
def test_ctrl_c_ends_the_program_and_not_the_recording(record, python):
    script = record.script(
        """
        import time
        def wait():
            print("ready", flush=True)
            while True:
                time.sleep(0.01)
        wait()
        """
    )
    process, trace = record.start(python, script, start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode in SIGNALLED(signal.SIGINT)
    assert "KeyboardInterrupt" in errors and str(trace) in errors
    recording = Recording(trace).check()
    lines, _ = recording.main.shape(recording.main.threads[0], "app.py")
    assert "unwind wait" in lines


def test_ctrl_c_that_the_program_survives(record, any_python):
    script = record.script(
        """
        import time
        try:
            print("ready", flush=True)
            for _ in range(3000): time.sleep(0.01)
        except KeyboardInterrupt:
            print("caught", flush=True)
        def after():
            return "after"
        print(after(), flush=True)
        """
    )
    process, trace = record.start(any_python, script, start_new_session=True)
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "caught\nafter\n")
    assert Recording(trace).check().calls()["after"] == 1


def test_a_terminal_stays_the_programs_own(record, any_python):
    """Job control and isatty are as without krait."""
    script = record.script("import os, sys\nprint(sys.stdout.isatty(), sys.stdin.isatty(), os.tcgetpgrp(0) == os.getpgrp())\n")
    trace = record.new_trace()
    command = ["setsid", "--ctty", "--wait", *record.command(any_python, [any_python.exe, script], trace, ["-q"])]
    text, status = on_terminal(command, streams=("stdin", "stdout", "stderr"))
    assert (text.strip(), status) == ("True True True", 0)


# -- when the disk does not do its part --

BUSY = """\
    import sys
    def f(n):
        return n
    for n in range(400_000):
        f(n)
    print("finished")
    """


def test_a_full_disk_is_said_and_the_program_runs_on(record, any_python, small_disk, info):
    disk = small_disk(1 << 20)
    run = record.text(any_python, BUSY, trace=disk / "trace")
    assert run.stdout == "finished\n" and run.status == 0
    assert "No space left" in run.stderr
    facts = info(run.path)
    assert facts["lost"]["disk"] > 0 and facts["events"] > 1000
    assert "lost" in run.stderr
    assert run.calls()["f"] > 1000


@pytest.mark.parametrize("options", [[], ["--sample", "5000"]], ids=["calls", "samples"])
def test_what_could_not_be_written_is_not_called_complete(record, any_python, small_disk, options):
    text = "import time\ndef f(n): return f(n - 1) if n else 0\nend = time.monotonic() + 2\nwhile time.monotonic() < end: f(20)"
    run = record.text(any_python, text, trace=small_disk(64 << 10) / "trace", options=[*options, "--for", "1s"])
    assert "No space left" in run.stderr and "waits for the command" in run.stderr and "complete" not in run.stderr


def test_a_disk_that_is_full_from_the_start(record, any_python, small_disk):
    disk = small_disk(4096)
    (disk / "fill").write_bytes(b"x" * 4096)
    run = record.text(any_python, BUSY, trace=disk / "trace", ok=False)
    assert "No space left" in run.stderr
    assert run.stdout in ("finished\n", "")  # refused at the start, or run on unharmed
    assert run.status == (0 if run.stdout else 125)


def test_who_ends_krait_before_it_records_finds_no_folder(krait, tmp_path):
    trace = tmp_path / "trace"
    with subprocess.Popen([krait, "record", "-q", "-o", trace, "--", "sleep", "1"], stderr=subprocess.DEVNULL) as run:
        while not trace.exists() and run.poll() is None:
            pass
        run.terminate()
    assert not trace.exists()


def test_a_missing_folder_is_made_with_its_parents(record, any_python, tmp_path):
    run = record(any_python, "-c", "pass", trace=tmp_path / "a" / "b" / "c")
    assert run.status == 0 and run.check().processes


def test_a_path_that_cannot_be_written(record, any_python, small_disk):
    disk = small_disk(1 << 20)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    run = record.text(any_python, BUSY, trace=disk / "trace", ok=False)
    assert f"cannot make the folder {disk}/trace: Read-only file system; choose another with -o" in run.stderr
    assert (run.status, run.stdout) == (125, "")


@pytest.mark.parametrize("most", [1, 3])
def test_as_many_threads_are_recorded_as_were_asked_for(record, any_python, info, most):
    """At least: what a process writes besides takes none of their room."""
    run = record.text(
        any_python,
        """
        import sys, threading
        def f(): pass
        everybody = threading.Barrier(int(sys.argv[1]))
        def work():
            f()
            everybody.wait()
        others = [threading.Thread(target=work) for _ in range(int(sys.argv[1]) - 1)]
        for t in others: t.start()
        work()
        for t in others: t.join()
        """,
        most,
        options=["--max-threads", most],
    )
    assert run.check().calls()["f"] == most and info(run.path)["threads"] == most


def test_threads_beyond_those_asked_for_are_counted(record, any_python, info):
    run = record.text(
        any_python,
        """
        import threading
        def f(): pass
        t = threading.Thread(target=f)
        t.start()
        t.join()
        f()
        """,
        options=["--max-threads", 1],
    )
    assert run.calls()["f"] == 1 and info(run.path)["lost"]["no ring"] > 0
    assert "use --max-threads" in run.stderr


@pytest.mark.parametrize("instead", [None, Path.mkdir, Path.touch], ids=["nothing", "a folder", "a file"])
def test_a_folder_that_vanishes_while_recording(record, any_python, instead):
    script = record.script(
        """
        import sys
        def f(): pass
        print("ready", flush=True)
        sys.stdin.read()
        for _ in range(400_000): f()
        print("finished")
        """
    )
    process, trace = record.start(any_python, script, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    while trace.exists():  # krait may be writing into it
        shutil.rmtree(trace, ignore_errors=True)
    if instead:
        instead(trace)
    out, errors = process.communicate("go", timeout=60)
    assert (process.returncode, out) == (0, "finished\n"), errors
    said = " ".join(errors.split())
    assert f"the folder {trace} was removed meanwhile" in said and f"krait report {trace}" not in said


@pytest.mark.few_pythons
def test_the_programs_address_space_stays_its_own(record, python):
    script = record.script(
        """
        import resource, threading
        limit = 600 << 20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        most = bytearray(300 << 20)
        def f(): pass
        for _ in range(4):
            thread = threading.Thread(target=f)
            thread.start()
            thread.join()
        print("enough")
        """
    )
    run = record(python, script)
    assert (run.status, run.stdout) == (0, "enough\n"), run.stderr
    assert run.check().calls()["f"] == 4


FILTERED = """
    import ctypes, struct, threading
    class Program(ctypes.Structure):
        _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_char_p)]
    def forbid(*numbers):  # seccomp(2): whoever calls one of these is killed
        code = struct.pack("HBBI", 0x20, 0, 0, 0)  # the call's number
        for number in numbers:
            code += struct.pack("HBBI", 0x15, 0, 1, number) + struct.pack("HBBI", 0x06, 0, 0, 0x80000000)
        code += struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
        prctl = ctypes.CDLL(None).prctl
        prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
        assert prctl(38, 1, 0, 0, 0) == 0
        program = Program(len(code) // 8, code)
        assert prctl(22, 2, ctypes.addressof(program), 0, 0) == 0
    def f(): met.wait()
    met = threading.Barrier(THREADS)
    threads = [threading.Thread(target=f) for _ in range(THREADS)]
    forbid(NUMBERS)
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print("done")
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the calls' numbers are of x86-64")
@pytest.mark.parametrize("numbers, threads", [("150, 25", 8), ("150", 40)], ids=["munlock-mremap", "munlock"])
def test_a_seccomp_filter_does_not_end_the_program_at_its_next_thread(record, any_python, numbers, threads):
    run = record.text(any_python, FILTERED.replace("NUMBERS", numbers).replace("THREADS", str(threads)))
    assert run.stdout == "done\n"
    assert run.check().calls()["f"] == threads


@pytest.mark.parametrize("limit", ["-f 100000", "-v 1000000", "-n 12", "-n 7"])
def test_limits_of_the_shell_are_kept(krait, any_python, tmp_path, limit):
    command = [krait, "record", "-o", tmp_path / "trace", "--", any_python.exe, "-c", "def f(): pass\nf()"]
    shell = ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *map(str, command)]
    run = subprocess.run(shell, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and "cannot" not in run.stderr, run.stderr
    assert Recording(tmp_path / "trace").check().calls()["f"] == 1


# -- when someone is killed --


@pytest.mark.few_pythons
@pytest.mark.parametrize("options", [[], ["--lossless"]], ids=["", "lossless"])
def test_killing_the_collector_harms_nothing(record, python, options, tmp_path):
    script = record.script(
        """
        import os, sys, time
        def f(): pass
        print("ready", flush=True)
        for _ in range(500_000): f()
        open(sys.argv[1], "w").write("finished")
        """
    )
    done = tmp_path / "done"
    process, trace = record.start(python, script, done, options=options)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.02)
    process.kill()
    process.wait()
    wait_until(lambda: done.exists() and done.read_text() == "finished")
    for recorded in Recording(trace, torn=True).processes:
        recorded.check_balanced(ended=False)


def wait_until(holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not become so"
        time.sleep(0.05)


def test_a_killed_collector_has_written_what_a_quiet_thread_did(record, any_python, krait, info, report, tmp_path):
    script = record.script(
        """
        import sys
        def f(): pass
        for _ in range(50): f()
        print("ready", flush=True)
        sys.stdin.readline()
        open(sys.argv[1], "w").write("finished")
        """
    )
    done = tmp_path / "done"
    process, trace = record.start(any_python, script, done, options=["--no-c-calls", "--include", "f"], stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    wait_until(lambda: Recording(trace, torn=True).calls()["f"] == 50)  # while the thread waits for its line
    process.kill()
    process.wait()
    process.stdin.close()
    wait_until(done.exists)
    (entry,) = info(trace)["process_list"]
    assert info(trace)["finished"] is False and entry["end"] is None and entry["status"] is None
    assert [(f["name"], f["calls"]) for f in report(trace)] == [("f", 50)]
    text = subprocess.run([krait, "info", trace], capture_output=True, text=True).stdout
    assert "unfinished 1 of 1 process" in text and "collector was killed" in text
    notes = subprocess.run([krait, "report", trace], capture_output=True, text=True).stderr
    assert "unfinished: 1 of 1 processes: the recording still runs, or its collector was killed" in notes


@pytest.mark.parametrize("there", [20, 60, PACKET_HEAD.size + 40], ids=["header", "context", "events"])
def test_half_a_packet_is_damage_once_nobody_writes_it_any_more(record, any_python, krait, report, there):
    """While the collector lives its rest is to come; a collector that is killed leaves it as it is."""
    script = record.script(
        """
        import sys
        def f(): pass
        for _ in range(50): f()
        print("ready", flush=True)
        sys.stdin.readline()
        """
    )
    process, trace = record.start(any_python, script, options=["--no-c-calls", "--include", "f"], stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    wait_until(lambda: Recording(trace, torn=True).calls()["f"] == 50)  # what was done is written, and nothing comes
    (stream,) = trace.glob("*/thread-*")
    with stream.open("ab") as file:
        file.write(stream.read_bytes()[:there])

    def said_by(*verb):
        return subprocess.run([krait, *verb, trace], capture_output=True, text=True)

    verbs = [["info"], ["info", "--json"], ["cat"], ["report", "--json"], ["export", "--to", "folded", "-o", "-"]]
    for verb in verbs:
        run = said_by(*verb)
        assert run.returncode == 0 and "byte " not in run.stderr, verb
    assert [(f["name"], f["calls"]) for f in report(trace)] == [("f", 50)]
    process.kill()
    process.wait()
    process.stdin.close()
    for verb in verbs:
        run = said_by(*verb)
        assert f"{stream}: byte " in run.stderr and "cut" in run.stderr, verb
        assert run.returncode == (1 if verb[0] in ("info", "cat") else 0), verb
    (row,) = report(trace)
    assert row["calls"] > 50 if there > PACKET_HEAD.size else row["calls"] == 50  # its whole events count


COUNTED = """
    import mmap, os, sys
    with open(sys.argv[1], "r+b") as f:
        shared = mmap.mmap(f.fileno(), 4096)
    shared[8:16] = os.getpid().to_bytes(8, "little")
    def step(n):
        return n
    n = 0
    while True:
        step(n)
        n += 1
        shared[0:8] = n.to_bytes(8, "little")
    """


@pytest.mark.few_pythons
def test_nothing_complete_is_lost_when_the_program_is_killed(record, python, rounds, tmp_path):
    """The program writes how many calls are complete where a kill cannot reach it; the trace has to hold them all."""
    progress = tmp_path / "progress"
    script = record.script(COUNTED)
    rng = random.Random(20261121)
    for kill in range(rounds(5, 30)):
        progress.write_bytes(bytes(4096))
        process, trace = record.start(python, script, progress, options=["-q", "--lossless"])
        done = killed_at_random(process, progress, rng)
        assert process.returncode in SIGNALLED(signal.SIGKILL)
        recording = Recording(trace).check(ended=False)
        thread = next(t for t in recording.main.threads if any(recording.main.name_of(e) == "step" for e in t.events))
        lines, _ = recording.main.shape(thread, "app.py")
        calls, returns = lines.count("call step"), lines.count("return step")
        assert done <= returns <= calls <= returns + 1 and calls <= done + 2, f"kill {kill}: {done} done, {calls} recorded"
        assert recording.main.ending == ("signal", signal.SIGKILL)
        shutil.rmtree(trace)


def killed_at_random(process, progress, rng):
    """Kills the program, not krait, a random while after its first step; returns how many steps were complete."""
    deadline = time.monotonic() + 30
    while not (first := progress.read_bytes())[0:8].strip(b"\0"):
        assert time.monotonic() < deadline and process.poll() is None, process.communicate()
        time.sleep(0.001)
    time.sleep(rng.expovariate(1 / 0.004))
    os.kill(int.from_bytes(first[8:16], "little"), signal.SIGKILL)
    process.communicate(timeout=60)
    return int.from_bytes(progress.read_bytes()[0:8], "little")


# -- what others read --


@pytest.mark.few_pythons
@pytest.mark.skipif(not shutil.which("babeltrace2"), reason="babeltrace2 is not installed")
def test_babeltrace2_reads_it_without_a_message_and_agrees_with_cat(record, python, cat):
    run = record.text(
        python,
        """
        import threading
        def f(n):
            return len(str(n))
        def work():
            for n in range(300):
                f(n)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        """,
    )
    command = ["babeltrace2", str(run.path)]
    for prefix in {python.prefix, ()}:  # sid's is 2.1
        read = subprocess.run([*prefix, *command], capture_output=True, text=True, timeout=120)
        assert (read.returncode, read.stderr) == (0, "")
        theirs = read.stdout.splitlines()
        assert any('"__main__.f' in line or "f" in line for line in theirs if "python:call" in line)
        ours = cat(run.path)
        assert len(ours) == len(theirs) == sum(len(t.events) for t in run.main.threads) + len(run.main.definitions)
        name = re.compile(r"\b(?:python|c|code|thread|process|krait|gil):\w+")
        assert [name.search(line).group() for line in ours] == [name.search(line).group() for line in theirs]
