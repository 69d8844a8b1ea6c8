# SPDX-License-Identifier: Apache-2.0
"""Odd TSDL is read as babeltrace2 reads it, and what is none is refused where babeltrace2 refuses it."""

import shutil
import struct
import subprocess

import pytest

from corpus import UTC, cat_bytes


U8 = "integer { size = 8; }"
TAG = f"enum : {U8} {{ a = 1, b = 7 }} t;"
BIT_TAG = "enum : integer { size = 2; } { a = 0 ... 1, b = 3 } t;"
BIT_OPTIONS = "{ integer { size = 4; } a; integer { size = 4; base = 16; } b; }"
OPTIONS = f"{{ {U8} a; {U8} b; }}"
SHORT = "integer { size = 16; align = 16; signed = true; }"
TRACE = "trace { major = 1; minor = 8; byte_order = le; };"
CLOCK = "clock { name = c; freq = 1000000000; offset_s = 1700000000; };"
HEADER = "integer { size = 64; align = 8; map = clock.c.value; } timestamp;"


def metadata(fields=f"{U8} x;", trace=TRACE, clock=CLOCK, header=HEADER, stream="", event=""):
    return (f"/* CTF 1.8 */\n{trace}\n{clock}\nstream {{ event.header := struct {{ {header} }}; {stream} }};\n"
            f"event {{ name = e; {event} fields := struct {{ {fields} }}; }};\n")


@pytest.fixture
def both(krait, tmp_path):
    """Runs krait and babeltrace2 on a trace of that metadata, with two events of a byte."""

    def run(text, data=struct.pack("<QBQB", 5, 1, 6, 7)):
        (tmp_path / "metadata").write_bytes(text if isinstance(text, bytes) else text.encode())
        (tmp_path / "stream").write_bytes(data)
        theirs = None
        if shutil.which("babeltrace2"):
            theirs = subprocess.run(["babeltrace2", "--fields=all", tmp_path], capture_output=True, env=UTC, timeout=60)
        return cat_bytes(krait, "--fields=all", tmp_path), theirs

    return run


READ = [
    (metadata(event='loglevel = 4; model.emf.uri = "http://x";'), b"TRACE_WARNING (4):http://x e: { x = 1 }"),
    (metadata(event='model.emf.uri = "http://x";'), b"http://x e: { x = 1 }"),
    (metadata(event='model.emf.uri = "";'), b") e: { x = 1 }"),
    (metadata(event="loglevel = 4294967296;"), b") e: { x = 1 }"),
    (metadata(f"{U8} const x;"), b"{ x = 1 }"),
    (metadata(f"struct {{ {U8} x; }} const s;"), b"{ s = { x = 1 } }"),
    (metadata("integer { size = 8; signed = 2; } x;"), b"{ x = 1 }"),
    (metadata("integer { size = 8ull; align = 8Lu; } x;"), b"{ x = 1 }"),
    (metadata(stream=f"event->context := struct {{ {U8} y; }};"), b") e: { x = 1 }"),
    (metadata(header=HEADER.replace("size = 64;", "size = 64; signed = true;")), b"[22:13:20.000000000]"),
    (metadata("integer { size = 0x8U; align = 010llu; } x;"), b"{ x = 1 }"),
    (metadata() + "// x\n", b"{ x = 1 }"),
    (metadata() + "/* x", b"{ x = 1 }"),
    (metadata() + "/* x *", b"{ x = 1 }"),
    (metadata(trace=TRACE + ' env { hostname = "a"; hostname = "b"; }; env { hostname = "c"; };'), b"?) cc e: { x = 1 }"),
    (metadata(event='model.emf.uri = "};{\\"/*";'), b"};{\"/* e: { x = 1 }"),
    (metadata(event="/* }; { \" ' */ // }; { \" '\n"), b") e: { x = 1 }"),
    (metadata(event='model.emf.uri = "\\x411";'), b"\x11 e: { x = 1 }"),
    (metadata(event='model.emf.uri = "\\1014\\501";'), b"A4A e: { x = 1 }"),
    (metadata(event='model.emf.uri = "\\x41, \\x041, \\x0411, \\x41g";'), b"A, A, A1, Ag e: { x = 1 }"),
    (metadata(trace=f"struct y {{ {U8} a; }} struct z {{ {U8} b; }}\nenum w : {U8} {{ a }}; {TRACE}"), b"{ x = 1 }"),
    (metadata("integer { size = 8; map = clock.c; } x;"), b") e: \n"),
    (metadata('integer { size = 8; map = "clock.c.value"; } x;'), b"{ x = 1 }"),
    (metadata("unsigned long x;", trace=f"typealias {U8} := unsigned long; {TRACE}"), b"{ x = 1 }"),
    (metadata(f"enum : {U8} {{ a = 1, b = 7 }} x;", event=f"typealias {U8} := y; typedef {U8} z;"), b"x = ( \"a\" "),
    (metadata("struct { integer { size = 1; } n; integer { size = 7; } y[s.n]; } s;"), b"{ s = { n = 1, y = [ [0] = 0 ] } }"),
    (metadata(f"{BIT_TAG} typedef variant <t> {BIT_OPTIONS} w[1]; struct {{ {BIT_TAG} w v; }} s;"), b"v = [ [0] = { 0 } ] } }"),
]


