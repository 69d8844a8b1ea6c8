# SPDX-License-Identifier: Apache-2.0
"""Reads krait's recordings straight from their bytes, as src/ctf/format.h and src/event/events.def say them.

A second reader, on purpose: what the recorder wrote is judged without krait's own reading side. It knows no other CTF.
"""

import contextlib
import ctypes
import gc
import operator
import os
import re
import struct
from array import array
from collections import Counter, deque
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("KRAIT", ROOT / "build" / "krait")).resolve().parent
PACKET_HEAD = struct.Struct("<I16sIQQQQQQQI")
BEGINS = {"python:call", "python:resume", "python:throw", "c:call"}
ENDS = {"python:return", "python:yield", "python:unwind", "python:unwind_of", "c:return", "c:raise", "c:raise_of"}


def event_table():
    """From events.def: id -> (name, [(type, field)]), and enumeration -> {value: label}."""
    text = (ROOT / "src" / "event" / "events.def").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    events, enums, by_symbol = {}, {}, {}
    for number, symbol, name in re.findall(r'KRAIT_EVENT\((\d+), (\w+), "([^"]+)"', text):
        by_symbol[symbol] = events[int(number)] = (name, [])
    for symbol, kind, name in re.findall(r"KRAIT_FIELD\((\w+), (\w+), (\w+),", text):
        by_symbol[symbol][1].append((kind, name))
    for enum, value, label in re.findall(r'KRAIT_ENUM\((\w+), \w+, (\d+), "([^"]+)"', text):
        enums.setdefault(enum, {})[int(value)] = label
    return events, enums


EVENTS, ENUMS = event_table()
SIZES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "f64": "d", "code": "I"}
RARE = {"python:frame", "python:deep_frame", "python:stack", "python:deep_stack", "python:switch"}


def steps_of(layout):
    """How an event's fields are read: a struct for those that follow each other, with each one's name and labels; a name for a text."""
    steps = []
    for kind, field in layout:
        if kind == "str":
            steps.append(field)
            continue
        if not steps or isinstance(steps[-1], str):
            steps.append(("<", []))
        form, fields = steps[-1]
        steps[-1] = form + SIZES.get(kind, "B"), [*fields, (field, ENUMS.get(kind))]
    return [step if isinstance(step, str) else (struct.Struct(step[0]), step[1]) for step in steps]


LAYOUTS = {name: steps_of(layout) for name, layout in EVENTS.values()}
CODES = {name: {field for kind, field in layout if kind == "code"} for name, layout in EVENTS.values()}
# Of each begin and end of a call: who tells it, what it is called in a shape, and whether it is a begin.
STEPS = {name: (*name.removesuffix("_of").split(":"), name in BEGINS) for name in BEGINS | ENDS}


class Event(tuple):
    """`time` is in ticks of the trace's clock; `code` is its field of this name, or None. `fields` is read when asked for."""

    __slots__ = ()
    time, name = (property(operator.itemgetter(i)) for i in range(2))

    @property
    def code(self):
        code = self[2]
        return None if code < 0 else code

    @property
    def fields(self):
        _, name, _, at, data = self
        return read_fields(data, at, LAYOUTS[name])


@dataclass
class Code:
    kind: str
    module: str
    qualname: str
    file: str
    line: int


def read_fields(data, at, layout):
    values = {}
    for step in layout:
        if isinstance(step, str):
            end = data.index(b"\0", at)
            values[step] = data[at:end].decode("utf-8", "surrogateescape")
            at = end + 1
        else:
            form, fields = step
            for (field, labels), value in zip(fields, form.unpack_from(data, at)):
                values[field] = labels[value] if labels else value
            at += form.size
    return values


