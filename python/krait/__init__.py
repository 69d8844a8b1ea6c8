"""Record where the time of this program goes.

    import krait

    with krait.recording("trace"):
        work()

    krait.start("trace", c_calls=False)
    ...
    krait.stop()

    with krait.attach(pid) as other:  # a program that runs already
        ...

Then look at it from the shell: krait report trace
"""
import atexit as _atexit
import contextlib as _contextlib
import functools as _functools
import importlib as _importlib
import os as _os
import re as _re
import signal as _signal
import subprocess as _subprocess
import sys as _sys
import _thread
import time as _time
import warnings as _warnings

__all__ = ["start", "stop", "pause", "resume", "snapshot", "recording", "attach", "is_recording", "mark", "span", "counter", "flow", "command", "Handler"]
__version__ = "0.1.0"

# Of the recording that start() began: its folder, the collector's file, and the process that began it.
_state = {"dir": None, "session": None, "pid": None}
_starting = _thread.allocate_lock()
_OPTIONS = ("include", "exclude", "c_calls", "gil", "tasks", "children", "call_sites", "max_overhead", "lossless", "ring_size", "buffer_size",
            "max_threads", "for_", "max_size", "keep", "last", "snapshot_on", "log", "audit", "args", "gc", "imports")
_ATTACH_OPTIONS = _OPTIONS + ("kernel", "kernel_functions", "kernel_ring_size", "usdt", "idle")
_PATIENCE = 10  # seconds that the end of a program waits for its recording


def _recorders_agent():
    """The native part of the krait that records this program; None: no krait records it from the outside."""
    for path in _os.environ.get("LD_PRELOAD", "").replace(":", " ").split():
        folder, name = _os.path.split(path)
        if name != "libkrait-preload.so":
            continue
        import importlib.util
        spec = importlib.util.spec_from_file_location("krait._agent", _os.path.join(folder, "_agent.abi3.so"))
        agent = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(agent)
        return agent
    return None


try:
    from krait._agent import counter, flow, mark, span
except Exception:  # no native part, or no Python that krait records: a library may call them all the same
    from krait._nothing import counter, flow, mark, span
    try:
        _agent = _recorders_agent()
        if _agent:
            _sys.modules["krait._agent"] = _agent
            counter, flow, mark, span = _agent.counter, _agent.flow, _agent.mark, _agent.span
    except Exception as _why:
        try:
            if "subinterpreters" in str(_why):  # 3.12 and later, Python/import.c
                _sys.stderr.write(f"krait: marks and spans are recorded in the main interpreter alone, not in this one: {_why}\n")
            else:
                _sys.stderr.write(f"krait: marks and spans of this program are not recorded: {_os.path.dirname(__file__)} has no native "
                                  f"part, and that of the krait command does not work here: {_why}\n")
        except Exception:  # it is None, closed or broken
            pass


class _Later(type):
    """The type of classes that stand for one of a module that `import krait` does not import; what is made of them is of that one.
    A function __getattr__ would do the same, but then CPython looks up krait.mark the slow way (Python/specialize.c), which takes
    longer than the mark."""

    def __new__(meta, name, bases, members, **named):
        if not bases:
            return super().__new__(meta, name, bases, members)
        real = tuple(base._real() if isinstance(base, _Later) else base for base in bases)
        return type(real[0])(name, real, members, **named)

    def _real(cls):
        return getattr(_importlib.import_module(cls._module), cls.__name__)

    def __call__(cls, *args, **named):
        return cls._real()(*args, **named)

    def __instancecheck__(cls, thing):
        return isinstance(thing, cls._real())

    def __subclasscheck__(cls, other):
        return issubclass(other, cls._real())

    def __getattr__(cls, name):
        return getattr(cls._real(), name)


class Handler(metaclass=_Later):
    """Record what it is given as log records of the recording that runs, if one does. It is a logging.Handler."""

    _module = "krait._logging"


class SpanProcessor(metaclass=_Later):
    """Record OpenTelemetry's spans as spans of the recording that runs, if one does. It is OpenTelemetry's SpanProcessor."""

    _module = "krait._opentelemetry"


class SpanExporter(metaclass=_Later):
    """Record OpenTelemetry's spans once they have ended, with their own times. It is OpenTelemetry's SpanExporter."""

    _module = "krait._opentelemetry"