@pytest.mark.parametrize(("text", "shown"), READ, ids=range(len(READ)))
def test_odd_metadata_is_read_as_babeltrace2_reads_it(both, text, shown):
    ours, theirs = both(text)
    assert ours.returncode == 0, ours.stderr.decode()
    assert shown in ours.stdout
    assert theirs is None or (theirs.returncode, theirs.stdout) == (0, ours.stdout)


REFUSED = [
    (metadata(event='loglevel = "x";'), "loglevel is not a number"),
    (metadata(event="loglevel = -3;"), "loglevel is not a number"),
    (metadata(event="model.emf.uri = 5;"), "model.emf.uri is not a string"),
    (metadata(f"enum : {U8} {{ }} x;"), "an enumeration without labels"),
    (metadata(f'enum : {U8} {{ "a" = 5 ... 1 }} x;'), "'a' is for a range that ends before it begins"),
    (metadata(f"enum : {U8} {{ a = -1 ... 1 }} x;"), "'a' is for a range that ends before it begins"),
    (metadata("integer { size = 8uu; } x;"), "not a number"),
    (metadata("integer { size = 8lul; } x;"), "not a number"),
    (metadata("integer { size = 8ulll; } x;"), "not a number"),
    (metadata(clock=CLOCK.replace("};", "absolute = maybe; };")), "'absolute' is neither true nor false"),
    (metadata(trace=TRACE.replace("};", 'uuid = "2a6422d06cee11e08c08cb07d7b3a564"; };')), "'uuid' is not one"),
    (metadata(trace=TRACE.replace("};", 'uuid = "2a6422d0-6cee-11e0-8c08cb07d7b3a-564"; };')), "'uuid' is not one"),
    (metadata(trace=TRACE.replace("};", 'uuid = "\x12a6422d0-6cee-11e0-8c08-cb07d7b3a564"; };')), "'uuid' is not one"),
    (metadata("integer { size = 8L; } x;"), "not a number"),
    (metadata("integer { size = 0x8LL; } x;"), "not a number"),
    (metadata("integer { size = 8lLu; } x;"), "not a number"),
    (metadata(f"enum : {U8} {{ a = 'b' }} x;"), "an enumeration's value is not a number"),
    (metadata(f"{TAG} variant <\"t\"> {OPTIONS} v;"), "'>' is missing before 't'"),
    (metadata(f"{TAG} variant <event> {OPTIONS} v;"), "'event' is a word of TSDL"),
    (metadata(f"{TAG} variant <.t> {OPTIONS} v;"), "'>' is missing before '.'"),
    (metadata(f"{TAG} variant <event.fields.u> {OPTIONS} v;"), "'event.fields.u' is not a field before it"),
    (metadata(f"{TAG} variant <event.fields.v> {OPTIONS} v;"), "'event.fields.v' is not a field before it"),
    (metadata(f"{TAG} variant <event.fields.v.a> {{ {TAG[:-2]} a; {U8} b; }} v;"), "'event.fields.v.a' is not a field before it"),
    (metadata(f"variant <event.fields.t> {OPTIONS} v; {TAG}"), "'event.fields.t' is not a field before it"),
    (metadata(f"struct {{ variant <event.fields.s.t> {OPTIONS} v; {TAG} }} s;"), "'event.fields.s.t' is not a field before it"),
    (metadata(f"struct {{ {U8} y[event.fields.s.n]; {U8} n; }} s;"), "'event.fields.s.n' is not a field before it"),
    (metadata(stream=f"event.context := struct {{ variant <event.fields.t> {OPTIONS} v; }};", fields=TAG), "'event.fields.t' is not a"),
    (metadata(f"{U8} t; variant <event.fields.t> {OPTIONS} v;"), "'event.fields.t' is not an enumeration"),
    (metadata(f"struct {{ {U8} t; }} s; variant <s.t> {OPTIONS} v;"), "'s.t' is not an enumeration"),
    (metadata(f"struct {{ {TAG} }} s; variant <s.u> {OPTIONS} v;"), "'s.u' is not a field before it"),
    (metadata(f"{TAG} variant <env.t> {OPTIONS} v;", trace=f"{TRACE} env {{ t = 1; }};"), "'env.t' is not a field before it"),
    (metadata(f"struct {{ {TAG} }} s[2]; variant <s.t> {OPTIONS} v;"), "'s.t' is in an array or an option"),
    (metadata(f"{TAG} variant <t> {{ {TAG[:-2]} a; {U8} b; }} v; variant <v.a> {OPTIONS} w;"), "'v.a' is in an array or an option"),
    (metadata(f"{TAG} typealias variant {OPTIONS} := w; {U8} v;"), "type 'w' is a variant without a tag"),
    (metadata(f"{TAG} typedef variant {OPTIONS} w; {U8} v;"), "type 'w' is a variant without a tag"),
    (metadata(f"typedef variant <t> {OPTIONS} w; w v; {TAG}"), "a variant's tag 't' is not a field before it"),
    (metadata(f"struct {{ {TAG} typedef variant <t> {OPTIONS} w; }} s; w v;"), "type 'w' is not declared"),
    (metadata(f"{U8} x[timestamp];"), "'timestamp' is not a field before it"),
    (metadata(event='model.emf.uri = L"x";'), "';' is missing before 'x'"),
    (metadata(event='model.emf.uri = "\\ud800";'), "U+D800 in a quotation is no character"),
    (metadata(event='model.emf.uri = "\\uDFFF";'), "U+DFFF in a quotation is no character"),
    (metadata(event='model.emf.uri = "\\U00110000";'), "U+110000 in a quotation is no character"),
    (metadata(event='model.emf.uri = "\\u12";'), "2 digits are missing in a quotation's \\u or \\U"),
    (metadata(event='model.emf.uri = "\\U0001f60g";'), "1 digits are missing in a quotation's \\u or \\U"),
    (metadata(event='model.emf.uri = "\\y";'), "unknown escape in a quotation"),
    (metadata("const y x;"), "type 'const y' is not declared"),
    (metadata("const x;"), "type 'const' is not declared"),
    (metadata() + "// x", "the comment has no newline"),
    (metadata() + "\0\0\0\0", "byte 0x00 is not TSDL"),
    (metadata(event='model.emf.uri = "x\0y";'), "a NUL in a quotation"),
    (metadata("integer { size = 8; map = clock.value; } x;"), "names clock 'value', which is not declared"),
    (metadata("integer { size = 8; map = clock.other; } x;"), "names clock 'other', which is not declared"),
    (metadata(trace=f"typealias {U8} := trace; {TRACE}"), "'trace' is a word of TSDL"),
    (metadata(trace=f"typealias {U8} := unsigned event; {TRACE}"), "'event' is a word of TSDL"),
    (metadata(trace=f"struct s {{ {TAG} variant <> {OPTIONS} v; }}; {TRACE}"), "a variant's tag is missing"),
    (metadata(f"{U8} n; {U8} x[typedef];"), "'typedef' is a word of TSDL and cannot be a name"),
    (metadata(f"string s; {SHORT} b:5;"), "a bit field behind a field whose size is not known before"),
    (metadata("string s:5;"), "a bit field of what is not an integer"),
    (metadata(f"{U8} b:0;"), "a bit field's size is not 1 to the 8 bits of its unit"),
    (metadata(f"{U8} b:9;"), "a bit field's size is not 1 to the 8 bits of its unit"),
    (metadata(f"{U8} b:x;"), "a bit field's size is not a number of 0 or more"),
    (metadata(f"{U8} :3;"), "a field's name is missing"),
    (metadata("integer { size = 16; } b:3;"), "a bit field's unit has 16 bits, but is aligned to 8"),
    (metadata("integer { size = 5; } b:3;"), "a bit field's unit has 5 bits, but is aligned to 1"),
    (metadata("integer { size = 8; align = 32; } b:3;"), "a bit field's unit has 8 bits, but is aligned to 32"),
    (metadata(trace=f"{TRACE} env {{ typealias {U8} := y; }};"), "'=' is missing before 'integer'"),
    (metadata(trace=f"{TRACE} env {{ struct s {{ {U8} y; }}; }};"), "'=' is missing before 's'"),
    (metadata(clock=CLOCK.replace("};", f"typedef {U8} y; }};")), "'=' is missing before 'integer'"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_tsdl_is_refused_as_babeltrace2_refuses_it(both, text, why):
    ours, theirs = both(text)
    assert (ours.returncode, ours.stdout) == (1, b"")
    assert "/metadata: line " in ours.stderr.decode() and why in ours.stderr.decode()
    assert theirs is None or theirs.returncode != 0


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ('x["n"]', "an array's length is neither a number nor the path to a field"),
        ("x[2]:5", "a bit field of what is not an integer"),
    ],
)
def test_what_babeltrace2_does_not_refuse_is_refused(krait, tmp_path, field, why):
    """2.0 takes a quotation for a path, and comes to no end with an array of bit fields."""
    (tmp_path / "metadata").write_text(metadata(f"{U8} n; {U8} {field};"))
    done = cat_bytes(krait, tmp_path)
    assert done.returncode == 1 and why in done.stderr.decode()


