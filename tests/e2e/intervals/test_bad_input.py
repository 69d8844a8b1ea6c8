# SPDX-License-Identifier: Apache-2.0
"""Messages and patterns that nobody would write on purpose, from the recording to the page."""

import json
import subprocess

import pytest
from served import serve  # noqa: F401  (a fixture)

from conftest import BUILD, verb_json
from intervals_made import marks

TEN_MB = 10_000_000
LETTER = {"user:mark": "m", "log:record": "l"}

LONG = f"""
import krait, logging
logging.basicConfig(handlers=[logging.NullHandler()])
log = logging.getLogger("app")
krait.mark("begin " + "m" * {TEN_MB}, size={TEN_MB}, more="f" * {TEN_MB})
krait.mark("m" * {TEN_MB} + " end")
krait.mark("end")
log.warning("begin " + "l" * {TEN_MB}, extra={{"more": "e" * {TEN_MB}}})
log.warning("l" * {TEN_MB} + " end")
log.warning("end")
"""


@pytest.fixture(params=["user:mark", "log:record"])
def long_messages(record, any_python, request):
    """(the recording, the name of its events, their field): three messages, the first two with 10 MB."""
    run = record.text(any_python, LONG, options=["--log", "--no-c-calls"], env={"PYTHONPATH": str(BUILD / "python")})
    assert run.lost == 0
    return run.path, request.param, "text" if request.param == "user:mark" else "message"


def test_a_message_of_ten_megabytes_is_cut_where_it_is_recorded(long_messages, events):
    trace, name, field = long_messages
    found = [event["payload"][field] for event in events(trace, f'name == "{name}"')]
    assert len(found) == 3 and found[2] == "end"
    assert found[0].startswith("begin " + LETTER[name] * 1000) and all(len(text) < 10_000 for text in found)
    assert all(f"[cut: {size} characters]" in text for size, text in zip((TEN_MB + 6, TEN_MB + 4), found)), [text[-50:] for text in found]
    assert sum(path.stat().st_size for path in trace.rglob("*") if path.is_file()) < TEN_MB


@pytest.mark.parametrize("stop", ["^end", "(m*)*y|(l*)*y|^end"], ids=["simple", "explodes"])
def test_intervals_pair_messages_of_ten_megabytes(long_messages, krait, stop):
    trace, name, _ = long_messages
    start = f"^begin {LETTER[name]}+"
    done = subprocess.run([krait, "intervals", trace, "--start", start, "--stop", stop, "--json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["intervals"], row["no_stop"]) == (1, 0), done.stderr


def test_the_pages_table_of_events_has_messages_of_ten_megabytes(long_messages, serve):
    trace, name, field = long_messages
    server = serve(trace)
    found = server.api("events", text=f'name == "{name}"', limit=10)["events"]
    assert [event["payload"][field][:5] for event in found][::2] == ["begin", "end"] and "[cut: " in found[1]["payload"][field]
    page = server.ask("api/events?limit=1000")
    assert page[0] == 200 and len(page[2]) < TEN_MB


# -- a pattern that explodes, wherever one is given --

EXPLODES = "(a|aa)+$|(a+)+b"
TEXTS = [(0, 0, "a" * 5000), (0, 5, "begin 1"), (0, 9, "end 2")]
GIVEN = [
    (["intervals", "--start", EXPLODES + "|begin", "--stop", "end"], "4.000 us"),
    (["intervals", "--state", f"(?:{EXPLODES})|(begin|end)"], "begin"),
    (["intervals", "--signal", f"(?:{EXPLODES})|(\\d)"], "2"),
    (["report", "--within", EXPLODES + "|begin .. end"], ""),
    (["intervals", "-f", "own.toml"], "4.000 us"),
    (["view", "--svg", "out.svg", "-f", "own.toml"], ""),
    (["export", "--to", "chrome", "-o", "out.json", "-f", "own.toml"], ""),
]


@pytest.mark.parametrize("words, shown", GIVEN, ids=[" ".join(words[:2]) for words, _ in GIVEN])
def test_a_pattern_that_explodes_is_given_up_wherever_it_is_given(synth, krait, tmp_path, words, shown):
    folder = synth(marks(*TEXTS))
    (tmp_path / "own.toml").write_text(f"[interval.a]\nstart = '{EXPLODES}|begin'\nstop = 'end'\n")
    done = subprocess.run([krait, words[0], folder, *words[1:]], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0 and shown in done.stdout, done.stderr
    assert "given up" in done.stderr


def test_the_page_gives_up_a_pattern_that_explodes(synth, serve):
    server = serve(synth(marks(*TEXTS)))
    status, _, body = server.ask("api/preview?limit=2", method="POST", body=f"[interval.a]\nstart = '{EXPLODES}|begin'\nstop = 'end'\n".encode())
    assert status == 200, body
    (rule,) = json.loads(body)["rules"]
    assert [row["count"] for row in rule["rows"]] == [1]


# -- intervals that cross, or have one end --

CROSSING = [(0, 0, "begin 1"), (0, 10, "begin 2"), (0, 30, "end 1"), (0, 60, "end 2"), (0, 70, "end 3"), (0, 80, "begin 4")]
KEYED = "[interval.job]\nstart = 'begin (?P<key>\\d)'\nstop = 'end (?P<key>\\d)'\n"


def test_crossing_and_unmatched_intervals_are_the_same_in_every_verb(synth, krait, serve, tmp_path):
    folder = synth(marks(*CROSSING))
    own = tmp_path / "own.toml"
    own.write_text(KEYED)
    (row,) = [r for r in verb_json(krait, "intervals", folder, "-f", own)["rows"] if r["name"] == "job"]
    assert [row[name] for name in ("intervals", "total_ns", "no_start", "no_stop")] == [2, 80_000, 1, 1]
    done = subprocess.run([krait, "report", folder, "-f", own, "--within", "job", "--by", "mark"], capture_output=True, text=True)
    assert "within job, all 2: 80.00 us; they overlap, and cover 60.00 us" in done.stderr
    done = subprocess.run([krait, "view", folder, "-f", own, "--svg", tmp_path / "out.svg"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    server = serve(folder, "-f", own)
    lanes = [track["threadName"] for track in server.api("trace")["tracks"] if track["of"] == "lane"]
    assert len(lanes) == 2, lanes  # what crosses lies in two


def test_a_long_circle_of_declared_intervals_is_refused(synth, krait, tmp_path):
    (tmp_path / "own.toml").write_text("".join(f"[interval.i{n}]\nspan = 'f'\nwithin = 'i{(n + 1) % 2000}'\n" for n in range(2000)))
    for words in (["intervals"], ["view", "--svg", "out.svg"], ["report", "--within", "i7"]):
        done = subprocess.run([krait, words[0], synth(marks((0, 0, "x")), words[0]), *words[1:], "-f", "own.toml"], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 1 and "a circle" in done.stderr and "own.toml:" in done.stderr
