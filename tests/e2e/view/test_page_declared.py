# SPDX-License-Identifier: Apache-2.0
"""Lanes that the reader of the page of `krait view` declares: the dialog, its preview, and what is kept."""

import json
import re
import subprocess

import pytest
from browser import Page, ask, served
from intervals_made import declare, marks  # noqa: F401  (declare: a fixture)
from kernel_made import begins, ends, switch, wake
from shop import SHOP, TOLD

ORDER = {"start": "take (?P<key>\\d+)", "stop": "send (?P<key>\\d+)"}


@pytest.fixture
def shop(synth):
    return synth(marks(*TOLD))


@pytest.fixture
def open_page(krait, chromium, shop):
    """open_page(hash, options..., of=shop): the shop's page; what went wrong on it is none, but for definitions that are wrong."""
    opened = []

    def show(hash="", *options, of=shop):
        server = served(krait, of, *options)
        page = Page(chromium.new_page(viewport={"width": 1280, "height": 800}))
        opened.append((server, page))
        page.page.goto(server.__enter__() + hash)
        return page.wait()

    yield show
    for server, page in opened:
        page.page.close()
        server.__exit__(None, None, None)
        assert [error for error in page.errors if "400" not in error] == []


def fill(page, **values):
    for name, value in values.items():
        page.page.fill(f"#maker-{name}", value)


def previewed(page, text):
    """Waits until the preview begins like this; its statistics, and its last table."""
    page.page.locator(".maker-sum", has_text=text).wait_for()
    return page.page.locator(".maker-found dd").all_inner_texts(), [row.split("\t") for row in page.page.locator(".maker-found table").last.inner_text().split("\n")]


def names(page):
    return page.page.locator(".lane .title").all_inner_texts()


def kept(shop):
    path = shop / ".krait-lanes.toml"
    return path.read_text() if path.exists() else None


def add(page):
    page.page.keyboard.press("Enter")
    page.page.locator("dialog.maker[open]").wait_for(state="detached")
    return page.wait()


@pytest.fixture
def recursion(synth):
    calls = "0 call 1\n1us call 2\n2us call 2\n3us return\n9us return\n10us call 2\n12us return\n20us return\n"
    return synth("process 4711 python3\nexit 0 0\ncode 1 python app main app.py 1\ncode 2 python app f app.py 9\nthread 4711 MainThread\n" + calls)


def test_a_lane_of_calls_may_be_of_the_outermost_alone(open_page, recursion):
    page = open_page(of=recursion)
    page.press("n")
    page.page.locator("#maker-source-calls").check()
    fill(page, call="app.f", name="outer")
    previewed(page, "3 intervals")
    page.page.select_option("#maker-outermost", "true")
    previewed(page, "2 intervals")
    page.page.locator("#maker-name").focus()
    add(page)
    assert kept(recursion) == "[interval.outer]\ncall = 'app.f'\noutermost = true\n"
    page.press("n")
    page.page.get_by_role("button", name="Change the lane outer").click()
    assert page.page.input_value("#maker-outermost") == "true"


