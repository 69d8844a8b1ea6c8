# SPDX-License-Identifier: Apache-2.0
"""State providers of Trace Compass's data-driven analyses (-f FILE.xml)."""

import json
import re
import subprocess

import kernel_made
import pytest
from analyses_oracle import read
from browser import ask, served

from conftest import verb_json
from corpus import CORPUS
from kernel_made import event, switch
from providers_made import provider, states  # noqa: F401  (states: a fixture)
from svg import lanes, view  # noqa: F401  (view: a fixture)

PATH = """
  <stateAttribute type="constant" value="Threads"/>
  <stateAttribute type="eventField" value="tid"/>
"""


def test_events_set_attributes(tmp_path, states):
    trace = kernel_made.write(tmp_path / "t", [event(0, "go", tid=1, n=5), event(10, "go", tid=2, n=6), event(30, "go", tid=1, n=6), event(40, "end", tid=1), event(70, "go", tid=1, n=7), event(90, "end", tid=1)], domain="ust")
    xml = provider(
        f"""
<eventHandler eventName="go"><stateChange>{PATH}<stateValue type="eventField" value="n"/></stateChange></eventHandler>
<eventHandler eventName="end"><stateChange>{PATH}<stateValue type="null"/></stateChange></eventHandler>
<eventHandler eventName="*"><stateChange><stateAttribute type="eventName"/><stateValue type="int" value="1" increment="true"/></stateChange></eventHandler>
"""
    )
    found, notes = states(trace, xml)
    assert notes == ""
    assert found["Threads/1"] == [("5", 0, 30), ("6", 30, 10), ("7", 70, 20)]
    assert found["go"] == [("1", 0, 10), ("2", 10, 20), ("3", 30, 40)] and found["end"] == [("1", 40, 50)]


def test_conditions_choose_among_changes(tmp_path, states):
    trace = kernel_made.write(tmp_path / "t", [event(t, "x", n=n, m=m) for t, n, m in [(0, 1, 1), (10, 1, 5), (20, 3, 5), (30, 9, 5), (40, 9, 1), (50, 0, 0)]], domain="ust")

    def change(name, condition):
        sides = "".join(f'<{side}><stateAttribute type="constant" value="{name}"/><stateValue type="string" value="{side}"/></{side}>' for side in ("then", "else"))
        return f"<stateChange><if>{condition}</if>{sides}</stateChange>"

    def is_(field, value, op="eq"):
        return f'<condition operator="{op}"><field name="{field}"/><stateValue type="int" value="{value}"/></condition>'

    query = '<condition><stateAttribute type="constant" value="and"/><stateValue type="string" value="then"/></condition>'
    xml = provider(
        '<eventHandler eventName="x">'
        + change("and", f"<and>{is_('n', '$ONE')}{is_('m', 5)}</and>")
        + change("or", f"<or>{is_('n', 3)}{is_('m', 1)}</or>")
        + change("not", f"<not>{is_('n', 3, 'ge')}</not>")
        + change("lt", is_("n", 3, "lt"))
        + change("query", query)
        + "</eventHandler>",
        '<definedValue name="ONE" value="1"/>',
    )
    found, _ = states(trace, xml)
    assert found["and"] == [("else", 0, 10), ("then", 10, 10)]  # the last has no end
    assert found["or"] == [("then", 0, 10), ("else", 10, 10), ("then", 20, 10), ("else", 30, 10), ("then", 40, 10)]
    assert found["not"] == [("then", 0, 20), ("else", 20, 30)] == found["lt"] and found["query"] == found["and"]