def _in_child():
    global _starting
    _starting = _thread.allocate_lock()  # another thread may have held it


_os.register_at_fork(after_in_child=_in_child)


def command():
    """The path of the krait command that belongs to this package."""
    here = _os.path.dirname(_os.path.abspath(__file__))
    candidates = [
        _os.environ.get("KRAIT"),
        _os.path.join(here, "..", "..", "krait"),  # the build folder
        _os.path.join(here, "..", "..", "..", "..", "bin", "krait"),  # installed with it; below, other prefixes
        _os.path.join(_os.path.dirname(_sys.executable), "krait"),
        _os.path.join(_sys.prefix, "bin", "krait"),
    ]
    for path in candidates:
        if path and _os.path.isfile(path) and _os.access(path, _os.X_OK):
            return _os.path.abspath(path)
    raise FileNotFoundError("the krait command is not beside its Python package; set KRAIT to its path")


def _check(path, options, caller="krait.start", known=_OPTIONS):
    """Of wrong use, what needs no collector to tell."""
    if path is not None:
        _os.fspath(path)
    for name in options:
        if name not in known:
            raise TypeError(f"{caller}: no option {name!r}; there are {', '.join(known)}")


def _option_words(options):
    words = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")  # for_: `for` is a word of Python's
        if name in ("c_calls", "children", "gil", "tasks"):
            if not value:
                words.append("--no-" + name.replace("_", "-"))
        elif value is True:
            words.append(option)
        elif name == "kernel" and value:  # its groups are one word, behind an equals sign
            words.append(f"{option}={value if isinstance(value, str) else ','.join(value)}")
        elif isinstance(value, (list, tuple)):
            words += [f"{option}={item}" for item in value]
        elif value is not None and value is not False:
            words += [option, str(value)]
    return words


def start(path=None, **options):
    """Begin to record every thread of this process into the folder `path`.

    Options are those of `krait record` with underscores: c_calls=False, gil=False, tasks=False, children=False, include=[...], exclude=[...],
    max_overhead=5, call_sites=True, ring_size="4M", buffer_size="1G", max_threads=100, lossless=True, for_="10s", max_size="1G",
    keep="newest", last="10s", snapshot_on=["call:app.load>1s"], log=["app:DEBUG"], audit=["socket.*"], args=["shop.add(item)"], gc=True, imports=True. Of log and audit, True is all.
    A collector runs as a process of its own. Frames that are live are part of the recording. Returns the folder's path. Raises
    RuntimeError with the reason when it cannot. Without stop() the recording ends with the program.
    """
    _check(path, options)
    with _starting:
        try:
            return _start(path, options)
        except RuntimeError:
            raise
        except Exception as e:
            raise RuntimeError(f"krait.start: {e}") from e


def _start(path, options):
    import krait._agent as _agent  # `from` would run Python code, once the module is there

    if _agent.running():
        raise RuntimeError(f"krait.start({'' if path is None else repr(_os.fspath(path))}): {_already(_agent.session())}")
    words = [command(), "collect"] + (["-o", _os.fspath(path)] if path is not None else []) + _option_words(options)
    was_there = path is not None and _os.path.isdir(path)
    # The collector leaves its own parent at once, so that it is nobody's child: no wait() of the program meets it.
    status, printed, said = _call(words)
    lines = printed.splitlines()
    if status or len(lines) != 2:
        raise RuntimeError(f"krait.start: {_reason(said) or 'the collector did not start'}")
    session, folder = lines
    try:
        _agent.start(session)
    except BaseException:
        _end_collector(session)
        with _contextlib.suppress(OSError):
            _remove(folder, was_there)
        raise
    _state.update(dir=folder, session=session, pid=_os.getpid())
    return folder


def _call(words):
    """Runs a command that writes little: its exit status, what it printed, and what it said.

    Waits for its end, not for that of the pipes: a child that another thread forks now keeps them open. So without close_fds, with which Popen
    has a pipe of its own and waits for that.
    """
    printed, said = _os.pipe(), _os.pipe()
    try:
        status = _subprocess.call(words, stdin=_subprocess.DEVNULL, stdout=printed[1], stderr=said[1], close_fds=False)
        return status, _read_now(printed[0]), _read_now(said[0])
    finally:
        for fd in printed + said:
            _os.close(fd)