def test_a_lane_is_made_changed_and_removed_with_the_keyboard(open_page, shop, krait):
    page = open_page()
    page.press("n")
    page.page.keyboard.type(ORDER["start"])
    page.page.keyboard.press("Tab")
    page.page.keyboard.type(ORDER["stop"])
    statistics, first = previewed(page, f"3 intervals in {len(TOLD)} messages")
    assert statistics == ["3", "600.0 us", "200.0 us", "100.0 us", "200.0 us", "300.0 us", "300.0 us", "300.0 us", "100.0 us"]
    assert first[0] == ["begin", "duration", "key"] and [row[1:] for row in first[1:]] == [["200.0 us", "1"], ["300.0 us", "2"], ["100.0 us", "3"]]
    add(page)
    assert names(page)[:2] == ["Declared lanes", "interval"]
    assert kept(shop) == "[interval.interval]\nstart = 'take (?P<key>\\d+)'\nstop = 'send (?P<key>\\d+)'\n"
    page.press("n")  # a state beside it
    page.page.locator("#maker-kind-interval").focus()
    page.page.keyboard.press("ArrowRight")
    fill(page, message="oven is (\\w+)", name="the oven")
    previewed(page, "1 stay in 12 messages; 2 without a stop")
    page.page.locator("#maker-name").focus()
    add(page)
    assert names(page)[:4] == ["Declared lanes", "interval", "the oven T0", "the oven T1"]
    found = json.loads(subprocess.run([krait, "intervals", shop, "-f", shop / ".krait-lanes.toml", "--json"], check=True, capture_output=True).stdout)
    assert [(row["name"], row["intervals"]) for row in found["rows"]][0] == ("interval", 3)

    again = open_page()  # by another server
    assert names(again)[:4] == ["Declared lanes", "interval", "the oven T0", "the oven T1"]
    again.press("n")
    again.page.get_by_role("button", name="Change the lane interval").click()
    fill(again, name="sale", stop="the end", key="")
    previewed(again, "1 interval in 12 messages; 2 without a stop")
    fill(again, start="take \\d", stop="send \\d")
    again.page.locator(".maker-more summary").press("Enter")
    again.page.select_option("#maker-pairing", "nested")
    previewed(again, "3 intervals")
    again.page.locator("#maker-name").focus()
    add(again)
    assert names(again)[1] == "sale" and "pairing = 'nested'" in kept(shop) and "interval.interval" not in kept(shop)
    again.press("n")
    for lane in ("sale", "the oven"):
        again.page.get_by_role("button", name=f"Remove the lane {lane}").press("Enter")
        again.page.get_by_role("button", name=f"Remove the lane {lane}").wait_for(state="detached")
    again.page.keyboard.press("Escape")
    again.wait()
    assert "Declared lanes" not in names(again) and kept(shop) is None


def test_what_is_wrong_is_said_at_its_field(open_page, shop):
    page = open_page()
    page.page.get_by_role("button", name="New lane").click()
    errors = page.page.locator("dialog.maker .error:not(:empty)")
    page.page.keyboard.press("Enter")
    assert errors.all_inner_texts() == ["A pattern is needed."]
    assert page.page.evaluate("() => document.activeElement.id") == "maker-start"
    fill(page, start="ta(ke", stop="send")
    page.page.locator("#maker-start[aria-invalid]").wait_for()
    (said,) = errors.all_inner_texts()
    assert said.startswith("no regular expression:") and "byte 6" in said
    described = page.page.locator("#maker-start").get_attribute("aria-describedby").split()
    assert said in [page.text(f"#{each}") for each in described]
    page.page.locator("#maker-kind-signal").check()
    fill(page, message="wait")
    page.page.locator("#maker-message[aria-invalid]").wait_for()
    assert "round brackets" in errors.all_inner_texts()[0]
    fill(page, message="([\\d.]+) wait", name="")
    statistics, first = previewed(page, "2 values")
    assert statistics[:4] == ["2", "3.5", "1.75", "1.5"] and [row[1] for row in first[1:]] == ["2", "1.5"]
    page.page.keyboard.press("Enter")
    assert errors.all_inner_texts() == ["A name is needed."] and kept(shop) is None
    page.page.keyboard.press("Escape")
    page.page.locator("dialog.maker[open]").wait_for(state="detached")
    page.press("Control+k")
    page.page.keyboard.type("make a lane")
    page.page.locator(".chooser li").first.wait_for()
    page.press("Enter")
    assert page.text("#maker-title") == "New lane" and page.page.input_value("#maker-start") == ""
    page.page.keyboard.press("Escape")


def test_a_range_from_one_message_to_another_fills_the_patterns_in(open_page, shop, krait):
    def time_of(text):
        (event,) = (event for event in ask(link, "events", limit=1000)["events"] if text in json.dumps(event["payload"]))
        return int(event["time_ns"]) - int(ask(link, "trace")["origin"])

    with served(krait, shop) as link:
        begin, until = time_of("take 1"), time_of("send 1")
    (shop / ".krait-lanes.toml").write_text("# mine\n[interval.interval]\nstart = { event = 'x' }\nstop = 'y'\n")
    page = open_page(f"#s={begin},{until - begin}")
    page.press("n")
    page.page.wait_for_function("() => document.querySelector('#maker-stop').value")
    assert page.page.input_value("#maker-start") == ORDER["start"] and page.page.input_value("#maker-stop") == ORDER["stop"]
    assert page.page.input_value("#maker-name") == "interval-2" and page.text(".maker-kept").split("\n")[1].split("\t")[:3] == ["interval", "interval", "by hand"]
    fill(page, name="interval")
    page.page.keyboard.press("Enter")
    page.page.locator("#maker-name[aria-invalid]").wait_for()
    fill(page, name='an "order"')
    add(page)
    assert kept(shop).startswith("# mine\n[interval.interval]\nstart = { event = 'x' }\n") and "[interval.'an \"order\"']" in kept(shop)
    assert 'an "order"' in names(page)