def test_locations_queries_mappings_updates_and_deletes(tmp_path, states):
    trace = kernel_made.write(tmp_path / "t", [event(0, "run", tid=7), event(10, "call", nr=3), event(25, "better", nr=4), event(40, "exit", tid=7), event(50, "run", tid=8)], domain="ust")
    xml = provider(
        """
<eventHandler eventName="run"><stateChange><stateAttribute type="constant" value="now"/><stateValue type="eventField" value="tid"/></stateChange></eventHandler>
<eventHandler eventName="call"><stateChange><stateAttribute type="location" value="current"/><stateAttribute type="constant" value="call"/><stateValue type="eventField" value="nr" mappingGroup="names"/></stateChange></eventHandler>
<eventHandler eventName="better"><stateChange><stateAttribute type="location" value="current"/><stateAttribute type="constant" value="call"/><stateValue type="eventField" value="nr" update="true"/></stateChange></eventHandler>
<eventHandler eventName="exit"><stateChange><stateAttribute type="constant" value="Threads"/><stateAttribute type="eventField" value="tid"/><stateValue type="delete"/></stateChange></eventHandler>
""",
        """
<location id="current"><stateAttribute type="constant" value="Threads"/><stateAttribute type="query"><stateAttribute type="constant" value="now"/></stateAttribute></location>
<mappingGroup id="names"><entry><stateValue type="int" value="3"/><stateValue type="string" value="read"/></entry></mappingGroup>
""",
    )
    found, _ = states(trace, xml)
    assert found == {"now": [("7", 0, 50)], "Threads/7/call": [("4", 10, 30)]}


def test_the_host_is_known_of_all_events(tmp_path, states, krait):
    trace = kernel_made.write(tmp_path / "t", [event(0, "go"), event(10, "end"), event(30, "go")], domain="ust", host="alpha")
    xml = provider('<eventHandler eventName="*"><stateChange><stateAttribute type="eventField" value="hostID"/><stateValue type="eventName"/></stateChange></eventHandler>')
    assert states(trace, xml)[0] == {"alpha": [("go", 0, 10), ("end", 10, 20)]}
    (tmp_path / "own.toml").write_text("[interval.work]\nstart = { event = 'go' }\nstop = { event = 'end' }\nkey = '$host'\nby = '$host'\n")
    assert [row["key"] for row in verb_json(krait, "intervals", trace, "-f", tmp_path / "own.toml")["rows"] if row["intervals"]] == ["alpha"]