def _read_now(fd):
    _os.set_blocking(fd, False)
    with _contextlib.suppress(BlockingIOError):
        return _os.fsdecode(_os.read(fd, 65536))
    return ""


def _reason(said, typed="krait collect"):
    """What went wrong, without the name and the help of a command that the caller did not type."""
    lines = [line for line in said.strip().splitlines() if not line.startswith("Try: ")]
    prefix = typed + ": "
    said = "\n".join(line[len(prefix):] if line.startswith(prefix) else line for line in lines)
    return _re.sub("--[a-z][a-z-]*", _argument, _re.sub("; choose another( folder)? with -o", "; choose another path", said))


def _argument(option):
    """What the command's option is called here: max_overhead, c_calls=False."""
    name = option.group()[2:].replace("-", "_")
    for argument, text in ((name, name), (name + "_", name + "_"), (name.replace("no_", "", 1), name.replace("no_", "", 1) + "=False")):
        if argument in _ATTACH_OPTIONS:
            return text
    return option.group()


def _already(session):
    """Who records this process already, and what to do."""
    if _state["dir"] is not None and _state["session"] == session:
        return f"krait.start() already records this process, into {_state['dir']}; call krait.stop() first"
    collector = session.split("/")[2]
    command = "krait record"
    with _contextlib.suppress(OSError), open(f"/proc/{collector}/cmdline", "rb") as file:
        command = _os.fsdecode(file.read().rstrip(b"\0").replace(b"\0", b" ")) or command
    return (f"this process is already recorded by process {collector}, `{command}`; run the program without "
            "`krait record`, or start a recording of its own only if not krait.is_recording()")


def _end_collector(session):
    """Nothing will come: the collector, whose process the path of its file names, would wait for it. Waits until it writes
    no more, for a second at most."""
    with _contextlib.suppress(OSError, ValueError, IndexError):
        collector = int(session.split("/")[2])
        _os.kill(collector, _signal.SIGKILL)
        for _ in range(100):
            with open(f"/proc/{collector}/stat") as stat:  # FileNotFoundError when it is gone
                if stat.read().rpartition(")")[2].split()[0] in "ZX":
                    return
            _time.sleep(0.01)


def _remove(folder, was_there):
    """What a collector wrote that was not wanted: it begins in a folder that is empty or not there."""
    for path, folders, files in _os.walk(folder, topdown=False):
        for name in files:
            _os.unlink(_os.path.join(path, name))
        for name in folders:
            _os.rmdir(_os.path.join(path, name))
    if not was_there:
        _os.rmdir(folder)


def stop():
    """End the recording and wait until it is on disk. Returns the folder's path, or None when nothing was recorded.

    In a forked child this ends the child's part alone and does not wait: the recording goes on in the parent. Never raises.
    """
    return _stop(float("inf"))


def _stop(patience):
    try:
        import krait._agent as _agent
    except Exception:  # then nothing was started either
        return None
    folder, session, pid = _state["dir"], _state["session"], _state["pid"]
    _state.update(dir=None, session=None, pid=None)
    _agent.stop()
    if folder is None or pid != _os.getpid():
        return folder
    last = _time.monotonic() + patience
    while _os.path.exists(session) and _time.monotonic() < last:  # the collector's own file, there as long as it is
        _time.sleep(0.001)
    return folder


@_atexit.register
def _at_exit():
    """A recording that start() began here is on disk when the program has ended; it is not waited for for ever."""
    if _state["dir"] is not None and _state["pid"] == _os.getpid():
        _stop(_PATIENCE)


def attach(pid, path=None, **options):
    """Begin to record the running process `pid`, another one, into the folder `path`, as `krait record --pid` does.

    Returns when the process is recorded. The result has `pid`, `path` (the folder), stop(), wait(timeout=None), which waits for the end of
    for_="10s", max_size="1G" or of the process, snapshot(path=None), pause(), resume(), and `summary`, what krait said at the end. As a
    context manager it stops at the end of the block; else the recording ends with the script. Options are those of start(), and
    kernel=True or kernel="sched,irq", kernel_functions="vfs_*", kernel_ring_size="16M", usdt=["python:gc__*"]; and idle=True, which records
    nothing until resume(). children=True also records the Python programs that
    the process has started already, and those that it starts; by default krait records only what it forks from now on, and with False
    not even that. Raises RuntimeError with krait's reason when the process cannot be recorded; it is then left as it was. Raises
    FileNotFoundError when the krait command is not there. A recording that fails later raises in the script, which is the tool here: stop(),
    wait() and the end of the block raise RuntimeError. An exception of the block stays the one that is raised; the reason is then a
    RuntimeWarning. At the script's end it is a RuntimeWarning too.
    """
    _check(path, options, "krait.attach", _ATTACH_OPTIONS)
    from krait._attach import Attachment

    return Attachment(pid, path, options)