# -- what CTF 1.8.3 has and babeltrace2 has not --

SMALL = f"{{ {U8} a; integer {{ size = 16; align = 8; }} b; }}"
ONE = f"enum : {U8} {{ a = 1 }} t;"
IN_OPTION = f"{ONE} variant <t> {{ struct {{ {ONE} variant <event.fields.v.a.t> {{ {U8} a; }} w; }} a; }} v;"

# Metadata, the stream, and how the event's line ends.
TIME = struct.pack("<Q", 5)
BEYOND = [
    (metadata(f"{TAG} variant <event.fields.t> {SMALL} v;"), TIME + b"\7\1\2", b'{ t = ( "b" : container = 7 ), v = { 513 } }'),
    (metadata(f"struct {{ {TAG} }} s; variant <s.t> {SMALL} v;"), TIME + b"\7\1\2", b"container = 7 ) }, v = { 513 } }"),
    (metadata(f"{TAG} variant <t> {{ {U8} c; {U8} a; string b; }} v;"), TIME + b"\7z\0", b'= 7 ), v = { "z" } }'),
    (metadata("struct y x;", event=f"enum z : {U8} {{ a }} struct y {{ enum z a; }};"), TIME + b"\0", b'{ x = { a = ( "a" : container = 0 ) } }'),
    (metadata("struct z x; enum e y;", trace=f"struct w {{ {U8} a; }} struct z {{ struct w b; }} enum e : {U8} {{ q }}; {TRACE}"),
     TIME + b"\1\0", b'{ x = { b = { a = 1 } }, y = ( "q" : container = 0 ) }'),
    (metadata(f"struct {{ {TAG} variant <s.t> {SMALL} v; }} s;"), TIME + b"\1\2", b"container = 1 ), v = { 2 } } }"),
    (metadata(f"struct {{ {TAG} variant <s.t> {SMALL} v; }} s[2];"), TIME + b"\1\2\7\3\4", b"container = 7 ), v = { 1027 } } ] }"),
    (metadata(f"struct {{ {TAG} variant <event.fields.s.t> {SMALL} v; }} s[2];"), TIME + b"\1\2\7\3\4", b"= 7 ), v = { 1027 } } ] }"),
    (metadata(IN_OPTION), TIME + b"\1\1\3", b"w = { 3 } } } }"),
    (metadata(f"variant <event.context.t> {SMALL} v;", event=f"context := struct {{ {TAG} }};"), TIME + b"\7\1\2", b"{ v = { 513 } }"),
    (metadata(f"variant <stream.event.context.t> {SMALL} v;", stream=f"event.context := struct {{ {TAG} }};"), TIME + b"\7\1\2",
     b"{ v = { 513 } }"),
    (metadata(f"variant <stream.event.header.s.t> {SMALL} v;", header=f"{HEADER} struct {{ {TAG} }} s;"), TIME + b"\7\1\2",
     b"{ v = { 513 } }"),
    (metadata(f"{TAG} variant w v;", event=f"variant w <event.fields.t> {SMALL};"), TIME + b"\7\1\2", b"v = { 513 } }"),
    (metadata(f"variant <trace.packet.header.t> {SMALL} v;", trace=TRACE.replace("};", f"packet.header := struct {{ {TAG} }}; }};")),
     b"\7" + TIME + b"\1\2", b"{ v = { 513 } }"),
    (metadata(f"variant <stream.packet.context.t> {SMALL} v;", stream=f"packet.context := struct {{ {TAG} }};"),
     b"\7" + TIME + b"\1\2", b"{ v = { 513 } }"),
    (metadata("const u8 x; u8 const y; const u8 const *z;", trace=f"typealias {U8} := u8; typealias {U8} := u8 *; {TRACE}"),
     TIME + b"\1\2\3", b"{ x = 1, y = 2, z = 0x3 }"),
    (metadata(f"const {U8} x; const struct {{ const string y; }} s; const struct s z;", event=f"struct s {{ {U8} a; }};"),
     TIME + b"\1a\0\3", b'{ x = 1, s = { y = "a" }, z = { a = 3 } }'),
    (metadata("const unsigned const long x; cu8 y; const e z;",
              event=f"typealias const {U8} := unsigned long; typedef const {U8} cu8; typealias enum : const cu8 {{ a }} := e;"),
     TIME + b"\1\2\0", b'{ x = 1, y = 2, z = ( "a" : container = 0 ) }'),
    (metadata("const u8 x;", event=f"typealias {U8} := const u8; typealias integer {{ size = 16; }} := u8;"), TIME + b"\1", b"{ x = 1 }"),
    (metadata(event='model.emf.uri = "a\\u00e9\\u20AC1\\U0001f600\\U0010FFFF\\u0024";'), TIME + b"\1",
     "aé€1😀\U0010ffff$ e: { x = 1 }".encode()),
    (metadata(f'enum : {U8} {{ "\\u00c4\\u00DF9" = 1 }} x;'), TIME + b"\1", '{ x = ( "Äß9" : container = 1 ) }'.encode()),
]