@contextlib.contextmanager
def no_collections():
    """Events are tuples that the garbage collector looks through, again and again while they become more: two thirds of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Split:
    """tests/split_packet.c, which finds where a packet's events begin."""

    NUMBERS, FIELDS = 256, 32  # as there
    NAMES = [EVENTS[number][0] if number in EVENTS else None for number in range(NUMBERS)]

    def __init__(self):
        self.loaded = ctypes.CDLL(str(BUILD / "tests" / "libsplit_packet.so"))
        self.loaded.split_packet.restype = ctypes.c_int64
        self.layouts = b"".join(self.layout(number) for number in range(self.NUMBERS))
        self.room = 0

    def layout(self, number):
        fields = EVENTS[number][1] if number in EVENTS else []
        sizes = bytes(0 if kind == "str" else struct.calcsize(SIZES.get(kind, "B")) for kind, _ in fields)
        code = fields.index(("code", "code")) if ("code", "code") in fields else self.FIELDS
        return bytes([number in EVENTS, len(fields), code]) + sizes.ljust(self.FIELDS, b"\0")

    def make_room(self, count):
        if count > self.room:
            self.room = 2 * count
            self.columns = [array(kind, bytes(array(kind).itemsize * self.room)) for kind in "QqQB"]
            self.addresses = (ctypes.c_void_p * len(self.columns))(*(column.buffer_info()[0] for column in self.columns))

    def __call__(self, data, at, end, clock, sizes):
        """Of each event of data[at:end] the time, the name, the code or -1, and where its fields begin: a list of each.

        Adds the events' bytes to `sizes` by number. `clock` is the packet's first full time.
        """
        self.make_room((end - at) // 4 + 1)
        count = self.loaded.split_packet(data, ctypes.c_size_t(at), ctypes.c_size_t(end), ctypes.c_uint64(clock), self.layouts, self.addresses, sizes)
        assert count >= 0, f"the packet's event {-1 - count} is not known, or goes beyond the packet's content"
        times, codes, fields, numbers = (memoryview(column)[:count].tolist() for column in self.columns)
        return times, list(map(self.NAMES.__getitem__, numbers)), codes, fields


split_packet = Split()


class Stream:
    """A stream's file. With `torn` the last packet may be cut short, as when who wrote it was killed.

    `columns` reads it packet by packet, `walk` event by event: of a long run there are too many to keep. `events` keeps them.
    `read` keeps few."""

    FEW = 1 << 20  # bytes

    def __init__(self, path, torn=False):
        self.path, self.torn = path, torn
        self.tid = next((head[-1] for _, head in self.packets()), None)  # None: it has no packet

    def packets(self):
        """(offset, head) of each."""
        at, size = 0, self.path.stat().st_size
        with open(self.path, "rb") as file:
            while at < size:
                file.seek(at)
                data = file.read(PACKET_HEAD.size)
                if self.torn and (len(data) < PACKET_HEAD.size or at + PACKET_HEAD.unpack(data)[7] // 8 > size):
                    break
                head = PACKET_HEAD.unpack(data)
                assert head[0] == 0xC1FC1FC1, f"{self.path}: no packet at {at}"
                content, bits = head[6:8]
                assert content <= bits and bits % 8 == 0 and at + bits // 8 <= size, f"{self.path}: packet at {at} is cut"
                yield at, head
                at += bits // 8

    def columns(self):
        """Of each packet with events the file's bytes, and what split_packet finds in it."""
        self._discarded, self._after_losses, self._sizes = 0, [], (ctypes.c_uint64 * Split.NUMBERS)()
        data, expected, count = self.path.read_bytes(), 0, 0
        for at, (_, _, _, _, begin, last, content, _, seq, discarded, _) in self.packets():
            assert seq >= expected, f"{self.path}: packet numbers go back"
            columns = times, *_ = split_packet(data, at + PACKET_HEAD.size, at + content // 8, begin, self._sizes)
            if times:
                assert times == sorted(times), f"{self.path}: time goes back"
                assert begin <= times[0] and times[-1] <= last, f"{self.path}: event outside of its packet's time"
                if discarded != self._discarded:
                    self._after_losses.append(count)
                    self._discarded = discarded
                yield data, *columns
            expected, count = seq + 1, count + len(times)

    def walk(self):
        for data, *columns in self.columns():
            yield from map(Event, zip(*columns, repeat(data)))

    def chosen(self, names):
        """The events of these names."""
        if "events" in self.__dict__:
            yield from (e for e in self.events if e.name in names)
            return
        for data, *columns in self.columns():
            yield from (Event((time, name, code, at, data)) for time, name, code, at in zip(*columns) if name in names)

    @cached_property
    def events(self):
        with no_collections():
            return list(self.walk())

    @cached_property
    def is_short(self):
        return self.path.stat().st_size < self.FEW

    def read(self):
        """The events, all at once where they are few or were asked for before."""
        return self.events if "events" in self.__dict__ or self.is_short else self.walk()

    @property
    def after_losses(self):
        """Indexes of the events that come next."""
        return self.events and self._after_losses

    @property
    def sizes(self):
        """Bytes by event's name, for the size of a call."""
        return self.events and Counter({EVENTS[number][0]: size for number, size in enumerate(self._sizes) if size})


def break_event(path, packet=0):
    """Gives the first event of a packet an id that is not known."""
    data, at = bytearray(path.read_bytes()), 0
    for _ in range(packet):
        at += PACKET_HEAD.unpack_from(data, at)[7] // 8
    data[at + PACKET_HEAD.size : at + PACKET_HEAD.size + 5] = b"\x1f\xff\xff\xff\xff"
    path.write_bytes(data)


class Process:
    """One process image: a CTF trace of its own."""

    def __init__(self, folder, torn=False):
        self.folder = folder
        self.name, pid = re.fullmatch(r"(.*?)-(\d+)(?:-\d+)?", folder.name).groups()
        self.pid = int(pid)
        self.metadata = (folder / "metadata").read_text()
        self._walked = {}
        self.definitions = Stream(folder / "definitions", torn).events if (folder / "definitions").exists() else []
        self.codes = {
            e.fields["id"]: Code(*(e.fields[k] for k in ("kind", "module", "qualname", "file", "line")))
            for e in self.definitions
            if e.name == "code:define"
        }
        self.files = {number: Path(code.file).name for number, code in self.codes.items()}
        paths = sorted(folder.glob("thread-*"))
        self.threads = [stream for stream in (Stream(path, torn) for path in paths) if stream.tid is not None]

    def said(self, name):
        """The definitions of one name, as their fields."""
        return [e.fields for e in self.definitions if e.name == name]

    @property
    def thread_names(self):
        return {f["vtid"]: f["name"] for f in self.said("thread:name")}

    @property
    def origin(self):
        return next((f["origin"] for f in self.said("process:start")), None)

    @property
    def ending(self):
        """(how, status) of the last process:exit, or None."""
        return next(((f["how"], f["status"]) for f in reversed(self.said("process:exit"))), None)

    def name_of(self, event):
        code = self.codes.get(event.code)
        return code.qualname if code else None

    def calls(self):
        """How often each function was called, by qualified name."""
        return Counter(self.name_of(e) for t in self.threads for e in t.chosen({"python:call", "c:call"}))

    def owners_of(self, stack):
        """The name of the file of the innermost Python function at each place of a stack."""
        owners = []
        for kind, code in stack:
            owners.append(self.files[code] if kind != "c" else owners[-1] if owners else "")
        return owners

    def shape(self, thread, only=None, told=True):
        """The thread's begins and ends as text, such as `call f`, `c call len`, `return f`; checks the nesting.

        `only` keeps the Python functions of this file and the C functions that they call themselves. The second result
        is what is still open at the end, outermost first. A C function that was live when the stack was said has an end
        without a beginning: python:frame tells Python's frames alone. Unless it is `told`, the shape is checked alone.
        """
        if not told and not thread.is_short:
            return None, self.follow(thread)
        lines, files, still_open = self.walked(thread)
        return [line for line, file in zip(lines, files) if only is None or file == only] if told else None, still_open

    def walked(self, thread):
        """All lines of the shape, the file of each, and what is open at the end. Of a short thread they are kept."""
        if thread.path in self._walked:
            return self._walked[thread.path]
        lines, files = [], []
        result = lines, files, self.follow(thread, lines, files)
        if thread.is_short:
            self._walked[thread.path] = result
        return result

    def follow(self, thread, lines=None, files=None):
        """Checks the nesting, and returns what is open at the end. Appends to `lines`, and the file of each to `files`."""
        stack, said, left, texts = [], [], {}, {}  # said: the python:frame events of the run that goes on
        owners, is_told = None, lines is not None  # owners: owners_of(stack); None: not known
        omitted = deque((e.time, e.fields["id"]) for e in self.definitions if e.name == "code:omit")
        for data, *columns in thread.columns():
            for time, name, code, at in zip(*columns):
                while omitted and omitted[0][0] <= time:  # another thread may have left it out in mid-call
                    stack, owners = self.without(stack, omitted.popleft()[1]), None
                if step := STEPS.get(name):
                    kind, what, begins = step
                    if is_told and owners is None:
                        owners = self.owners_of(stack)
                    if begins:
                        stack.append((kind, code))
                    else:
                        assert stack, f"{self.folder.name}: {name} ends nothing (thread {thread.tid})"
                        of, code = stack.pop()
                        if kind == "c" and of == "said":
                            stack.append((of, code))
                            continue
                        assert of == kind or of == "said", f"{self.folder.name}: {name} ends {self.codes[code]}"
                    if is_told:
                        if begins:
                            owners.append(self.files[code] if kind != "c" else owners[-1] if owners else "")
                        key = what, kind, code
                        if key not in texts:
                            texts[key] = f"{'c ' if kind == 'c' else ''}{what} {self.codes[code].qualname}"
                        lines.append(texts[key])
                        files.append(owners[-1] if begins else owners.pop())
                elif name in RARE:
                    e = Event((time, name, code, at, data))
                    if name in ("python:frame", "python:deep_frame"):
                        said.append(e)
                        continue
                    if name == "python:switch":
                        left[e.fields["from"]] = stack
                        stack = list(left.get(e.fields["to"], [])) if e.fields["to"] else []
                    else:
                        stack, said = self.resync(stack, said, e.fields["depth"]), []
                    owners = None
        return [self.codes[code].qualname for _, code in stack]

    @staticmethod
    def without(stack, code):
        """The stack once `code` is left out: the C calls that it made have no ends either."""
        kept, gone = [], False
        for kind, its in stack:
            gone = its == code or (gone and kind == "c")
            kept += [] if gone else [(kind, its)]
        return kept

    @staticmethod
    def resync(stack, said, depth):
        """The stack after a run of python:frame and its python:stack: what is said replaces what is known.

        A run that begins above depth 0 follows no loss: C functions that are open stay so. Any other may leave one open in
        each frame, whose end then has no beginning.
        """
        if said and said[0].fields["depth"]:
            for e in said:
                at = [i for i, s in enumerate(stack) if s[0] != "c"] + [len(stack)]
                place = at[min(e.fields["depth"], len(at) - 1)]
                if place == len(stack) or stack[place][1] != e.code:
                    stack = stack[:place] + [("said", e.code)]
            return stack
        frames = [("said", code) for kind, code in stack if kind != "c"]
        for e in said:
            at = e.fields["depth"]
            if at >= len(frames) or frames[at][1] != e.code:
                frames = frames[:at] + [("said", e.code)]
        return frames[:depth]

    def check_balanced(self, ended=True):
        """Every end ends what began last; with `ended`, nothing is left open on any thread."""
        for thread in self.threads:
            _, still_open = self.shape(thread, told=False)
            assert not (ended and still_open), f"{self.folder.name} thread {thread.tid}: open at the end: {still_open}"

    def unbalanced(self):
        """What check_balanced would say of each thread whose begins and ends do not match."""
        wrong = []
        for thread in self.threads:
            try:
                self.shape(thread, told=False)
            except AssertionError as error:
                wrong.append(str(error))
        return wrong


class Recording:
    """What `krait record` left: the folder, and the command's result in `status`, `stdout`, `stderr`."""

    def __init__(self, path, result=None, torn=False):
        self.path, self.torn = Path(path), torn
        self.status = result.returncode if result else None
        self.stdout = result.stdout if result else ""
        self.stderr = result.stderr if result else ""

    @cached_property
    def processes(self):
        """Read once, when first asked for: in the order of their first event."""
        found = [Process(p.parent, self.torn) for p in sorted(self.path.glob("*/metadata")) if p.parent.name != "kernel"]
        return sorted(found, key=lambda p: min((e.time for e in p.definitions), default=0))

    @property
    def main(self):
        return self.processes[0]

    @property
    def lost(self):
        return sum(self.losses().values())

    def losses(self):
        """Events lost by reason, as the recording says."""
        return sum((Counter({f["reason"]: f["count"]}) for p in self.processes for f in p.said("krait:lost")), Counter())

    def calls(self):
        return sum((p.calls() for p in self.processes), Counter())

    def notes(self, *names):
        """The events of these names, of all threads by time, as their fields; what is a code is its name."""
        found = []
        for process in self.processes:
            for thread in process.threads:
                for e in thread.chosen(set(names)):
                    fields = e.fields
                    text = {f: process.codes[fields[f]].qualname if fields[f] else None for f in CODES[e.name]}
                    found.append((e.time, {**fields, **text, "tid": thread.tid, "event": e.name}))
        return [fields for _, fields in sorted(found, key=lambda pair: pair[0])]

    def check(self, ended=True):
        """Nothing lost, every stack balanced."""
        assert self.lost == 0
        for process in self.processes:
            process.check_balanced(ended)
        return self
