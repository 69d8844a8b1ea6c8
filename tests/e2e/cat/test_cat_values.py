# SPDX-License-Identifier: Apache-2.0
"""Every kind of value at its limits is printed as babeltrace2 prints it, and as Python says it should be.

The traces are made here: each has one event class, whose fields and values are a test's. What babeltrace2 2.0.4 gets
wrong (an empty string shows the one before) is compared with Python alone.
"""

import random
import shutil
import struct

import pytest

from corpus import babeltrace_but_losses, cat_bytes


def integer(bits, signed=False, base=10, order="le", align=8):
    return f"integer {{ size = {bits}; signed = {str(signed).lower()}; base = {base}; byte_order = {order}; align = {align}; }}"


CHAR = "integer { size = 8; align = 8; encoding = UTF8; }"
U16 = integer(16)


def metadata(fields, more=""):
    clock = ('clock { name = c; uuid = "6d1e1f3c-7f5e-4a0b-8d5e-2f4f1c7a9b10"; freq = 1000000000; '
             "offset_s = 1700000000; };\n")
    time = "integer { size = 64; align = 8; map = clock.c.value; }"
    return ("/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n" + clock + more
            + f"stream {{ event.header := struct {{ {time} timestamp; }}; }};\n"
            + f"event {{ name = e; fields := struct {{ {fields} }}; }};\n").encode()


class Maker:
    """A trace of one event class, whose payloads are bytes; a nanosecond between events unless times are given."""

    def __init__(self, krait, folder):
        self.krait, self.folder = krait, folder

    def write(self, fields, payloads, times=None, more=""):
        self.folder.mkdir(exist_ok=True)
        times = times or range(len(payloads))
        data = b"".join(struct.pack("<Q", t) + p for t, p in zip(times, payloads, strict=True))
        (self.folder / "metadata").write_bytes(metadata(fields, more))
        (self.folder / "stream").write_bytes(data)

    def lines(self, fields, payloads, more=""):
        """What stands between the braces of each event."""
        self.write(fields, payloads, more=more)
        run = cat_bytes(self.krait, "--no-delta", self.folder)
        assert run.returncode == 0, run.stderr.decode()
        lines = run.stdout[:-1].split(b"\n")
        assert len(lines) == len(payloads) and all(line.endswith(b" }") for line in lines)
        return [line.split(b"{ ", 1)[1][:-2] for line in lines]

    def same_as_babeltrace(self, *options):
        ours, theirs = cat_bytes(self.krait, *options, self.folder), babeltrace_but_losses(*options, self.folder)
        assert ours.returncode == 0, ours.stderr.decode()
        assert ours.stdout.splitlines() == theirs.splitlines()
        assert ours.stdout == theirs


@pytest.fixture
def maker(krait, tmp_path):
    return Maker(krait, tmp_path / "trace")


needs_babeltrace = pytest.mark.skipif(not shutil.which("babeltrace2"), reason="babeltrace2 is not installed")


# -- integers --


