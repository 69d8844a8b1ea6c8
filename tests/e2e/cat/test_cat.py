# SPDX-License-Identifier: Apache-2.0
"""krait cat prints what babeltrace2 prints: of its own recordings, and of the traces that others recorded."""

import hashlib
import os
import random
import shutil
import subprocess

import pytest

import large
from corpus import CORPUS, SCRIPT, UTC, babeltrace_but_losses, cat_bytes, corpus_rows
from recording import ROOT
from terminal import on_terminal

# babeltrace2 before 2.0.5 shows an empty string as the one that its field object held before, and the table's text of
# this trace was made so. These are the sums of what 2.1.2 prints.
CORRECTED = {"tracecompass/uneven-streams": "b8480c09be47067b2849219c3a97e44d26947d492ec65eb23355e8d6a1833f42"}


# -- traces that others recorded --


# CTF 2 traces that their author's reader reads and babeltrace2 and yactfr refuse, because the specification does: most
# are not JSON. What krait says of them.
COMMA = b"where a key's quote should be"
NOT_CTF2 = {
    "actf-ctf2/dyn_str_shorter_than_len": COMMA,
    "actf-ctf2/dyn_str_utf8": COMMA,
    "actf-ctf2/ev_rec_hdr_variant_role": b"where a value should be",
    "actf-ctf2/fld_loc_double_arr": b"no record separator",
    "actf-ctf2/fxd_len_bit_map": COMMA,
    "actf-ctf2/fxd_len_enum_uint64": b"an unsigned integer with a label for values below 0",
    "actf-ctf2/fxd_len_int_print": b"a second member '32-bit lil endian'",
    "actf-ctf2/null_term_str": COMMA,
    "actf-ctf2/null_term_str_utf32": COMMA,
    "actf-ctf2/pkt_ctxt_align_eof_content": COMMA,
    "actf-ctf2/static_str_utf8": COMMA,
    "actf-ctf2/var_len_int_clk_role": COMMA,
    "actf-ctf2/var_len_int_enum": COMMA,
}

# Packets of metadata (CTF2-PMETA-1.0), which neither of the two reads: how many events their author has.
PACKETISED = {"actf-ctf2/CTF2-PMETA-1.0-be": 1, "actf-ctf2/CTF2-PMETA-1.0-le": 1}


# Their tracer took nanoseconds for seconds, in the clock's offset: babeltrace2 refuses them too.
BEYOND_TIME = {"tracecompass/ctfwriter_JF8nq3", "tracecompass/funky_trace"}


def check_readable(run, row):
    trace, author, bt2, yactfr, _, _, sha = row
    assert run.returncode == 0, run.stderr.decode()
    if bt2 != "ok":  # the specification's author or another reader reads it
        assert run.stdout.count(b"\n") == (PACKETISED[trace] if yactfr == "refuse" else int(yactfr))
    else:
        assert hashlib.sha256(run.stdout).hexdigest() == CORRECTED.get(trace, sha)


@pytest.mark.parametrize("row", corpus_rows())
def test_traces_of_others_read_as_they_should(krait, row):
    trace, author, bt2, yactfr = row[:4]
    run = cat_bytes(krait, CORPUS / trace)
    if trace in NOT_CTF2:
        assert run.returncode == 1 and run.stdout == b""
        assert NOT_CTF2[trace] in run.stderr and b"/metadata: byte " in run.stderr
    elif trace in BEYOND_TIME:
        assert run.returncode == 1 and run.stdout == b""
        assert b"its time from the clock's origin is beyond" in run.stderr
    elif author != "refuse" and bt2 == "ok" or author == "ok" or (author == "-" and yactfr.isdigit()):
        check_readable(run, row)
    else:
        assert run.returncode == 1
        assert run.stderr.startswith(b"krait cat: ")
        if bt2 == "refuse" and row[4] != "0":  # valid events before the damage
            assert hashlib.sha256(run.stdout).hexdigest() == row[6]


# -- krait's own --


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cat") / "trace"
    tool = ROOT / "build" / "tests" / "synth"
    subprocess.run([tool, folder], input=SCRIPT, text=True, check=True)
    return folder


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--clock-seconds"],
        ["--clock-date"],
        ["--clock-gmt", "--clock-date"],
        ["--clock-cycles"],
        ["--no-delta"],
        ["--names=none"],
        ["--names=all"],
        ["--names=header"],
        ["--names=payload,scope"],
        ["--fields=trace:procname"],
        ["--fields=trace:domain,trace:vpid"],
        ["--fields=trace:hostname,loglevel"],
        ["--fields=trace"],
        ["--fields=callsite,emf"],
        ["--fields=all", "--names=all"],
        ["--clock-seconds", "--begin=1767225600.000003", "--end=1767225600.3005"],
        ["--begin=00:00:00.000000003", "--end=00:00:00.35", "--clock-gmt"],
        ["--begin=2026-01-01 00:00:00.001", "--clock-gmt"],
    ],
    ids=" ".join,
)
def test_own_recordings_print_as_babeltrace2_prints_them(krait, recording, options):
    ours = cat_bytes(krait, *options, recording)
    assert ours.returncode == 0, ours.stderr.decode()
    theirs = babeltrace_but_losses(*options, recording)
    assert ours.stdout.splitlines() == theirs.splitlines()
    assert ours.stdout == theirs
    assert ours.stdout.count(b"\n") > 5