# GNU/C's bit fields (4.1.6), as gcc lays out the same structs on x86-64, but that CTF has no padding at a struct's end.
INT = "integer { size = 32; align = 32; }"
CHAR = "integer { size = 8; signed = true; }"
BEYOND += [
    (metadata(f"{SHORT} a:12, b:5; {U8} z;"), TIME + b"\xff\xf7\x0f\x09", b"{ a = 2047, b = 15, z = 9 }"),
    (metadata(f"{SHORT} a:12; {SHORT} b:4; {SHORT} c:1; {U8} z;"), TIME + b"\x01\xf8\x01\x09", b"{ a = -2047, b = -1, c = -1, z = 9 }"),
    (metadata(f"{CHAR} x; {SHORT} a:5; {SHORT} b:3; {CHAR} y;"), TIME + b"\x07\x2f\x08", b"{ x = 7, a = 15, b = 1, y = 8 }"),
    (metadata(f"unit a : 0x3, b:31; {U8} z;", trace=f"typealias {INT} := unit; {TRACE}"),
     TIME + b"\xff\xff\xff\xff\x05\0\0\0\x09", b"{ a = 7, b = 5, z = 9 }"),
    (metadata(f"{U8} x[3]; struct {{ {U8} y; {INT} a:8; }} s; {INT} b:4; {U8} z;"), TIME + b"\x01\x02\x03\0\x04\x05\x06\x09",
     b"a = 5 }, b = 6, z = 9 }"),
    (metadata(f"string x; {INT} y; {INT} a:4; {INT} b:29; {U8} z;"),
     TIME + b"h\0\0\0\x01\0\0\0\xff\xff\xff\xff\x02\0\0\0\x09", b'{ x = "h", y = 1, a = 15, b = 2, z = 9 }'),
    (metadata(f"enum : {U8} {{ a = 1, b = 3 }} t:2; variant <t> {{ {U8} a:3; {U8} b:4; }} v; {U8} z;"), TIME + b"\x0f\x1a\x09",
     b"= 3 ), v = { 10 }, z = 9 }"),
    (metadata(f"string s; {U8} a:3, b:5, n; {U8} x[n]; {U8} c:4, d:4;"), TIME + b"s\0\x0a\x01\x07\x21", b"a = 2, b = 1, n = 1, x = [ [0] = 7 ], c = 1, d = 2 }"),
    (metadata(f"{SHORT} a:12; {SHORT} b:5; {U8} z;", trace=TRACE.replace("= le", "= be")), struct.pack(">Q", 5) + b"\x7f\xff\x78\x09",
     b"{ a = 2047, b = 15, z = 9 }"),
]