def pause():
    """Switch the recording off that this process is part of, in all its processes, until resume() or `krait ctl PID start`.

    Nothing is recorded meanwhile, at no cost. Returns False, and does nothing, where this process is not recorded. Never raises.
    """
    return _switch(False)


def resume():
    """Switch the recording on again after pause(), `krait ctl PID stop`, or `krait record --idle`. As pause() otherwise."""
    return _switch(True)


def _switch(on):
    try:
        import krait._agent as _agent
    except Exception:  # no Python that krait records
        return False
    return _agent.switch(on)


def snapshot(path=None):
    """Write what the recording of this process holds, with --last its newest part, as a recording of its own.

    `path` is the folder to make; without it, one beside the recording's: FOLDER-snapshot-1. The program waits until it is written; its other
    threads run on. Returns the folder's path, or None where this process is not recorded. Where the snapshot cannot be written, as on a full
    disk, warns with the reason (RuntimeWarning) and returns None. Raises only TypeError, when `path` is no path.
    """
    if path is not None:
        path = _os.fspath(path)
    try:
        import krait._agent as _agent
    except Exception:  # no Python that krait records
        return None
    inode = _agent.inode()
    if inode is None:
        return None
    try:
        answer = _ask(inode, b"snapshot" if path is None else b"snapshot " + _os.path.abspath(_os.fsencode(path)))
        if "error" not in answer:
            return answer["snapshot"]
        _warn(f"krait.snapshot: {_reason(answer['error'])}", 3)
    except Exception as e:  # it is gone, or this process may open no file more
        _warn(f"krait.snapshot: the recording's collector does not answer: {e}", 3)
    return None


def _ask(inode, request):
    """What the collector answers: src/record/ctl.h."""
    import json
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(600)
        s.connect(f"\0krait-ctl-{inode}")
        s.sendall(request)
        s.shutdown(socket.SHUT_WR)
        parts = []
        while True:
            part = s.recv(1 << 16)
            if not part:
                break
            parts.append(part)
    return json.loads(b"".join(parts))


def is_recording():
    """Whether this process is part of a recording, by start() or from outside by `krait record`; also while that is switched off."""
    try:
        import krait._agent as _agent
    except Exception:  # no Python that krait records, or no file more may be opened
        return False
    return _agent.running()


def _warn(text, level=4):
    """Tells why something is not recorded, and never raises: not under `python -W error` either. The line that is blamed is that of the
    level's caller: 2 is the function that warns."""
    try:
        _warnings.warn(text, RuntimeWarning, stacklevel=level)
    except Exception:
        with _contextlib.suppress(Exception):
            print(f"krait: {text}", file=_sys.stderr)


def _is_free(path):
    """Whether a recording can be made there: nothing is, or an empty folder."""
    try:
        return not _os.listdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False


# Of a code object's co_flags: Include/cpython/code.h.
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200


_OWN = "<krait>"
_LONGEST = 899  # bytes of a file's name that the agent takes: NAME_MAX_BYTES in src/python/codes.c


def _python(function):
    """The Python function that a call of it runs; None where that is not Python code."""
    while isinstance(function, _functools.partial):
        function = function.func
    for each in (function, getattr(type(function), "__call__", None)):
        if getattr(each, "__code__", None) is not None:
            return each
    return None


def _flags(function):
    """co_flags of what a call of it runs; 0 where that is not Python code."""
    return getattr(getattr(_python(function), "__code__", None), "co_flags", 0)