def test_a_lane_of_a_function_that_is_not_there_hides_no_other(open_page, shop):
    (shop / ".krait-lanes.toml").write_text("[interval.old]\ncall = 'nobody.knows'\n")
    page = open_page()
    page.press("n")
    fill(page, **ORDER, name="sale")
    previewed(page, "3 intervals")
    page.page.locator("#maker-name").focus()
    add(page)
    assert names(page)[:2] == ["Declared lanes", "sale"] and page.text(".index.why").startswith("'old' is left out: no function 'nobody.knows' in the trace")


def test_a_chosen_mark_fills_its_event_and_a_pattern_in(open_page):
    page = open_page("#p=marks")
    page.page.locator(".table-rows .row", has_text="oven is hot").click()
    page.page.wait_for_function("() => krait.context.store.view.looks.event")
    page.press("n")
    page.page.wait_for_function("() => document.querySelector('#maker-event').value")
    assert [page.page.input_value(f"#maker-{key}") for key in ("event", "start", "message")] == ["user:mark", "oven is hot", "oven is hot"]
    assert page.page.is_checked("#maker-source-messages") and page.page.evaluate("() => document.activeElement.id") == "maker-stop"


def test_a_panel_has_the_numbers_of_krait_intervals(open_page, shop, krait, declare):  # noqa: F811
    def printed(*options):
        return json.loads(subprocess.run([krait, "intervals", shop, "-f", own, "--json", *options], check=True, capture_output=True).stdout)

    own = declare(SHOP)
    page = open_page("#p=intervals", "-f", own)
    titles = page.page.locator(".table-head .cell").all_inner_texts()
    shown = {(row[0], row[1]): dict(zip(titles, row)) for row in page.rows()}
    names = ["count", "total", "mean", "min", "median", "p90", "p99", "max", "std dev"]
    assert titles == ["name", "key", *names, "no stop", "last", "per second"]  # columns in which no row has anything are left out
    for row in printed()["rows"]:
        times = [f"{row[f'{name}_ns'] / 1000:.1f} us" if row["intervals"] else "-" for name in ("total", "mean", "min", "median", "p90", "p99", "max")]
        deviation = f"{row['deviation_ns'] / 1000:.1f} us" if row["intervals"] > 1 else "-"
        found = shown[row["name"], row.get("key") or "-"]
        assert [found[name] for name in names] == [str(row["intervals"]), *times, deviation] and row["no_key"] == row["no_start"] == 0
        assert [found["no stop"], found["last"]] == [str(row["no_stop"] or "-"), "-"]
    (signal,) = printed()["signals"]
    waiting = shown["waiting", "-"]
    assert [waiting[name] for name in names[:4]] == ["2", "3.5", "1.75", "1.5"] and (waiting["last"], waiting["per second"]) == ("1.5", f"{signal['per_s']:.6g}")
    label = page.page.locator(".over .scatter:visible")
    assert "order: 3 intervals" in label.get_attribute("aria-label")
    assert page.page.locator(".bars").get_attribute("aria-label") == "Histogram of durations from 98.30 us to 327.7 us"
    page.page.locator(".row", has_text="oven").first.click()
    page.press("Shift")
    assert "oven: 1 stay" in label.get_attribute("aria-label") and page.text(".transitions tbody").split("\t") == ["1", "100.0%", "hot", "warm"]
    page.page.locator(".row", has_text="waiting").click()
    page.press("Shift")
    assert "values of waiting" in label.get_attribute("aria-label") and page.page.locator(".bars:visible").count() == 0
    assert "declared:waiting" in page.address()

    found = printed("--list", "--only", "order")["list"]
    (row,) = printed("--from", f"{(found[2]['begin_ns'] - 1000) / 1e9:.9f}", "--only", "order")["rows"]
    zero = page.page.evaluate("async () => (await (await fetch('api/trace')).json()).origin")
    begin = printed()["begin_ns"] + found[2]["begin_ns"] - 1000 - int(zero)
    page.page.goto(page.page.url.split("#")[0] + f"#s={begin},500000;p=intervals")
    page.pause()
    assert {r[0]: r[2:4] for r in page.rows()}["order"] == [str(row["intervals"]), f"{row['total_ns'] / 1000:.1f} us"] == ["1", "100.0 us"]