# The specification's own example (4.2.2), the same by other ways, and tags where the alias is used.
OWN = f"{TAG} typedef variant <t> {SMALL} w; struct {{ enum : {U8} {{ b = 1, a = 7 }} t; w v; }} s[2];"
OTHER = f"enum : {U8} {{ a = 7, b = 1 }} t;"
BEYOND += [
    (metadata(OWN), TIME + b"\1\1\2\7\3", b"container = 7 ), v = { 3 } } ] }"),
    (metadata(OWN.replace("typedef", "typealias").replace("} w;", "} := w;")),
     TIME + b"\1\1\2\7\3", b"container = 7 ), v = { 3 } } ] }"),
    (metadata(f"{TAG} typedef variant <t> {SMALL} w; typedef w y[2]; struct {{ {OTHER} struct {{ y v; }} z; }} s;"),
     TIME + b"\1\1\2\3", b"z = { v = [ [0] = { 2 }, [1] = { 3 } ] } } }"),
    (metadata(f"{TAG} typedef variant <t> {SMALL} w; typedef struct {{ {OTHER} w v; }} z; struct {{ {OTHER} z z; }} s;"),
     TIME + b"\1\1\1\2", b"v = { 2 } } } }"),
    (metadata(f"struct {{ {TAG} }} s; typedef variant <s.t> {SMALL} w; struct {{ struct {{ {OTHER} }} s; w v; }} z;"),
     TIME + b"\1\1\2", b"v = { 2 } } }"),
    (metadata(f"{TAG} struct {{ typedef variant <t> {SMALL} w; {OTHER} w v; }} s;"), TIME + b"\1\1\2", b"v = { 2 } } }"),
    (metadata(f"struct {{ {TAG} w v; }} s;", event=f"typedef variant <t> {SMALL} w;"), TIME + b"\7\1\2", b"v = { 513 } } }"),
    (metadata("w v;", event=f"typealias variant <event.context.t> {SMALL} := w; context := struct {{ {TAG} }};"),
     TIME + b"\7\1\2", b"{ v = { 513 } }"),
]