def _stands_for(function):
    """A file's name and a line for code that stands before a function: readers show a task by this function (src/trace/own.h), be it
    below other decorators. linecache looks for no source of it, as the name ends with >."""
    for _ in range(16):
        inner = _python(getattr(function, "__wrapped__", None))
        if inner is None:
            break
        function = inner
    function = _python(function)
    code = getattr(function, "__code__", None)
    line = getattr(code, "co_firstlineno", None)
    if not isinstance(line, int):
        return {"co_filename": _OWN}
    name = f"{_OWN}{function.__module__}:{function.__qualname__}:{code.co_filename}>"
    is_long = len(name.encode("utf-8", "backslashreplace")) > _LONGEST
    if is_long or ":" in f"{function.__module__}{function.__qualname__}":
        return {"co_filename": _OWN}
    return {"co_filename": name, "co_firstlineno": line}


def _wrap(function, context):
    """The function, with a context of its own around each call, or around all steps of a coroutine or generator."""
    kind = _flags(function)
    if kind & _COROUTINE:

        async def recorded(*args, **kwargs):
            with context():
                return await function(*args, **kwargs)

    elif kind & _ASYNC_GENERATOR:

        async def recorded(*args, **kwargs):
            with context():
                generator = function(*args, **kwargs)
                step = generator.__anext__()
                while True:
                    try:
                        value = await step
                    except StopAsyncIteration:
                        return
                    try:
                        sent = yield value
                    except GeneratorExit:
                        await generator.aclose()
                        raise
                    except BaseException as e:
                        step = generator.athrow(e)
                    else:
                        step = generator.asend(sent)

    elif kind & _GENERATOR and not kind & _ITERABLE_COROUTINE:

        def recorded(*args, **kwargs):
            with context():
                return (yield from function(*args, **kwargs))

    else:

        def recorded(*args, **kwargs):
            with context():
                return function(*args, **kwargs)

    # It is below all that is recorded. Of this file the agent would tell nothing meanwhile; readers leave it out by this name.
    recorded.__code__ = recorded.__code__.replace(**_stands_for(function))
    return _functools.wraps(function)(recorded)


def _wrapped(function, span):
    return _wrap(function, span._again)


class recording:
    """Record the body of a with statement, or the calls of a function that it decorates; see start().

    A coroutine or a generator is recorded from its first step to its last, with what runs beside it meanwhile.

    Each recording has a folder of its own: `path`, then `path`-2, `path`-3 and so on. The with statement gives the folder's
    path, or None where this process is recorded already: by `krait record`, by start(), or by another thread or an outer call
    that is in a recording(). Wrong options raise here, at once; what goes wrong later is a RuntimeWarning, and the body or the
    function runs all the same.
    """

    def __init__(self, path=None, **options):
        _check(path, options)
        self._path, self._options = path, options
        self._entered = _thread._local()  # what each __enter__ of a thread began: one object decorates all calls
        self._number = 1

    def _paths(self):
        """The folder, and where that is taken the next ones."""
        path = self._path if self._path is None else _os.fspath(self._path)
        while path is not None and self._number < 1_000_000:
            last = path.rstrip(b"/" if isinstance(path, bytes) else "/") or path
            named = path if self._number == 1 else last + (b"-%d" if isinstance(path, bytes) else "-%d") % self._number
            if _is_free(named) or not _os.path.isdir(named):
                yield named
            self._number += 1
        yield path

    def _begin(self):
        if is_recording():
            return None
        for path in self._paths():
            try:
                return start(path, **self._options)
            except RuntimeError:
                if is_recording():  # another thread was first
                    return None
                if path is None or not _os.path.isdir(path) or _is_free(path):
                    raise  # else somebody else has taken the folder meanwhile

    def __call__(self, function):
        return _wrap(function, _functools.partial(_Part, self))

    def __enter__(self):
        part = _Part(self)
        self._entered.__dict__.setdefault("parts", []).append(part)
        return part.__enter__()

    def __exit__(self, *raised):
        parts = getattr(self._entered, "parts", None)
        if parts:
            parts.pop().__exit__(*raised)


class _Part:
    """One body of a with statement, or one run of a decorated function."""

    def __init__(self, recording):
        self._recording, self._folder = recording, None

    def __enter__(self):
        try:
            self._folder = self._recording._begin()
        except Exception as e:
            _warn(f"not recorded: {e}")
        return self._folder

    def __exit__(self, *raised):
        if self._folder is not None:
            try:
                stop()
            except Exception as e:
                _warn(f"the recording was not ended: {e}")
