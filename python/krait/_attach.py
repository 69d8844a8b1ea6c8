"""krait.attach: another process, recorded from a script by the command `krait record --pid` of this installation.

Nothing here needs the native part: the script itself is not recorded.
"""
import atexit
import itertools
import operator
import os
import signal
import subprocess
import tempfile
import time

import krait

_CALLER = "krait.attach"
_COMMAND = "krait record"
_READY = _COMMAND + ": ready and off; "  # what it says with --idle when it has attached


class Attachment:
    """A recording of another process: what krait.attach() returns. Use it as a context manager, or call stop()."""

    def __init__(self, pid, path, options):
        self.pid = operator.index(pid)
        if self.pid == os.getpid():
            raise ValueError("%s: process %d is the caller; krait.start() records it" % (_CALLER, self.pid))
        folder = os.path.abspath(_free_folder(self.pid) if path is None else os.fsdecode(path))
        words = [krait.command(), "record", "--pid", str(self.pid), "-o", folder] + krait._option_words(options)
        if options.get("children"):  # those that exist too; by default those that it forks from now on
            words.append("--children")
        self.path, self.summary = None, None
        self._owner, self._failure = os.getpid(), None
        self._said = tempfile.TemporaryFile()  # no pipe: nobody reads one while the script works
        try:
            self._krait = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said)
            self._begin(folder)
        except BaseException:
            self._abandon()
            raise
        atexit.register(self._at_exit)

    def _begin(self, folder):
        """Waits until the process is recorded, with children=True all that could be. How long it tries is up to the command."""
        while True:
            status = _status(self._krait.pid)
            if status.get("processes") and not status["begins"]:
                break
            if self._krait.poll() is not None:  # it has failed, or was so short that nobody saw it
                self.wait()
                break
            time.sleep(0.002)
        self.path = folder

    def _abandon(self):
        process = getattr(self, "_krait", None)
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()
        self._said.close()

    def _end(self):
        """Keeps what the command has said; once."""
        if self.summary is not None:
            return
        self._said.seek(0)
        said = os.fsdecode(self._said.read()).splitlines(True)
        self.summary = "".join(line for line in said if not line.startswith(_READY))
        self._said.close()
        atexit.unregister(self._at_exit)
        if self._krait.returncode:
            reason = krait._reason(self.summary, _COMMAND) or "it ended with status %d" % self._krait.returncode
            self._failure = RuntimeError("%s(%d): %s" % (_CALLER, self.pid, reason))

    def wait(self, timeout=None):
        """Wait until the recording ends by itself: after `for_` or at `max_size`, or with the process. Returns the folder's path.

        Raises TimeoutError if it goes on after `timeout` seconds, and RuntimeError with krait's reason if it has failed.
        """
        try:
            self._krait.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError("%s(%d): the recording goes on after %g s; stop() ends it" % (_CALLER, self.pid, timeout)) from None
        self._end()
        if self._failure:
            raise self._failure
        return self.path

    def stop(self):
        """End the recording and wait until it is on disk; the process runs on. Returns the folder's path.

        Nothing more happens if it has ended already. Raises RuntimeError with krait's reason if it has failed.
        """
        if self.summary is None and self._krait.poll() is None:
            self._krait.send_signal(signal.SIGTERM)
        return self.wait()

    def snapshot(self, path=None):
        """Write what the recording holds, with last="10s" its newest part, as a recording of its own, while the process runs on.

        `path` is the folder to make; without it, one beside the recording's: FOLDER-snapshot-1. Returns the folder's path. Raises RuntimeError
        with krait's reason if it cannot be written, or if the recording has ended.
        """
        words = b"snapshot" if path is None else b"snapshot " + os.path.abspath(os.fsencode(path))
        return self._request(words)["snapshot"]

    def pause(self):
        """Switch the recording off, in all its processes, until resume(). Nothing is recorded meanwhile, at no cost.

        Returns whether all processes have followed; one that does not run Python now follows later. Raises RuntimeError if the recording has
        ended.
        """
        return self._switch(b"stop", ("off", "ready"))

    def resume(self):
        """Switch the recording on again, or after idle=True for the first time. As pause() otherwise."""
        return self._switch(b"start", ("on",))

    def _switch(self, word, states):
        return all(process["state"] in states for process in self._request(word)["processes"])

    def _request(self, words):
        answer = {}
        try:
            if self.summary is None and self._krait.poll() is None:
                answer = _ask(self._krait.pid, words)
        except (ConnectionError, FileNotFoundError, ValueError):
            pass  # it is ending
        except OSError as e:  # of this script: it may open no file more
            answer = {"error": "cannot ask the recording: %s" % e}
        answer = answer or {"error": "the recording has ended"}
        if "error" in answer:
            raise RuntimeError("%s(%d): %s" % (_CALLER, self.pid, krait._reason(answer["error"])))
        return answer

    def _at_exit(self):
        if self._owner != os.getpid():  # a fork of the script
            return
        try:
            self.stop()
        except RuntimeError as e:
            krait._warn(str(e))

    def __enter__(self):
        return self

    def __exit__(self, kind, *raised):
        """As stop(); but what the body raised is what the caller gets, and a failure of the recording is then a RuntimeWarning."""
        try:
            self.stop()
        except Exception as e:
            if kind is None:
                raise
            krait._warn(str(e), 3)

    def __repr__(self):
        return "<krait.attach(%d) into %r, %s>" % (self.pid, self.path, "ended" if self._krait.poll() is not None else "recording")


def _free_folder(pid):
    """A name as the command chooses one, in the current folder."""
    name = "krait-%d-%s" % (pid, time.strftime("%Y%m%d-%H%M%S"))
    names = itertools.chain([name], ("%s-%d" % (name, n) for n in itertools.count(2)))
    return next(n for n in names if not os.path.lexists(n))


def _status(collector):
    """What the recording says of itself: docs/control.md. Empty before it listens and after it ends."""
    try:
        return _ask(collector, b"status")
    except (OSError, ValueError):
        return {}


def _ask(collector, request):
    """What the recording of this process of krait's answers. Empty, or an exception, before it listens and after it ends."""
    folder = "/proc/%d/fd" % collector
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.readlink(path).startswith("/memfd:krait"):
            return krait._ask(os.stat(path).st_ino, request)
    return {}