def limits(bits, signed):
    """All numbers at which digits, bits or signs change, and a few between."""
    powers = {base**k for base in (2, 8, 10, 16) for k in range(64)}
    near = {p + d for p in powers for d in (-1, 0, 1)} | {0, 5, 99, 100, 12345678, 123456789, 2**63 + 12345}
    random.seed(bits)
    near |= {random.getrandbits(random.randrange(1, 65)) for _ in range(300)}
    near |= {-n for n in near}
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return sorted(n for n in near | {low, low + 1, high - 1, high} if low <= n <= high)


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_whole_integers(maker, bits, signed, order):
    fields = " ".join(f"{integer(bits, signed, base, order)} b{base};" for base in (10, 16, 8, 2))
    values = limits(bits, signed)
    raw = [n.to_bytes(bits // 8, "little" if order == "le" else "big", signed=signed) for n in values]
    lines = maker.lines(fields, [r * 4 for r in raw])
    for n, line in zip(values, lines, strict=True):
        unsigned = n % 2**bits
        octal = n % 2 ** min(64, (bits + 2) // 3 * 3)
        assert line.decode() == f"b10 = {n}, b16 = 0x{unsigned:X}, b8 = 0{octal:o}, b2 = 0b{unsigned:0{bits}b}"


@needs_babeltrace
@pytest.mark.parametrize("order", ["le", "be"])
def test_integers_of_any_bits_as_babeltrace(maker, order):
    """At any bit, of all widths and bases: 64 fields of 1 to 64 bits behind each other, of random bits. Not 61 hexadecimal
    ones, of which babeltrace2 shifts a 1 by 64 to know the mask, and prints 0."""
    random.seed(64)
    bases = {bits: (10, 16, 8, 2)[bits % 4] if bits != 61 else 10 for bits in range(1, 65)}
    fields = " ".join(f"{integer(bits, bits % 3 == 0, base, order, 1)} f{bits};" for bits, base in bases.items())
    patterns = [bytes([b]) * 260 for b in (0, 255, 0x55, 0x80, 1)] + [random.randbytes(260) for _ in range(40)]
    maker.write(fields, patterns)
    maker.same_as_babeltrace()


@needs_babeltrace
def test_many_fields_as_babeltrace(maker):
    """Names longer than what is copied at once, and more fields than any buffer begins with."""
    names = ["x" * n for n in range(1, 120)]
    maker.write(" ".join(f"{integer(64, base=16)} {name};" for name in names), [random.randbytes(8 * len(names)) for _ in range(50)])
    maker.same_as_babeltrace()
    maker.same_as_babeltrace("--names=none")


# -- texts --

ESCAPES = {"\\": "\\\\", "'": "\\'", '"': '\\"', "?": "\\?", "\a": "\\a", "\b": "\\b", "\033": "\\e", "\f": "\\f",
           "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def quoted(text):
    """Of bytes, up to the first NUL."""
    chars = text.split(b"\0")[0].decode("latin-1")
    plain = "".join(ESCAPES.get(c) or (f"\\x{ord(c):02x}" if ord(c) < 32 or ord(c) == 127 else c) for c in chars)
    return b'"' + plain.encode("latin-1") + b'"'


def texts():
    """Every byte alone; runs of all lengths about the width of a search, with one byte to escape in each place."""
    yield b""
    for byte in range(1, 256):
        yield bytes([byte])
    for length in range(1, 51):
        yield b"a" * length
        for at in range(length):
            yield b"a" * at + b'"' + b"b" * (length - at - 1)
    yield bytes(range(1, 256)) * 3
    yield b'"' * 100_000 + b"\x01" * 100_000 + b"plain" * 100_000


def test_strings(maker):
    values = list(texts())
    lines = maker.lines(f"string s; {U16} n; string t;", [v + b"\0" + b"\x07\0" + v + b"\0" for v in values])
    for value, line in zip(values, lines, strict=True):
        assert line == b"s = %s, n = 7, t = %s" % (quoted(value), quoted(value))


@pytest.mark.parametrize("length", [*range(0, 36), 100])
def test_char_arrays(maker, length):
    """Cut at the NUL, or full; the array in a sequence's place, too. Nothing comes behind the last."""
    values = [b"x" * at + b"\0" * (length - at) for at in range(length + 1)]
    values += [b"y" * at + b"\x7f" + b"z" * (length - at - 1) for at in range(length)]
    values += [b"y" * at + b"\0" + b'"' * (length - at - 1) for at in range(length)]
    fields = f"{CHAR} a[{length}]; {U16} n; {CHAR} s[n];" if length else f"{U16} n; {CHAR} s[n];"
    lines = maker.lines(fields, [v + struct.pack("<H", length) + v for v in values])
    array = b"a = %s, " if length else b"%.0s"
    for value, line in zip(values, lines, strict=True):
        assert line == array % quoted(value) + b"n = %d, s = %s" % (length, quoted(value))


@needs_babeltrace
def test_texts_as_babeltrace(maker):
    values = [t for t in texts() if t and len(t) < 1000]
    payloads = [v + b"\0" + (v * 20)[:20] + struct.pack("<H", len(v)) + v for v in values]
    maker.write(f"string s; {CHAR} a[20]; {U16} n; {CHAR} t[n];", payloads)
    maker.same_as_babeltrace()


def test_a_string_without_an_end_is_damage_wherever_the_packet_ends(maker):
    for length in (0, 1, 7, 8, 15, 16, 17, 31, 32, 33):
        maker.write("string s;", [b"whole\0", b"x" * length])
        run = cat_bytes(maker.krait, maker.folder)
        assert run.returncode == 1 and b"a string has no end in its packet" in run.stderr
        assert run.stdout.count(b"\n") == 1 and run.stdout.endswith(b'{ s = "whole" }\n')


# -- enumerations, floats, what has parts --


@needs_babeltrace
@pytest.mark.parametrize("order", ["le", "be"])
def test_enumerations_as_babeltrace(maker, order):
    """Apart, overlapping, of one label in several places; and what none holds."""
    kinds = [(integer(32, True, 10, order), '"neg" = -5 ... -1, "zero" = 0, "far" = 100000 ... 2147483647, "min" = -2147483648'),
             (integer(16, False, 16, order), '"low" = 0 ... 9, "all" = 0 ... 65535, "seven" = 7, "low" = 40'),
             (integer(8, False, 10, order), "A, B, C = 200, D"),
             (integer(8, True, 10, order), '"near" = -6, "gap" = -5 ... -2, "one" = 1, "two" = 2, "many" = 9 ... 12')]
    fields = " ".join(f"enum : {base} {{ {labels} }} e{i};" for i, (base, labels) in enumerate(kinds))
    values = [-(2**31), -6, -5, -1, 0, 1, 2, 3, 7, 9, 10, 40, 99999, 100000, 2**31 - 1, 65535, 200, 201, 255]
    endian = "little" if order == "le" else "big"
    maker.write(fields, [b"".join((n % 2**bits).to_bytes(bits // 8, endian) for bits in (32, 16, 8, 8)) for n in values])
    maker.same_as_babeltrace()


FLOATS = [0.0, -0.0, 1.0, -1.0, 0.1, 999999.0, 1000000.0, 123456.0, 1234567.0, -99999.5, 1e-5, 1e100, 3.4e38, 5e-324,
          float("inf"), float("-inf"), float("nan")]


def test_floats(maker):
    fields = "floating_point { exp_dig = 8; mant_dig = 24; align = 8; } f; floating_point { exp_dig = 11; mant_dig = 53; align = 8; } d;"
    lines = maker.lines(fields, [struct.pack("<fd", min(n, 3.4e38) if n < 1e101 else n, n) for n in FLOATS])
    for n, line in zip(FLOATS, lines, strict=True):
        single = struct.unpack("<f", struct.pack("<f", min(n, 3.4e38) if n < 1e101 else n))[0]
        assert line.decode() == f"f = {'%g' % single}, d = {'%g' % n}"


PARTS = f"""
{U16} n; {integer(32, True)} list[n]; {integer(64, base=16)} hex[3];
struct {{ {U16} a; string s; struct {{ }} empty; }} parts[n];
enum : {integer(8)} {{ number = 0, text = 1, list = 2, none = 3 }} tag;
variant <tag> {{ {integer(64, True)} number; string text; struct {{ {U16} k; {integer(8)} bytes[k]; }} list; struct {{ }} none; }} v;
{integer(8)} after;
"""


def part_payload(n, tag):
    option = [struct.pack("<q", -n * 10**9 - 1), b"text of %d\0" % n, struct.pack("<H", n) + bytes(i % 256 for i in range(n)), b""]
    parts = b"".join(struct.pack("<H", i) + b"%d?\0" % i for i in range(n))
    numbers = b"".join(struct.pack("<i", (-1) ** i * 7**i % 2**31) for i in range(n))
    return struct.pack("<H", n) + numbers + struct.pack("<QQQ", 0, n, 2**64 - 1) + parts + bytes([tag]) + option[tag] + b"\xfe"


@needs_babeltrace
@pytest.mark.parametrize("options", [[], ["--names=none"], ["--names=all"]], ids=str)
def test_what_has_parts_as_babeltrace(maker, options):
    maker.write(PARTS, [part_payload(n, tag) for n in (0, 1, 2, 9, 10, 11, 99, 101, 1000) for tag in range(4)])
    maker.same_as_babeltrace(*options)


# Type, name, alignment in bytes, bytes: numbers behind texts, texts behind numbers, at all distances. None: the text.
ALIGNED = [
    (integer(8), "a", 1, b"\1"), (CHAR, "t[3]", 1, b"abc"), (integer(32, align=32), "b", 4, b"\2\0\0\0"), (CHAR, "u[17]", 1, b"x" * 17),
    (integer(64, align=64), "c", 8, b"\3" + bytes(7)), (CHAR, "v[2]", 1, b"y\0"), (integer(16, align=16), "d", 2, b"\4\0"),
    ("string", "s", 1, None), (CHAR, "w[1]", 1, b"z"), (f"struct {{ {integer(8)} x; }} align(64)", "e", 8, b"\5"),
    (CHAR, "f[5]", 1, b"12\0\0\0"), ("struct { } align(32)", "g", 4, b""), (CHAR, "h[4]", 1, b"wxyz"), (integer(8, True), "i", 1, b"\xff"),
]


@pytest.fixture
def aligned(maker):
    """A trace with a string of 0 to 19 characters in the middle of each event, and its bytes."""
    data = b""
    for length in range(20):
        data += struct.pack("<Q", length)
        data += bytes(-len(data) % 8)  # the payload is aligned as its widest member
        for _, _, align, raw in ALIGNED:
            data += bytes(-len(data) % align) + (b"q" * length + b"\0" if raw is None else raw)
    maker.write(" ".join(f"{kind} {name};" for kind, name, _, _ in ALIGNED), [])
    (maker.folder / "stream").write_bytes(data)
    return maker.folder, data


def test_alignment_between_numbers_and_texts(krait, aligned):
    folder, _ = aligned
    lines = cat_bytes(krait, folder).stdout.decode().splitlines()
    assert [line.split("{ ", 1)[1] for line in lines] == [
        f'a = 1, t = "abc", b = 2, u = "{"x" * 17}", c = 3, v = "y", d = 4, s = "{"q" * length}", w = "z", e = {{ x = 5 }}, '
        'f = "12", g = { }, h = "wxyz", i = -1 }' for length in range(20)]


@needs_babeltrace
def test_alignment_as_babeltrace(maker, aligned):
    maker.same_as_babeltrace("--clock-cycles")


def test_damage_is_the_same_to_who_prints_and_who_passes(krait, aligned):
    """Of an event that is cut at any byte, text and JSON print the same events before it and the same reason."""
    folder, data = aligned
    for cut in range(1, 70):
        (folder / "stream").write_bytes(data[:-cut])
        text, objects = cat_bytes(krait, folder), cat_bytes(krait, "--json", folder)
        assert text.returncode == objects.returncode == 1
        assert text.stderr == objects.stderr and b"stream: byte " in text.stderr
        assert text.stdout.count(b"\n") == objects.stdout.count(b"\n") == 19


def test_what_babeltrace2_gets_wrong_is_right(krait, tmp_path):
    """docs/cat.md lists it: wide hexadecimal numbers, empty strings, times before the origin that are not the first or less than a second before it."""
    wide = "".join(f"integer {{ size = {bits}; base = 16; align = 8; }} h{bits}; " for bits in (60, 61, 62, 63, 64))
    (tmp_path / "metadata").write_text(
        "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; clock { name = c; offset_s = -10; absolute = true; }; "
        "stream { event.header := struct { integer { size = 64; align = 8; map = clock.c.value; } timestamp; }; }; "
        f"event {{ name = e; fields := struct {{ {wide} string s; }}; }};")
    numbers = b"".join((2**bits - 1).to_bytes(8, "little") for bits in (60, 61, 62, 63, 64))
    ticks = {8_000_000_000: b"first\0", 8_750_000_000: b"second\0", 9_500_000_000: b"text\0", 11_000_000_000: b"\0"}
    (tmp_path / "s").write_bytes(b"".join(struct.pack("<Q", time) + numbers + text for time, text in ticks.items()))
    shown = "h60 = 0xFFFFFFFFFFFFFFF, h61 = 0x1FFFFFFFFFFFFFFF, h62 = 0x3FFFFFFFFFFFFFFF, h63 = 0x7FFFFFFFFFFFFFFF, h64 = 0xFFFFFFFFFFFFFFFF"
    assert cat_bytes(krait, tmp_path).stdout.decode().splitlines() == [
        f'[-2.000000000] (+?.?????????) e: {{ {shown}, s = "first" }}', f'[-1.250000000] (+0.750000000) e: {{ {shown}, s = "second" }}',
        f'[-0.500000000] (+0.750000000) e: {{ {shown}, s = "text" }}', f'[00:00:01.000000000] (+1.500000000) e: {{ {shown}, s = "" }}']


# -- times --

TIMES = [0, 0, 1, 2, 99_999_999, 100_000_000, 199_999_999, 200_000_001, 300_000_001, 400_000_002, 999_999_999, 1_000_000_000,
         1_000_000_001, 1_099_999_999, 2_000_000_000, 2_000_000_000, 3_600_000_000_000, 86_400_000_000_000, 10**18]


@needs_babeltrace
@pytest.mark.parametrize("options", [[], ["--clock-date"], ["--clock-seconds"], ["--clock-cycles"], ["--no-delta"], ["--names=all"]], ids=str)
def test_times_as_babeltrace(maker, options):
    """Where a digit, a tenth of a second, a second, a day begins; and the same time again."""
    maker.write(f"{integer(8)} x;", [b"\1"] * len(TIMES), times=TIMES)
    maker.same_as_babeltrace(*options)


def test_fields_that_are_not_shown_take_no_brace_with_them(krait, tmp_path):
    """Arrays of the clock's values, first in the payload and among other fields."""
    time = "integer { size = 8; align = 8; map = clock.c.value; }"
    fields = f"{time} first[2]; {integer(8)} x; struct {{ {time} a[1]; }} none; {integer(8)} y;"
    (tmp_path / "metadata").write_bytes(metadata(fields))
    (tmp_path / "s").write_bytes(struct.pack("<Q", 1) + bytes([2, 3, 4, 5, 6]))
    assert cat_bytes(krait, "--no-delta", tmp_path).stdout.endswith(b" e: { x = 4, y = 6 }\n")


def test_a_first_event_that_is_damaged_is_no_time_before(krait, tmp_path):
    """The first line has no delta, even when an event of another stream came before it and could not be printed."""
    Maker(krait, tmp_path).write("string s;", [b"no end"], times=[0])
    (tmp_path / "good").write_bytes(struct.pack("<Q", 5) + b"whole\0")
    run = cat_bytes(krait, tmp_path)
    assert run.returncode == 1
    assert b"(+?.?????????)" in run.stdout and run.stdout.count(b"\n") == 1


# -- contexts, whose texts are kept --


def context_metadata(context, payload=""):
    """Two classes, one of which has nothing but the context."""
    time = "integer { size = 64; align = 8; map = clock.c.value; }"
    events = "".join(f"event {{ name = e{i}; id = {i}; fields := struct {{ {fields} }}; }};\n"
                     for i, fields in enumerate([payload or f"{U16} v;", ""]))
    return ("/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n"
            "clock { name = c; freq = 1000000000; };\n"
            f"stream {{ event.header := struct {{ {integer(8)} id; {time} timestamp; }};\n"
            f"packet.context := struct {{ {integer(32)} content_size; {integer(32)} packet_size; {integer(16)} cpu_id; }};\n"
            f"event.context := struct {{ {context} }}; }};\n{events}").encode()


def packet(cpu, events):
    data = b"".join(events)
    return struct.pack("<IIH", (len(data) + 10) * 8, (len(data) + 10) * 8, cpu) + data


def context_lines(krait, folder, context, packets, payload=""):
    folder.mkdir(exist_ok=True)
    (folder / "metadata").write_bytes(context_metadata(context, payload))
    (folder / "stream").write_bytes(b"".join(packets))
    run = cat_bytes(krait, "--no-delta", folder)
    assert run.returncode == 0, run.stderr.decode()
    return [line.split(": ", 1)[1] for line in run.stdout.decode().splitlines()]


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 21, 63, 64, 65])
def test_contexts_that_stay_and_that_change_in_any_byte(krait, tmp_path, size):
    """Contexts up to 64 bytes are printed once as long as they stay the same, in a packet."""
    contexts = [bytes(size)]
    for i in range(size):
        changed = contexts[-1][:i] + bytes([i % 255 + 1]) + contexts[-1][i + 1 :]
        contexts += [changed, changed]
    contexts += [contexts[0], contexts[-1]]
    events = [(i % 2, c, i * 7) for i, c in enumerate(contexts)]
    data = [struct.pack("<BQ", kind, v) + c + (struct.pack("<H", v) if kind == 0 else b"") for kind, c, v in events]
    half = len(data) // 2
    lines = context_lines(krait, tmp_path / "trace", "".join(f"{integer(8)} c{i}; " for i in range(size)),
                          [packet(1, data[:half]), packet(65535, data[half:])])
    for i, (line, (kind, c, v)) in enumerate(zip(lines, events, strict=True)):
        fields = ", ".join(f"c{k} = {b}" for k, b in enumerate(c))
        payload = "{ }" if kind else f"{{ v = {v} }}"
        assert line == f"{{ cpu_id = {1 if i < half else 65535} }}, {{ {fields} }}, {payload}"


def test_contexts_with_texts_and_gaps(krait, tmp_path):
    """Bytes between fields and behind a text's end may differ where the text is the same."""
    context = f"{integer(8)} a; {integer(32, align=32)} b; {CHAR} name[7];"
    rows = [(1, b"...", 2, b"one\0xyz"), (1, b"...", 2, b"one\0xyz"), (1, b"+++", 2, b"one\0zyx"), (1, b"+++", 2, b'o"e\0zyx'),
            (1, b"+++", 3, b"sevenup"), (1, b"+++", 3, b"sevenup")]
    data = b""
    for v, (a, gap, b, name) in enumerate(rows):
        at = 10 + len(data)
        header = struct.pack("<BQ", 0, v)
        lead = -(at + len(header)) % 4
        data += header + bytes(lead) + bytes([a]) + gap + struct.pack("<I", b) + name + struct.pack("<H", v)
    lines = context_lines(krait, tmp_path / "trace", context, [packet(3, [data])])
    shown = {b"one\0xyz": "one", b"one\0zyx": "one", b'o"e\0zyx': 'o\\"e', b"sevenup": "sevenup"}
    assert lines == [f'{{ cpu_id = 3 }}, {{ a = {a}, b = {b}, name = "{shown[name]}" }}, {{ v = {v} }}'
                     for v, (a, _, b, name) in enumerate(rows)]


def test_a_context_that_is_a_length_too(krait, tmp_path):
    """The reader wants its value each time, also where it stays the same."""
    data = [struct.pack("<BQB", 0, i, n) + bytes(range(n)) for i, n in enumerate([2, 2, 2, 0, 3, 3])]
    lines = context_lines(krait, tmp_path / "trace", f"{integer(8)} n;", [packet(0, data)],
                          f"{integer(8)} v[stream.event.context.n];")
    assert [line.count("[") - 1 for line in lines] == [2, 2, 2, 0, 3, 3]


def test_a_context_that_the_packet_cuts_is_damage(krait, tmp_path):
    event = struct.pack("<BQ", 1, 0) + bytes(4)
    (tmp_path / "metadata").write_bytes(context_metadata(f"{integer(32)} tid;"))
    (tmp_path / "stream").write_bytes(packet(0, [event, event, event[:-1]]))
    run = cat_bytes(krait, tmp_path)
    assert run.returncode == 1 and run.stdout.count(b"\n") == 2
    assert b"longer than" in run.stderr


# -- the order of time --


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13])
def test_streams_in_the_order_of_time(krait, tmp_path, count):
    """Equal times go by stream; streams go on for a while, end early, or have but one event."""
    random.seed(count)
    expected = []
    (tmp_path / "metadata").write_bytes(metadata(f"{U16} of; {U16} n;"))
    for stream in range(count):
        times = sorted(random.randrange(40) + 200 * random.randrange(3) for _ in range(random.choice([1, 20, 300])))
        data = b"".join(struct.pack("<QHH", t, stream, n) for n, t in enumerate(times))
        (tmp_path / f"stream-{stream:02}").write_bytes(data)
        expected += [(t, stream, n) for n, t in enumerate(times)]
    run = cat_bytes(krait, "--no-delta", "--clock-cycles", tmp_path)
    assert run.returncode == 0, run.stderr.decode()
    lines = [line.split("{ ")[1] for line in run.stdout.decode().splitlines()]
    assert lines == [f"of = {stream}, n = {n} }}" for _, stream, n in sorted(expected)]