def test_lanes_with_long_names_can_be_told_apart(krait, chromium, shop, declare):
    rules = "[state.temperature-of-the-first-oven-in-the-kitchen]\nmessage = 'oven is (\\w+)'\n"
    server = served(krait, shop, "-f", declare(rules))
    page = Page(chromium.new_page(viewport={"width": 1280, "height": 800}))
    with server as link:
        page.page.goto(link)
        page.wait()
        first, second = page.page.locator(".lane:not(.head)").filter(has_text="temp").all()
        shown = [lane.locator(".title").inner_text() for lane in (first, second)]
        assert [text[:4] for text in shown] == ["temp"] * 2 and shown[0].endswith("T0") and shown[1].endswith("T1")
        for lane, key in ((first, "T0"), (second, "T1")):
            whole = f"temperature-of-the-first-oven-in-the-kitchen {key}"
            assert lane.get_attribute("aria-label") == whole and lane.get_attribute("title").startswith(whole)
            assert lane.locator(".title").evaluate("(title) => title.scrollWidth <= title.clientWidth")  # not cut again
    page.page.close()
    assert page.errors == []


# -- lanes of calls, spans, events and their fields --

CALLS = """\
process 4711 python3
exit 0 0
code 1 python app main app.py 1
code 2 python app Cart.add app.py 9
code 3 name - serve - 0
thread 4711 MainThread
0 call 1
10us call 2
15us call 2
20us return
40us return
42us spanbegin 1 3 0 {"order":"a"}
50us call 2
60us spanend 1
62us spanbegin 2 3 0 {"order":"b"}
80us return
82us spanend 2
90us return
"""
KERNEL = [
    switch(1, 0, 4711), begins(11, "read", fd=3), ends(14, "read", 7), begins(20, "read", fd=4), ends(30, "read", 9),
    wake(31, 102, prio=5), wake(33, 103, prio=200), switch(40, 4711, 102), switch(44, 102, 103), switch(60, 103, 4711),
]  # fmt: skip


@pytest.fixture
def app(both):
    return both(CALLS, KERNEL)


@pytest.fixture
def open_app(krait, chromium, app):
    with served(krait, app) as link:
        page = Page(chromium.new_page(viewport={"width": 1280, "height": 800}))

        def show(hash=""):
            page.page.goto("about:blank")
            page.page.goto(link + hash)
            return page.wait(), link

        yield show
        page.page.close()
    assert [error for error in page.errors if "400" not in error] == []


def choose(page, kind, source, **values):
    page.page.check(f"#maker-kind-{kind}")
    page.page.check(f"#maker-source-{source}")
    if page.page.locator(".maker-more:not([open]) summary:visible").count():
        page.page.locator(".maker-more summary").click()
    fill(page, **values)


def seen(page, text):
    """The count and the total, or the states with their times, of the preview."""
    statistics, last = previewed(page, text)
    states = page.page.locator('.maker-found table[aria-label="Time in each state"] tbody tr').all_inner_texts()
    return [tuple(row.split("\t")[:3]) for row in states] or statistics[:2]