def test_events_that_a_tracer_discarded_are_told_on_stderr(krait, recording):
    run = cat_bytes(krait, recording)
    assert b"Tracer discarded 7 events between [00:00:00" in run.stderr


def test_several_folders_are_one_timeline(krait, recording):
    parts = sorted(p for p in recording.iterdir() if p.is_dir())
    assert len(parts) == 2
    assert cat_bytes(krait, *parts).stdout == cat_bytes(krait, recording).stdout


def test_output_that_nobody_reads_ends_quietly(krait, recording):
    run = subprocess.run(f"'{krait}' cat '{recording}' | head -n 1; exit ${{PIPESTATUS[0]}}", shell=True,
                         executable="/bin/bash", capture_output=True, text=True)
    assert run.returncode == 0 and run.stderr == "" and run.stdout.count("\n") == 1


# -- damage --


@pytest.fixture
def damaged(recording, tmp_path):
    """A copy of one process, and its largest stream."""
    copy = tmp_path / "app"
    shutil.copytree(next(p for p in recording.iterdir() if p.name.startswith("app")), copy)
    return copy, max((p for p in copy.iterdir() if p.name != "metadata"), key=lambda p: p.stat().st_size)


def test_a_stream_that_is_cut_prints_what_is_whole_then_the_reason(krait, damaged):
    folder, stream = damaged
    whole = cat_bytes(krait, folder).stdout.splitlines()
    stream.write_bytes(stream.read_bytes()[:-9])
    run = cat_bytes(krait, folder)
    assert run.returncode == 1
    assert f"{stream}: byte ".encode() in run.stderr and b"the packet is cut" in run.stderr
    lines = run.stdout.splitlines()
    assert len(whole) - 6 <= len(lines) < len(whole)
    assert [l.split(b") ", 1)[1] for l in lines[:3000]] == [l.split(b") ", 1)[1] for l in whole[:3000]]


def test_a_packet_that_is_none_is_named(krait, damaged):
    folder, stream = damaged
    stream.write_bytes(b"\0" * 200)
    run = cat_bytes(krait, folder)
    assert run.returncode == 1
    assert f"{stream}: byte 0: no packet begins here".encode() in run.stderr
    assert b"code:define" in run.stdout


def test_an_unknown_event_ends_its_stream_alone(krait, damaged):
    folder, stream = damaged
    data = bytearray(stream.read_bytes())
    data[84:89] = bytes((31, 200, 0, 0, 0))  # the first event of the first packet: an id of the extended header that no event has
    stream.write_bytes(data)
    run = cat_bytes(krait, folder)
    assert run.returncode == 1
    assert b"an event has id 200, which is not in the metadata" in run.stderr
    assert b"code:define" in run.stdout


