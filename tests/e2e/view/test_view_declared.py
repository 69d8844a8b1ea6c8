# SPDX-License-Identifier: Apache-2.0
"""Lanes of declared analyses (-f): in pictures, on the page, and in Perfetto's and Chrome's formats."""

import json
import re
import subprocess

import pytest
from browser import ask, served
from intervals_made import declare, marks  # noqa: F401  (declare: a fixture)
from shop import SHOP, TOLD
from svg import SVG, boxes, lanes, view  # noqa: F401  (view: a fixture)
from trace_processor import FAULTS
from trace_processor import ask as query

ORDERS = [(100, 300, "1"), (200, 500, "2"), (600, 700, "3")]  # the first two cross


@pytest.fixture
def shop(synth):
    return synth(marks(*TOLD))


def test_lanes_stand_above_the_threads(view, shop, declare):  # noqa: F811
    root, said = view(shop, "-f", declare(SHOP))
    found = lanes(root)
    assert "warning" not in said
    assert [name.rsplit(" ", 1)[0] for name in found] == ["order", "oven T0", "oven T1", "waiting", "T0", "T1"]
    assert "Declared lanes" in "".join(root.itertext())
    (order,) = (g for g in root.iter(f"{SVG}g") if g.get("aria-label") == "order 0")  # two rows, since some cross
    assert sorted(box[3][0] for box in boxes(order)) == ["1", "2", "3"]
    assert {box[3][0] for box in found["oven T0 1"]["oven T0"]} == {"hot", "warm"}


def test_a_file_says_which_lanes_there_are(view, shop, declare):  # noqa: F811
    root, _ = view(shop, "-f", declare(SHOP + '[lane.kitchen]\nshow = ["oven", "order"]\n[lane.third]\nshow = "order"\nkey = "3"\n'))
    found = lanes(root)
    assert [name.rsplit(" ", 1)[0] for name in found] == ["kitchen", "third", "T0", "T1"]
    assert {"oven T0", "oven T1", "order"} <= set(found["kitchen 0"])
    assert [box[3][0] for part in found["third 1"].values() for box in part] == ["3"]


def test_the_page_has_the_same_and_its_index_stays(krait, shop, declare):  # noqa: F811
    plain = served(krait, shop)
    with plain as link:
        before = len(ask(link, "trace")["tracks"])
    cached = (shop / ".krait-view").read_bytes() if (shop / ".krait-view").exists() else None
    with served(krait, shop, "-f", declare(SHOP)) as link:
        trace = ask(link, "trace")
    own = [(t["threadName"], t["name"], t["kind"]) for t in trace["tracks"][before:]]
    assert [t["of"] for t in trace["tracks"][before:]] == ["lane"] * 5 and "lane" not in {t["of"] for t in trace["tracks"][:before]}
    assert own == [("order", "order", "slices"), ("order", "order", "slices"), ("oven T0", "oven T0", "states"), ("oven T1", "oven T1", "states"), ("waiting", "waiting", "counter")]
    assert cached is None or (shop / ".krait-view").read_bytes() == cached


def test_chromes_format_has_rows_for_them(krait, shop, declare, tmp_path):  # noqa: F811
    out = tmp_path / "out.json"
    subprocess.run([krait, "export", shop, "-f", declare(SHOP), "-o", out], check=True, capture_output=True)
    events = json.loads(out.read_text())["traceEvents"]
    (pid,) = {e["pid"] for e in events if e["ph"] == "M" and e["args"].get("name") == "Declared lanes"}
    own = [e for e in events if e["pid"] == pid]
    rows = {e["tid"]: e["args"]["name"] for e in own if e["ph"] == "M" and e["name"] == "thread_name"}
    assert sorted(rows.values()) == ["order", "order", "oven T0", "oven T1", "waiting"]
    first = min(e["ts"] for e in own if e["ph"] == "X")
    assert sorted((e["ts"] - first + 100, e["ts"] - first + 100 + e["dur"], e["name"]) for e in own if e["ph"] == "X" and rows[e["tid"]] == "order") == pytest.approx(ORDERS)
    assert [e["args"]["value"] for e in own if e["ph"] == "C"] == [2, 1.5]


def test_perfetto_has_tracks_for_them(krait, shop, declare, tmp_path):  # noqa: F811
    out = tmp_path / "out.pftrace"
    subprocess.run([krait, "export", shop, "-f", declare(SHOP), "-o", out], check=True, capture_output=True)
    faults, parents, slices, values = query(
        out, FAULTS, "select distinct p.name from slice s join track t on s.track_id = t.id join track p on t.parent_id = p.id",
        "select s.ts, s.dur, s.name, t.name from slice s join track t on s.track_id = t.id where t.name is not null order by s.ts", "select value from counter order by ts",
    )  # fmt: skip
    assert faults == [] and parents == [("Declared lanes",)] and values == [(2,), (1.5,)]
    first = min(row[0] for row in slices)
    us = [((ts - first) // 1000 + 100, (ts - first + dur) // 1000 + 100, name, track) for ts, dur, name, track in slices]
    assert [row[:3] for row in us if row[3] == "order"] == ORDERS
    assert {row[2] for row in us if row[3].startswith("oven")} == {"hot", "warm", "off"}


def test_what_is_wrong_is_said(krait, shop, declare, tmp_path):  # noqa: F811
    def said(*args):
        done = subprocess.run([krait, *args], capture_output=True, text=True)
        return done.returncode, done.stderr

    own = declare(SHOP + '[lane.kitchen]\nshow = "oben"\n')
    assert said("analyses", own)[1] == f"krait analyses: {own}:10: lane.kitchen.show: there is no interval, state or signal 'oben'; did you mean 'oven'?\n"
    assert "it needs the key 'show'" in said("analyses", declare(SHOP + "[lane.kitchen]\n"))[1]
    code, text = said("view", shop, "-f", declare("[signal.none]\nmessage = 'never (\\d+)'\n"), "--svg", tmp_path / "x.svg")
    assert code == 0 and "no event matches 'none'" in text
    assert said("export", shop, "-f", "syscalls", "--to", "folded", "-o", "-")[0] == 2


def test_keys_stand_in_the_order_of_their_numbers(view, synth, declare):  # noqa: F811
    folder = synth(marks(*((0, 10 * i, f"cpu {n} busy") for i, n in enumerate([10, 2, 1, 10, 2, 1]))))
    root, _ = view(folder, "-f", declare("[state.cpu]\nmessage = 'cpu (?P<key>\\d+) (?P<state>\\w+)'\n"))
    assert [name.rsplit(" ", 1)[0] for name in lanes(root)] == ["cpu 1", "cpu 2", "cpu 10", "T0"]


@pytest.mark.parametrize("way", ["--svg", "--html"])
def test_long_names_of_lanes_keep_their_ends_and_are_whole_in_their_titles(krait, shop, declare, tmp_path, way):  # noqa: F811
    rules = "[state.temperature-of-the-first-oven-in-the-kitchen]\nmessage = 'oven is (\\w+)'\n"
    subprocess.run([krait, "view", shop, "-f", declare(rules), way, tmp_path / "picture"], capture_output=True, text=True, check=True)
    picture = (tmp_path / "picture").read_text()
    names = re.findall(r'<text class="name" x="[\d.]+" y="[\d.]+">(temp[^<]*)<title>([^<]*)</title>', picture)
    assert [whole for _, whole in names] == [f"temperature-of-the-first-oven-in-the-kitchen T{i}" for i in (0, 1)]
    assert [(shown[:4], shown[-3:], "\u2026" in shown) for shown, _ in names] == [("temp", f" T{i}", True) for i in (0, 1)]