# What the dialog is given; what its preview begins with and has; what stands in the file.
MADE = [
    (("interval", "calls", {"call": "Cart.add"}), "3 intervals", ["3", "65.00 us"], "[interval.'Cart.add']\ncall = 'Cart.add'\n"),
    (("interval", "spans", {"span": "serve", "key": "order", "name": "serving"}), "2 intervals", ["1", "18.00 us"], "[interval.serving]\nspan = 'serve'\nkey = 'order'\n"),
    (("interval", "spans", {"span": "read", "key": "", "name": "reading"}), "2 intervals", ["2", "13.00 us"], "[interval.reading]\nspan = 'read'\n"),
    (
        ("interval", "events", {"event": "sched_wakeup", "where": "prio < 100", "stopEvent": "sched_switch", "stopWhere": "next_tid != 4711", "key": "tid", "stopKey": "next_tid", "by": "tid", "name": "wakeup"}),
        "1 interval; 1 without a start", ["1", "9.000 us"],
        "[interval.wakeup]\nstart = { event = 'sched_wakeup', where = { prio = '< 100' } }\nstop = { event = 'sched_switch', where = { next_tid = '!= 4711' }, key = 'next_tid' }\nkey = 'tid'\nby = 'tid'\n",
    ),
    (
        ("state", "events", {"event": "sched_switch", "where": "next_tid != 0", "state": "{next_comm}", "key": "$cpu", "name": "who"}),
        "3 stays; 1 without a stop", [("t4711", "1", "39.00 us"), ("t102", "1", "4.000 us"), ("t103", "1", "16.00 us")],
        "[state.who]\nevent = 'sched_switch'\nwhere = { next_tid = '!= 0' }\nstate = '{next_comm}'\nkey = '$cpu'\n",
    ),
    (("signal", "events", {"event": "syscall_exit_*", "where": "", "value": "ret", "key": "", "name": "bytes"}), "2 values", ["2", "16"], "[signal.bytes]\nevent = 'syscall_exit_*'\nvalue = 'ret'\n"),
]  # fmt: skip


def numbers(rows):
    return [[row["name"], row["key"], row["count"], row["total"]] for row in rows]


def test_lanes_of_calls_spans_and_events_have_the_numbers_of_krait_intervals(open_app, app, krait):
    page, link = open_app()
    for of, text, shown, _ in MADE:
        page.press("n")
        choose(page, of[0], of[1], **of[2])
        assert seen(page, text) == shown
        page.page.locator("#maker-name").focus()
        add(page)
    assert kept(app) == "\n".join(lines for *_, lines in MADE)
    assert [name for name in names(page) if name in ("Cart.add", "serving", "reading", "wakeup", "who", "bytes")] == ["Cart.add", "serving", "reading", "wakeup", "who", "bytes"]

    found = json.loads(subprocess.run([krait, "intervals", app, "-f", app / ".krait-lanes.toml", "--json"], check=True, capture_output=True).stdout)
    printed = [[row["name"], row.get("key"), row["intervals"], row["total_ns"]] for row in found["rows"]] + [[row["name"], row.get("key"), row["values"], row["total"]] for row in found["signals"]]
    drawn = [{"name": rule["name"], **row} for rule in ask(link, "intervals")["rules"] for row in rule["rows"]]
    assert sorted(map(str, numbers(drawn))) == sorted(map(str, printed)) and len(printed) == 10  # of wakeup and its key, too

    page.press("n")  # and each is read back into the form
    for kind, source, values in (of for of, *_ in MADE):
        name = values.get("name", values.get("call"))
        page.page.get_by_role("button", name=f"Change the lane {name}").click()
        assert page.page.is_checked(f"#maker-kind-{kind}") and page.page.is_checked(f"#maker-source-{source}")
        assert {key: page.page.input_value(f"#maker-{key}") for key in values} == values and page.page.input_value("#maker-name") == name
    page.page.locator("#maker-name").focus()
    add(page)
    assert kept(app) == "\n".join(lines for *_, lines in MADE)