@pytest.mark.parametrize(("text", "data", "shown"), BEYOND, ids=range(len(BEYOND)))
def test_what_the_specification_has_and_babeltrace2_has_not_is_read(both, text, data, shown):
    ours, _ = both(text, data)
    assert ours.returncode == 0, ours.stderr.decode()
    assert ours.stdout.endswith(shown + b"\n")


def packet(text, more=0):
    """A packet of metadata, with `more` bytes behind its text."""
    size = (37 + len(text)) * 8
    return struct.pack("<I16sIIIBBBBB", 0x75D11D57, bytes(16), 0, size, size + more * 8, 0, 0, 0, 1, 8) + text + bytes(more)


PLAIN = metadata(clock="", header=f"{U8} z;").encode()


@pytest.mark.parametrize("behind", [b"\0", bytes(36), packet(PLAIN)[:36]])
def test_bytes_behind_the_last_packet_of_metadata_that_are_no_header_say_nothing(both, behind):
    ours, theirs = both(packet(PLAIN, more=3) + behind, b"\1\2")
    assert (ours.returncode, ours.stdout) == (0, b"e: { x = 2 }\n")
    assert theirs is None or (theirs.returncode, theirs.stdout) == (0, ours.stdout)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (packet(PLAIN) + bytes(37), "no metadata packet begins here"),
        (packet(PLAIN)[:36], "there is no trace block"),
    ],
)
def test_packets_of_metadata_that_babeltrace2_refuses_are_refused(both, data, why):
    ours, theirs = both(data, b"\1\2")
    assert (ours.returncode, ours.stdout) == (1, b"")
    assert why in ours.stderr.decode()
    assert theirs is None or theirs.returncode != 0


# -- times --

BEGIN = """packet.context := struct { integer { size = 32; align = 8; } packet_size; integer { size = 32; align = 8; } content_size;
    integer { size = 8; map = clock.c.value; } timestamp_begin; };"""


def test_a_narrow_begin_says_all_of_a_packet_s_time(both):
    """babeltrace2 2.1 does so; 2.0 refuses time that goes back."""
    text = metadata(clock="clock { name = c; freq = 1000000000; };", stream=BEGIN,
                    header="integer { size = 8; map = clock.c.value; } timestamp;")
    made = b"".join(struct.pack("<IIB", 13 * 8, 13 * 8, begin) + data for begin, data in ((250, b"\xfb\1\1\2"), (3, b"\4\3\5\4")))
    ours, _ = both(text, made)
    assert ours.returncode == 0
    assert [line.split(b"]")[0] for line in ours.stdout.splitlines()] == [
        b"[00:00:00.000000251", b"[00:00:00.000000257", b"[00:00:00.000000004", b"[00:00:00.000000005"]