def test_metadata_that_is_cut_is_refused_with_its_line(krait, damaged):
    folder, _ = damaged
    text = (folder / "metadata").read_text()
    (folder / "metadata").write_text(text[: text.index("event {", len(text) // 2) + len("event { n")])
    run = cat_bytes(krait, folder)
    assert run.returncode == 1 and run.stdout == b""
    assert f"{folder}/metadata: line ".encode() in run.stderr


def test_a_folder_without_a_trace_is_said(krait, tmp_path):
    run = cat_bytes(krait, tmp_path)
    assert run.returncode == 1 and b"no CTF trace in there" in run.stderr
    run = cat_bytes(krait, tmp_path / "nowhere")
    assert run.returncode == 1 and b"nowhere" in run.stderr


# -- what a trace says, on a terminal --


NASTY = "\x1b]0;title\x07\x1b[31mred\nline two\x7f\xc2\x85".encode("latin-1") + b"\xff\xe2\x80\xae"


def is_one_harmless_line(stderr):
    text = stderr.decode()  # it is UTF-8
    return text.endswith("\n") and text.count("\n") == 1 and text[:-1].isprintable()


def test_metadata_in_an_error_is_one_line_without_control_characters(krait, recording, tmp_path):
    folder = tmp_path / "trace"
    shutil.copytree(recording, folder)
    (folder / "metadata").write_bytes(b"/* CTF 1.8 */\ntrace {" + NASTY + b"};\n")
    run = cat_bytes(krait, folder)
    assert run.returncode == 1 and is_one_harmless_line(run.stderr), run.stderr
    (folder / "metadata").write_bytes(b"/* CTF 1.8 */\ntrace { major '" + NASTY.replace(b"\xff", b"") + b"' };\n")
    run = cat_bytes(krait, folder)
    assert run.returncode == 1 and is_one_harmless_line(run.stderr), run.stderr
    assert b"\\x1b]0;title\\x07\\x1b[31mred\\nline two" in run.stderr


@pytest.mark.parametrize("verb", ["cat", "info", "report", "export", "flame", "states", "path"])
def test_names_of_files_in_errors_are_one_line_without_control_characters(krait, tmp_path, verb):
    folder = tmp_path / os.fsdecode(b"a\x1b[31mb\nc\xff")
    to = ["--to", "folded", "-o", "-"] if verb == "export" else []
    run = subprocess.run([krait, verb, folder, *to], capture_output=True, env=UTC, timeout=120)
    assert run.returncode == 1 and is_one_harmless_line(run.stderr), run.stderr
    assert b"a\\x1b[31mb\\nc\\xff" in run.stderr


def test_warnings_of_losses_are_a_line_each_without_control_characters(krait, tmp_path):
    folder = tmp_path / os.fsdecode(b"a\x1b[31mb\nc\xff")
    large.make(folder, count=3, discarded=lambda k: 3 * k)
    (folder / "s0").rename(folder / os.fsdecode(b"s\x07\n\xfe"))
    run = cat_bytes(krait, folder)
    lines = run.stderr.splitlines(keepends=True)
    assert run.returncode == 0 and len(lines) == 2 and all(map(is_one_harmless_line, lines)), run.stderr
    assert b"a\\x1b[31mb\\nc\\xff/s\\x07\\n\\xfe" in lines[0]


def test_arguments_in_errors_are_without_control_characters(krait, recording):
    run = cat_bytes(krait, b"--begin=\x1b[31m\n\xff".decode(errors="surrogateescape"), recording)
    first, rest = run.stderr.split(b"\n", 1)
    assert run.returncode == 2 and is_one_harmless_line(first + b"\n") and rest == b"Try: krait cat --help\n", run.stderr
    run = subprocess.run([krait, b"\x1b[31m\n"], capture_output=True)
    assert run.returncode == 2 and run.stderr == b"krait: no verb '\\x1b[31m\\n'\nTry: krait help\n"


def test_a_program_in_a_verbs_place_is_told_how_to_record_it(krait, tmp_path):
    (tmp_path / "app.py").touch()
    run = subprocess.run([krait, "app.py"], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 2 and run.stderr == "krait: no verb 'app.py'\nTry: krait record -- python3 FILE\n"


def test_a_mistake_in_a_filter_is_pointed_at_below_it(krait, recording):
    said = 'krait cat: filter, column 6: a number, a word or a "text" is wanted here\n    a == \n         ^\nTry: krait cat --help\n'
    assert cat_bytes(krait, "--filter", "a == ", recording).stderr.decode() == said
    text = on_terminal([krait, "cat", "--filter", "a == ", recording], 100, ["stderr"], {**UTC, "NO_COLOR": "1"})[0]
    assert text == said
    assert b"\n    a == '\\x1b' ==\n" in cat_bytes(krait, "--filter", "a == '\x1b' ==", recording).stderr


@pytest.mark.parametrize(
    "options, why",
    [
        (["-f", "own.toml"], "--fields: 'own.toml' is a file, and no field; --analysis FILE reads what --within names\n"),
        (["-f", "nowhere.xml"], "--fields: 'nowhere.xml' is a file, and no field; "),
        (["-f", "trace,there"], "--fields: 'there' is a file, and no field; "),
        (["-f", "trace:hostnme"], "--fields: 'trace:hostnme' is not one of trace, trace:hostname, "),
        (["--names", "paylod"], "--names: 'paylod' is not one of payload, args, arg, context, header, scope, all, none; did you mean 'payload'?\n"),
    ],
)
def test_a_field_that_is_none_is_told(krait, recording, tmp_path, options, why):
    (tmp_path / "there").touch()
    done = subprocess.run([krait, "cat", *options, recording], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith(f"krait cat: {why}")


def test_wrong_options_are_wrong_usage(krait, recording):
    assert cat_bytes(krait).returncode == 2
    assert cat_bytes(krait, "--begin=yesterday", recording).returncode == 2
    assert cat_bytes(krait, "--names=nonsense", recording).returncode == 2


def test_whatever_bytes_are_wrong_nothing_worse_than_an_error_comes_of_it(krait, damaged):
    folder, stream = damaged
    random.seed(4)
    originals = {path: path.read_bytes()[:3000] for path in (stream, folder / "metadata")}
    for _ in range(150):
        for path, data in originals.items():
            wrong = bytearray(data)
            for _ in range(random.randrange(4)):
                wrong[random.randrange(min(len(wrong), random.choice((100, 3000))))] = random.choice((0, 1, 34, 59, 127, 255))
            path.write_bytes(wrong)
        run = cat_bytes(krait, folder)
        assert run.returncode in (0, 1), run.returncode
        assert run.returncode == 0 or run.stderr
