# SPDX-License-Identifier: Apache-2.0
"""When `krait ctl set` changed what is recorded: whoever reads numbers of calls is told."""

import json

import pytest
from report_made import CODES

SET = "include=app.*%20c-calls=off"
TWO = f"""{CODES}0 call 1
100ms set {SET}
300ms set c-calls=on
400ms return
exit 0 0
process 5000 python3
code 1 python app main app.py 1
thread 5000 MainThread
0 call 1
101ms set {SET}
400ms return
exit 0 0
"""
WHY = "functions that are left out before or after have calls for a part of the time alone"
LIST = "from 100.0 ms on include=app.* c-calls=off; from 300.0 ms on c-calls=on"


def test_report_and_info_tell_when_and_to_what(synth, run):
    folder = synth(TWO)
    assert f"krait ctl set: changed what is recorded: {LIST}; {WHY}\n" in run("report", folder).stderr
    info = run("info", folder).stdout
    assert "  changed    what is recorded, 2 times, by krait ctl set\n" in info
    assert "".join(f"             {change}\n" for change in LIST.split("; ")) in info, "one change a line"
    assert WHY in " ".join(info.split())
    for verb in "report", "info":
        sets = json.loads(run(verb, "--json", folder).stdout)["sets"]
        assert [(s["at_ns"] // 10**6, s["pid"], s["what"]) for s in sets] == [
            (100, 4711, "include=app.* c-calls=off"), (101, 5000, "include=app.* c-calls=off"), (300, 4711, "c-calls=on"),
        ]


def test_a_part_keeps_it(synth, run, tmp_path):
    run("cut", synth(TWO), "--from", "50ms", "-o", tmp_path / "part")
    assert [s["at_ns"] // 10**6 for s in json.loads(run("info", "--json", tmp_path / "part").stdout)["sets"]] == [50, 51, 250]


def test_without_a_change_nothing_is_told(synth, run):
    folder = synth(CODES + "0 call 1\n9 return\nexit 0 0\n")
    assert "sets" not in json.loads(run("report", "--json", folder).stdout) and "changed" not in run("info", folder).stdout


def test_more_than_three_are_in_info(synth, run):
    folder = synth(CODES + "0 call 1\n" + "".join(f"{i}ms set include=a{i}%01\n" for i in range(1, 6)) + "9ms return\nexit 0 0\n")
    said = run("report", folder).stderr
    assert "from 3.000 ms on include=a3" in said and "a4" not in said and "; ...; " in said and said.rstrip().endswith("krait info lists all")
    assert "\x01" not in said and "include=a5" in run("info", folder).stdout


def test_what_changed_before_or_after_a_part_is_not_told_of_it(synth, run, tmp_path):
    off = "150ms recording 0\n160ms recording 1\n"
    folder = synth(f"{CODES}0 call 1\n100ms set {SET}\n{off}300ms set c-calls=on\n400ms return\nexit 0 0\n")
    for n, (edges, told) in enumerate({("--from", "250ms"): [50], ("--until", "250ms"): [100], ("--from", "310ms"): []}.items()):
        part = tmp_path / f"part{n}"
        run("cut", folder, *edges, "-o", part)
        assert [s["at_ns"] // 10**6 for s in json.loads(run("report", "--json", part).stdout).get("sets", [])] == told
        assert ("switched off 1 time" in run("report", part).stderr) == ("--until" in edges)


@pytest.mark.parametrize("edges, told", [(["--from", "250ms"], [300]), (["--until", "250ms"], [100]), (["--from", "310ms"], []), (["--from", "120ms", "--until", "140ms"], [])])
def test_of_a_range_what_changed_in_it_is_told(synth, run, edges, told):
    off = "150ms recording 0\n160ms recording 1\n"
    folder = synth(f"{CODES}0 call 1\n100ms set {SET}\n{off}300ms set c-calls=on\n400ms return\nexit 0 0\n")
    for verb in "report", "info":
        answer = json.loads(run(verb, "--json", folder, *edges).stdout)
        assert [s["at_ns"] // 10**6 for s in answer.get("sets", [])] == told
        assert answer.get("switched_off", 0) == (edges == ["--until", "250ms"])
        said = (done := run(verb, folder, *edges)).stdout + done.stderr
        assert ("recorded 240.0 ms of 250.0 ms, switched off 1 time" in said) == (edges == ["--until", "250ms"])
        assert ("from 300.0 ms on c-calls=on" in said) == (300 in told) and ("from 100.0 ms on" in said) == (100 in told)
    for verb, *words in ("intervals", "--call", "main"), ("flame", "-o", "/dev/null"):
        assert ("krait ctl set" in run(verb, folder, *words, *edges).stderr) == bool(told)