def test_names_are_suggested_and_what_is_wrong_is_said(open_app, app):
    def suggested(of):
        return page.page.eval_on_selector_all(f"#maker-known-{of} option", "all => all.map((option) => option.value)")

    page, _ = open_app()
    page.press("n")
    page.page.locator("#maker-source-messages").focus()
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("Tab")
    page.page.keyboard.type("cart")
    page.page.locator('#maker-known-calls option[value="app.Cart.add"]').wait_for(state="attached")
    assert suggested("calls") == ["app.Cart.add"]
    page.page.locator("#maker-call[aria-invalid]").wait_for()  # a name that is typed is taken as it is
    assert page.text("#maker-call-error") == "no function 'cart' in the trace"
    page.page.keyboard.press("Enter")
    page.page.wait_for_function("() => !krait.context.api.busy")
    assert page.text("#maker-call-error") == "no function 'cart' in the trace" and page.page.is_visible("dialog.maker") and kept(app) is None
    fill(page, call="Cart.ad")
    page.page.wait_for_function("""() => document.querySelector("#maker-call-error").textContent === "no function 'Cart.ad' in the trace; did you mean 'Cart.add'?" """)
    fill(page, call="Cart.add")
    previewed(page, "3 intervals")
    assert page.text("#maker-call-error") == "" and page.page.input_value("#maker-name") == "Cart.add"
    choose(page, "interval", "spans")
    page.page.locator('#maker-known-spans option[value="read"]').wait_for(state="attached")
    assert suggested("spans") == ["read", "serve"]
    choose(page, "interval", "events", event="sched_wakeup", stopEvent="sched_switch", stopWhere="next_tid <")
    page.page.locator("#maker-stopWhere[aria-invalid]").wait_for()
    assert "prio < 100" in page.text("#maker-stopWhere-error")
    assert page.text("#maker-event-hint") == "Its fields: tid, prio" and {"sched_switch", "span:begin", "syscall_exit_read"} <= set(suggested("events"))
    assert {"prio", "next_tid", "$cpu"} <= set(suggested("fields")) and not {"python:call", "code:define"} & set(suggested("events"))
    fill(page, stopWhere="", stopKey="next_tid")
    page.page.locator("#maker-key[aria-invalid]").wait_for()
    choose(page, "state", "events", state="{next_comm")
    page.page.locator("#maker-state[aria-invalid]").wait_for()
    assert "not closed" in page.text("#maker-state-error")
    choose(page, "signal", "events", value="")
    page.page.locator("#maker-name").focus()
    page.page.keyboard.press("Enter")
    assert page.text("#maker-value-error") == "A field is needed." and page.page.evaluate("() => document.activeElement.id") == "maker-value"
    assert kept(app) is None


def test_a_double_click_saves_a_lane_once(open_app, app):
    page, _ = open_app()
    page.press("n")
    choose(page, "interval", "calls", call="Cart.add")
    previewed(page, "3 intervals")
    button, asks, held, saved = page.page.locator("dialog.maker button.primary"), re.compile(r"preview\?limit=0$"), [], []
    page.page.route(asks, lambda route: held.append(route))
    page.page.on("request", lambda request: saved.append(request.url) if request.method == "PUT" else None)
    with page.page.expect_request(asks):
        button.evaluate("button => { button.click(); button.click(); }")
    assert button.is_disabled()
    for route in held:
        route.continue_()
    page.page.locator("dialog.maker[open]").wait_for(state="detached")
    page.wait()
    assert len(held) == len(saved) == 1 and button.is_enabled() and "Cart.add" in kept(app)
    page.press("n")
    remove = page.page.locator("dialog.maker td button", has_text="Remove")
    remove.evaluate("button => { button.click(); button.click(); }")
    remove.wait_for(state="detached")
    page.wait()
    assert len(saved) == 2


def test_what_is_selected_fills_the_form(open_app):
    page, link = open_app()
    tracks = {(track["kind"], track["name"]): track["id"] for track in ask(link, "trace")["tracks"] if track["of"] == "thread" and track["number"] == 4711}
    calls, read = next(id for (kind, _), id in tracks.items() if kind == "calls"), tracks["slices", "system calls"]
    for track, depth, at, source, key, value in [(calls, 2, 16_000, "calls", "call", "app.Cart.add"), (read, 0, 12_000, "spans", "span", "read")]:
        page, _ = open_app(f"#c={track},{depth},{at}")
        page.press("n")
        page.page.wait_for_function("(id) => document.querySelector(id).checked", arg=f"#maker-source-{source}")
        assert page.page.input_value(f"#maker-{key}") == page.page.input_value("#maker-name") == value
        page.page.keyboard.press("Escape")
    page, _ = open_app("#p=events")
    page.page.locator(".events .row", has_text="sched_wakeup").first.click()
    page.press("n")
    page.page.wait_for_function("() => document.querySelector('#maker-event').value")
    assert page.page.input_value("#maker-event") == "sched_wakeup" and page.page.is_checked("#maker-source-events")
    assert page.page.evaluate("() => document.activeElement.id") == "maker-stopEvent"