def test_a_kernel_trace_gives_what_a_script_finds(states):
    trace = CORPUS / "lttng-ref-traces" / "basic-kernel-analysis"
    if not trace.exists():
        pytest.skip("the corpus of traces is not here")
    xml = provider('<eventHandler eventName="sched_sw*"><stateChange><stateAttribute type="constant" value="CPUs"/><stateAttribute type="eventField" value="cpu"/><stateValue type="eventField" value="next_tid"/></stateChange></eventHandler>')
    expected, open_ = {}, {}
    for ns, name, fields, cpu, _ in read(trace):
        if name == "sched_switch" and open_.get(cpu, (None,))[0] != fields["next_tid"]:
            if cpu in open_:
                expected.setdefault(f"CPUs/{cpu}", []).append((str(open_[cpu][0]), (ns - open_[cpu][1]) // 1000))
            open_[cpu] = (fields["next_tid"], ns)
    found, _ = states(trace, xml)
    assert {path: [(value, duration) for value, _, duration in rows] for path, rows in found.items()} == expected


def test_what_is_not_supported_is_told_by_line_and_left_out(tmp_path, states):
    trace = kernel_made.write(tmp_path / "t", [switch(0, 0, 5), switch(10, 5, 6)])
    xml = provider(
        """<eventHandler eventName="sched_switch">
<stateChange><stateAttribute type="constant" value="a"/><stateValue type="script" value="x"/></stateChange>
<stateChange><stateAttribute type="constant" value="b"/><stateValue type="int" value="1" stack="bottom"/></stateChange>
<stateChange><stateAttribute type="self"/><stateValue type="int" value="1"/></stateChange>
<stateChange><stateAttribute type="location" value="none"/><stateValue type="int" value="1"/></stateChange>
<stateChange><stateAttribute type="constant" value="c"/><stateValue type="int" value="1"/><futureTime type="script" value="s + 1"><stateValue id="s" type="eventName"/></futureTime></stateChange>
<stateChange><stateAttribute type="constant" value="d"/></stateChange>
<stateChange><if><condition><field name="x"/></condition></if><then/></stateChange>
<stateChange><stateAttribute type="constant" value="kept"/><stateValue type="eventField" value="next_tid"/></stateChange>
</eventHandler>""",
    ).replace("</tmfxml>", '<pattern/>\n<timeGraphView id="v"><entry path="kept"/></timeGraphView>\n<xyView/>\n<callstack/><head/>\n</tmfxml>')
    found, notes = states(trace, xml)
    assert found == {"kept": [("5", 0, 10)]}
    lines = [line.split(".xml:")[1].split(" is not supported")[0] for line in notes.splitlines()]
    assert lines == [
        "4: <stateValue with a script>",
        "5: <stateValue stack>",
        '6: <stateAttribute type="self">',
        '7: <stateAttribute of no location="none">',
        "8: <futureTime with a script>",
        "9: <stateChange without an attribute and a value>",
        "10: <condition without a value to compare with>",
        "12: <pattern without a state machine>",
        "15: <callstack without a group>",
        "13: <timeGraphView that shows no attribute>",
        "14: <xyView that shows no attribute>",
    ]


def test_what_is_near_to_a_name_of_the_trace_is_told(krait, tmp_path):
    """These files are for many traces: what else the trace does not have is not told, nor what is known of all events."""
    trace = kernel_made.write(tmp_path / "t", [switch(0, 0, 5), switch(10, 5, 6), event(20, "sched_wakeup", tid=5)])
    change = '<stateChange><stateAttribute type="constant" value="a"/><stateValue type="eventField" value="{}"/></stateChange>'
    handlers = "".join(f'<eventHandler eventName="{name}">\n{change.format(field)}</eventHandler>\n' for name, field in [
        ("sched_switch", "next_tdi"), ("sched_wakeup", "HostID"), ("sched_wakeup_new", "tid"), ("unheard", "tid"), ("sched_swtich", "cpu"),
    ])
    transitions = '<state id="s"><transition event="sched_wakepu|none" target="s"/></state>'
    pattern = f'<pattern id="p"><patternHandler><fsm id="f" initial="s">{transitions}</fsm></patternHandler></pattern></tmfxml>'
    for text, told in [
        (provider(handlers), ["4: stateValue.value: there is no field 'next_tdi' in its events; did you mean 'next_tid'?"]),
        (provider(handlers.replace('"sched_switch"', '"sched_swich"', 1)), ["3: eventHandler.eventName: there is no event 'sched_swich' in the trace; did you mean 'sched_switch'?", "11: eventHandler.eventName: there is no event 'sched_swtich' in the trace; did you mean 'sched_switch'?"]),
        (provider("").replace("</tmfxml>", pattern), ["3: transition.event: there is no event 'sched_wakepu' in the trace; did you mean 'sched_wakeup'?"]),
    ]:
        (tmp_path / "own.xml").write_text(text)
        done = subprocess.run([krait, "intervals", trace, "-f", tmp_path / "own.xml"], capture_output=True, text=True, check=True)
        assert [line.split(".xml:")[1] for line in done.stderr.splitlines() if "there is no" in line] == told


VIEWS = """
<timeGraphView id="status"><head><analysis id="own"/><label value="Status"/></head>
  <definedValue name="busy" value="5" color="#118811"/>
  <entry path="Threads/*"><display type="constant" value="status"/></entry></timeGraphView>
<xyView id="counts"><head><analysis id="own"/></head>
  <entry path="Threads"><entry path="*"><entry path="count" displayType="delta"><display type="self"/></entry></entry></entry></xyView>
<timeGraphView id="other"><head><analysis id="elsewhere"/></head><entry path="*"><display type="self"/></entry></timeGraphView>
</tmfxml>"""


def test_views_are_lanes(krait, tmp_path, view):  # noqa: F811
    """Of the attributes that they show, in their order; what no view shows has no lane. They may be in a file of their own."""
    trace = kernel_made.write(tmp_path / "t", [event(0, "go", tid=1, n=5), event(10, "go", tid=2, n=6), event(30, "go", tid=1, n=6), event(40, "go", tid=2, n=5), event(60, "go", tid=1, n=7)], domain="ust")
    status, count, other = (
        f'<stateChange>{path}<stateValue {value}/></stateChange>'
        for path, value in (
            (PATH + '<stateAttribute type="constant" value="status"/>', 'type="eventField" value="n"'),
            (PATH + '<stateAttribute type="constant" value="count"/>', 'type="int" value="1" increment="true"'),
            ('<stateAttribute type="constant" value="last"/>', 'type="eventField" value="tid"'),
        )
    )
    text = provider(f'<eventHandler eventName="go">{status}{count}{other}</eventHandler>')
    own, apart, views = tmp_path / "own.xml", tmp_path / "apart.xml", tmp_path / "views.xml"
    own.write_text(text.replace("</tmfxml>", VIEWS))
    apart.write_text(text)
    views.write_text("<tmfxml>" + VIEWS)
    for files in (["-f", own], ["-f", apart, "-f", views]):
        with served(krait, trace, *files) as link:
            tracks = [(t["threadName"], t["name"], t["kind"]) for t in ask(link, "trace")["tracks"] if t["of"] == "lane"]
        assert tracks == [(title, f"own Threads/{tid}/{name}", kind) for title, name, kind in (("Status", "status", "states"), ("counts", "count", "counter")) for tid in (1, 2)]
    root, said = view(trace, "-f", own)
    found = lanes(root)
    shown = [[box[3][0] for box in boxes] for name, part in found.items() if name.startswith("Status") for boxes in part.values()]
    assert [[name for name in names if name in ("busy", "5", "6")] for names in shown if names] == [["busy", "6"], ["6", "busy"]]
    assert [re.sub(r".*\.xml:\d+: ", "", line) for line in said.splitlines() if ".xml:" in line] == [
        "<entry displayType=delta> is not supported; krait leaves it out",
        "<analysis that is in no file given, id=elsewhere> is not supported; krait leaves it out",
    ]


def test_the_curve_of_a_view_is_zero_where_the_attribute_has_no_number(krait, tmp_path):
    """As Trace Compass draws it: before its first value, after its last one, and while it is a text."""
    events = [event(5, "set", tid=1, n=3), event(10, "clear", tid=1, n=0), event(30, "set", tid=1, n=4), event(40, "name", tid=1, n=0), event(50, "set", tid=1, n=5), event(60, "clear", tid=1, n=0), event(90, "set", tid=2, n=1)]
    trace = kernel_made.write(tmp_path / "t", events, domain="ust")
    values = {"set": 'type="eventField" value="n"', "clear": 'type="null"', "name": 'type="string" value="much"'}
    text = provider("".join(f'<eventHandler eventName="{name}"><stateChange>{PATH}<stateValue {value}/></stateChange></eventHandler>' for name, value in values.items()))
    (tmp_path / "own.xml").write_text(text.replace("</tmfxml>", '<xyView id="v"><head><analysis id="own"/></head><entry path="Threads/1"><display type="self"/></entry></xyView></tmfxml>'))
    subprocess.run([krait, "export", trace, "--to", "chrome", "-f", tmp_path / "own.xml", "-o", tmp_path / "e.json"], check=True)
    curve = [(e["ts"], e["args"]["value"]) for e in json.loads((tmp_path / "e.json").read_text())["traceEvents"] if e["ph"] == "C"]
    assert curve == [(0, 3), (5, 0), (25, 4), (35, 0), (45, 5), (55, 0)]


@pytest.mark.parametrize(
    "text, why",
    [
        ("<tmfxml>", "own.xml:1: no element found"),
        ("", "own.xml:1: no element found"),
        ("<trace/>", "own.xml:1: <trace> is no data-driven analysis, which begins with <tmfxml>"),
        ("<tmfxml/>", "own.xml: it has no state provider or pattern that krait supports"),
        ('<tmfxml>\n<stateMachine/>\n</tmfxml>', "own.xml:2: <stateMachine> is not supported; krait leaves it out\nkrait analyses: "),
        ("<a>" * 1000, "elements are nested too deep"),
        (provider('<eventHandler eventName="x"><stateChange><stateAttribute type="location" value="l"/><stateValue type="int" value="1"/></stateChange></eventHandler>', '<location id="l"><stateAttribute type="location" value="l"/></location>'), "that stands for itself"),
        ('<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + "".join(f'<!ENTITY {b} "&{a};&{a};&{a};&{a};&{a};&{a};&{a};&{a};&{a};&{a};">' for a, b in zip("abcdefghi", "bcdefghij")) + ']><tmfxml a="&j;"/>', "own.xml:1: "),
    ],
    ids=range(8),
)
def test_what_is_no_analysis_is_refused(krait, tmp_path, text, why):
    (tmp_path / "own.xml").write_text(text)
    done = subprocess.run([krait, "analyses", tmp_path / "own.xml"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 1 and why in done.stderr


PATTERN = """<tmfxml><pattern id="requests" version="0"><patternHandler%s>
  <test id="same"><if><condition><stateValue type="query"><stateAttribute type="constant" value="#CurrentScenario"/><stateAttribute type="constant" value="id"/></stateValue>
    <stateValue type="eventField" value="id"/></condition></if></test>
  <test id="late"><if><condition><elapsedTime unit="us"><more since="open" value="50"/></elapsedTime></condition></if></test>
  <action id="begin">
    <stateChange><stateAttribute type="constant" value="#CurrentScenario"/><stateAttribute type="constant" value="id"/><stateValue type="eventField" value="id"/></stateChange>
    <stateChange><stateAttribute type="constant" value="Open"/><stateAttribute type="pool"/><stateValue type="eventField" value="id"/></stateChange>
    <stateChange><stateAttribute type="constant" value="Stack"/><stateValue type="script" value="s.substring(4)" stack="push"><stateValue id="s" type="eventName"/></stateValue></stateChange>
  </action>
  <action id="tell"><segment><segType><segName><stateValue type="eventField" value="how"/></segName></segType></segment>
    <stateChange><stateAttribute type="constant" value="Stack"/><stateValue type="null" stack="pop"/></stateChange></action>
  <action id="slow"><segment><segType segName="slow"/></segment></action>
  <fsm id="one"%s><state id="waits"><transition event="req_begin" target="open" action="begin"/></state>
    <state id="open"><transition event="req_end" cond="same:late" target="done" action="tell:slow"/><transition event="req_end" cond="same" target="done" action="tell"/></state>
    <final id="done"/></fsm>
</patternHandler></pattern></tmfxml>"""
REQUESTS = [("begin", 10, 1), ("begin", 20, 2), ("end", 40, 1), ("begin", 50, 3), ("end", 90, 2), ("end", 95, 3), ("end", 99, 9)]


@pytest.fixture
def requests(krait, tmp_path):
    """requests(text): the segments (name, begin, duration) and states by attribute, in us, and what was said."""

    def of(text):
        kernel_made.write(tmp_path / "trace", [event(us, f"req_{what}", 0, id=number, how="ok" if number % 2 else "odd") for what, us, number in REQUESTS])
        (tmp_path / "own.xml").write_text(text)
        listed = verb_json(krait, "intervals", tmp_path / "trace", "-f", tmp_path / "own.xml", "--list")["list"]
        rows = sorted((row["begin_ns"] // 1000 + 10, row["duration_ns"] // 1000, row["key"]) for row in listed)
        said = subprocess.run([krait, "analyses", tmp_path / "own.xml"], capture_output=True, text=True).stderr
        return [(key, begin, ns) for begin, ns, key in rows if " = " not in key], [(key, begin, ns) for begin, ns, key in rows if " = " in key], said

    return of


def test_a_pattern_tells_segments_and_states(requests):
    segments, states, said = requests(PATTERN % ("", ""))
    assert segments == [("ok", 10, 30), ("odd", 20, 70), ("slow", 20, 70), ("ok", 50, 45)] and said == ""
    assert {s for s in states if s[0].startswith("Open")} == {("Open/0 = 1", 10, 30), ("Open/1 = 2", 20, 70), ("Open/0 = 3", 50, 45)}
    assert ("Stack/2 = begin", 20, 20) in states  # a stack: its second place, from the second push to the first pop


CONTENT = """
<segContent><segField name="name" type="string" value="v"/>
  <segField name="how" type="string"><stateValue type="query"><stateAttribute type="constant" value="#CurrentScenario"/><stateAttribute type="constant" value="storedFields"/><stateAttribute type="constant" value="as"/></stateValue></segField>
  <segField name="none" type="string"><stateValue type="eventField" value="nowhere"/></segField>
  <segField name="a" type="self" value="1"/><segField type="int" value="1"/><segField name="a,b" type="int" value="1"/>
  <segField name="b" type="int"/></segContent>"""


def test_a_segments_content_is_columns(krait, tmp_path, requests):
    """What the event or the scenario lacks is not there; fields of the event are stored before the next transition."""
    text = (PATTERN % ("", "")).replace('<segType segName="slow"/>', f'<segType segName="slow"/>{CONTENT}')
    text = text.replace('action="begin"', 'action="begin" saveStoredFields="true"').replace("</patternHandler>", "</patternHandler>\n<storedField id='how' alias='as'/><storedField id='far'/><storedField/>").replace("<patternHandler>", '<head><segField name="x,y"/></head><patternHandler>', 1)
    segments, _, said = requests(text)
    assert segments == [("ok", 10, 30), ("odd", 20, 70), ("slow", 20, 70), ("ok", 50, 45)]
    words = [krait, "intervals", tmp_path / "trace", "-f", tmp_path / "own.xml", "--list", "--only", "requests"]
    listed = verb_json(*words)["list"]
    found = {row["key"]: {key: row[key] for key in row if key.startswith("field.")} for row in listed if row["name"] == "requests"}
    assert found == {"slow": {"field.name": "v", "field.how": "odd", "field.none": None}, **dict.fromkeys(("ok", "odd"), dict.fromkeys(("field.name", "field.how", "field.none")))}
    head, *rows = subprocess.run([*words, "--csv", "--sort", "field.how"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert head.endswith("end_tid,field.name,field.how,field.none") and [row for row in rows if row.endswith(",v,odd,")]
    assert [line.split(".xml:")[1].split(" is not")[0] for line in said.splitlines()] == ["22: <storedField without an id>", '16: <segField type="self">', "16: <segField without a name for a column>", "16: <segField without a name for a column>", "17: <segField without a value>"]
    many = "".join(f'<segField name="f{n}" type="int" value="{n}"/>' for n in range(200))
    requests(text.replace("<segContent>", f"<segContent>{many}"))
    assert {f"field.f{n}": str(n) for n in range(200)}.items() <= next(row for row in verb_json(*words)["list"] if row["key"] == "slow").items()
    cleared = text.replace('saveStoredFields="true"', 'saveStoredFields="true" clearStoredFields="TRUE"')
    requests(cleared)
    assert [row["field.how"] for row in verb_json(*words)["list"] if row["key"] == "slow"] == [None]


def test_changes_come_in_the_future(tmp_path, states):
    """Each before the first event that is not earlier, those of one time in order; the past changes nothing, but for stacks."""

    def later(name, value, due):
        return f'<stateChange><stateAttribute type="constant" value="{name}"/><stateValue {value}/><futureTime type="eventField" value="{due}"/></stateChange>'

    events = [event(0, "go", n=1, due=30_000), event(10, "go", n=2, due=20_000), event(20, "go", n=3, due=30_000), event(40, "go", n=4, due=35_000), event(50, "go", n=5, due=90_000), event(70, "end"), event(75, "unread")]
    never = later("open", 'type="eventField" value="n"', "missing") + later("open", 'type="null"', "due").replace('type="eventField" value="due"', f'type="long" value="{2**63 - 1}"')
    changes = never + later("set", 'type="eventField" value="n"', "due") + later("same", 'type="eventField" value="n"', "missing") + later("stack", 'type="eventField" value="n" stack="push"', "due")
    script = '<stateChange><stateAttribute type="constant" value="sum"/><stateValue type="eventName"/><futureTime type="script" value="now - 4"><stateValue id="now" type="eventField" value="timestamp"/></futureTime></stateChange>'
    script += script.replace('"sum"', '"plus"').replace("now - 4", "now + 4000 ;").replace('type="eventName"', 'type="eventField" value="n"')
    peek = '<stateChange><stateAttribute type="constant" value="top"/><stateValue type="query" stack="peek"><stateAttribute type="constant" value="stack"/></stateValue></stateChange>'
    empties = later("stack", 'type="null" stack="popAll"', "due").replace('type="eventField" value="due"', 'type="int" value="80000"')
    trace = kernel_made.write(tmp_path / "t", events, domain="ust")
    xml = provider(f'<eventHandler eventName="go">{changes}{script}{peek}</eventHandler><eventHandler eventName="end">{empties}</eventHandler>')
    found, notes = states(trace, xml)
    assert notes == "" and states(trace, xml, "--until", "1h")[0] == found
    assert sorted(found["set"]) == [("1", 30, 0), ("2", 20, 10), ("3", 30, 45)]  # two are due at 30: the older one first. At the trace's end, the last
    assert found["open"] == [("1", 0, 10), ("2", 10, 10), ("3", 20, 20), ("4", 40, 10), ("5", 50, 25)]
    assert found["same"] == [("1", 0, 10), ("2", 10, 10), ("3", 20, 20), ("4", 40, 10)]
    assert found["plus"] == [("1", 4, 10), ("2", 14, 10), ("3", 24, 20), ("4", 44, 10)] and "sum" not in found
    assert found["top"] == [("2", 20, 20)]  # peek takes nothing away
    assert found["stack/1"] == [("2", 20, 55)] and found["stack/4"] == [("4", 40, 35)]


def test_call_stacks_are_calls_and_lanes(krait, tmp_path, view):  # noqa: F811
    """A provider's within, or one by its name; each thread's calls with their depth, and a row for each depth."""
    push, pop = (f'<stateChange>{PATH}<stateAttribute type="constant" value="CallStack"/><stateValue {how}/></stateChange>' for how in ('type="eventField" value="f" stack="push"', 'type="null" stack="pop"'))
    own = provider(f'<eventHandler eventName="in">{push}</eventHandler><eventHandler eventName="out">{pop}</eventHandler>')
    group = '<callstackGroup name="Stacks"><level path="Threads"/><level path="*"/><thread level="1"/></callstackGroup>'
    inner = own[own.index("<stateProvider") : own.index("</tmfxml>")]
    calls = [(0, "in", 1, "a"), (10, "in", 2, "a"), (20, "in", 1, "a"), (30, "in", 1, "b"), (40, "out", 1, "-"), (40, "in", 1, "b"), (50, "out", 1, "-"), (60, "out", 1, "-"), (70, "out", 2, "-")]
    trace = kernel_made.write(tmp_path / "t", [event(us, name, tid=tid, f=f) for us, name, tid, f in calls], domain="ust")
    for text in (own.replace("</tmfxml>", f'<callstack id="calls">{group}<analysis id="own"/></callstack></tmfxml>'), f'<tmfxml><callstack id="calls">{group}{inner}</callstack></tmfxml>'):
        (tmp_path / "own.xml").write_text(text)
        listed = verb_json(krait, "intervals", trace, "-f", tmp_path / "own.xml", "--list")["list"]
        assert [(row["begin_ns"] // 1000, row["duration_ns"] // 1000, row["key"], row["field.stack"], row["field.depth"]) for row in listed if row["name"] == "calls"] == [
            (10, 60, "a", "Threads/2", "1"), (20, 40, "a", "Threads/1", "2"), (30, 10, "b", "Threads/1", "3"), (40, 10, "b", "Threads/1", "3"),
        ]
        rows = verb_json(krait, "intervals", trace, "-f", tmp_path / "own.xml", "--only", "calls")["rows"]
        assert [(row["key"], row["intervals"], row["total_ns"]) for row in rows if row["key"]] == [("a", 2, 100_000), ("b", 2, 20_000)]
        with served(krait, trace, "-f", tmp_path / "own.xml") as link:
            tracks = [(t["threadName"], t["name"]) for t in ask(link, "trace")["tracks"] if t["of"] == "lane"]
        assert tracks == [("Stacks", f"own Threads/{place}") for place in ("1/CallStack/1", "1/CallStack/2", "1/CallStack/3", "2/CallStack/1")]
    one = group.replace('"Stacks"', '"One"').replace('path="*"', 'path="2"')
    (tmp_path / "own.xml").write_text(own.replace("</tmfxml>", "".join(f'<callstack id="{name}">{which}<analysis id="own"/></callstack>' for name, which in (("all", group), ("one", one))) + "</tmfxml>"))
    rows = verb_json(krait, "intervals", trace, "-f", tmp_path / "own.xml", "--only", "all", "--only", "one")["rows"]
    assert sorted((row["name"], row["key"], row["intervals"]) for row in rows if row["key"]) == [("all", "a", 2), ("all", "b", 2), ("one", "a", 1)]
    for text, why in [(f'<callstack id="c">{group}<analysis id="none"/></callstack>', "<callstack without an analysis>"), (f'<callstack id="c">{inner}</callstack>', "<callstack without a group>"), (f'<callstack id="c">{group}{group}{inner}</callstack>', "<callstackGroup that is not the first>")]:
        (tmp_path / "own.xml").write_text(f"<tmfxml>{text}</tmfxml>")
        done = subprocess.run([krait, "analyses", tmp_path / "own.xml"], capture_output=True, text=True)
        assert why in done.stderr


def test_what_a_pattern_names_has_to_be_there(requests):
    _, _, said = requests(PATTERN.replace('cond="same:late"', 'cond="same:lat"') % (' initial="one"', ' multiple="true"'))
    assert "<transition cond=\"lat\", which is not there,> is not supported" in said
    segments, _, _ = requests(PATTERN % ("", ' multiple="false"'))
    assert segments == [("ok", 10, 30)]


# What test_trace_compass.py asks of Trace Compass's own files is asked of these too, which need no copy of its sources.
MACHINES = """<tmfxml><pattern id="machines" version="0"><patternHandler>
  <action id="eaten"><stateChange><stateAttribute type="constant" value="eaten"/><stateValue type="int" value="1" increment="true"/></stateChange></action>
  <action id="shared"><stateChange><stateAttribute type="constant" value="shared"/><stateValue type="int" value="1" increment="true"/></stateChange></action>
  <action id="push"><stateChange><stateAttribute type="constant" value="stack"/><stateValue type="eventField" value="n" stack="push"/></stateChange></action>
  <action id="clear"><stateChange><stateAttribute type="constant" value="stack"/><stateValue type="null" stack="popAll"/></stateChange></action>
  <action id="pi"><stateChange><stateAttribute type="constant" value="pi"/><stateValue type="double" value="3.141592"/></stateChange></action>
  <action id="tell"><segment><segType segName="told"/><segTime><begin type="eventField" value="from"/><end type="eventField" value="until"/></segTime></segment></action>
  <fsm id="eats"><state id="waits"><transition event="go" target="open"/></state><state id="open"><transition event="tick" target="open" action="eaten"/></state></fsm>
  <fsm id="shares" consuming="false"><state id="waits"><transition event="go" target="open"/></state><state id="open"><transition event="tick" target="open" action="shared"/></state></fsm>
  <fsm id="pushes" multiple="false" initial="all"><state id="all"><transition event="go" target="all" action="push"/><transition event="stop" target="all" action="clear:pi"/></state></fsm>
  <fsm id="tells" multiple="false"><initialState id="first"><transition event="say" target="done" action="tell"/></initialState><final id="done"/></fsm>
</patternHandler></pattern></tmfxml>"""


def test_machines_share_events_stack_values_and_tell_times(tmp_path, krait):
    events = [event(us, "go", n=us) for us in (0, 10, 20)] + [event(30, "tick"), event(50, "stop"), event(60, "say", **{"from": 5000, "until": 25000})]
    trace = kernel_made.write(tmp_path / "t", events, domain="ust")
    (tmp_path / "own.xml").write_text(MACHINES)
    listed = verb_json(krait, "intervals", trace, "-f", tmp_path / "own.xml", "--list")["list"]
    rows = verb_json(krait, "intervals", trace, "-f", tmp_path / "own.xml")["rows"]
    last = dict(row["key"].split(" = ") for row in rows if row["no_stop"])
    assert last == {"eaten": "1", "shared": "3", "pi": "3.141592"}  # the tick of three scenarios; the stack is empty
    found = {(row["key"], row["begin_ns"], row["duration_ns"]) for row in listed}
    assert ("told", 5000, 20_000) in found and {("stack/1 = 0", 0, 50_000), ("stack/3 = 20", 20_000, 30_000)} <= found
