# SPDX-License-Identifier: Apache-2.0
"""Declared analyses that the page of `krait view` makes: what they would find, and where they are kept."""

import json
import os
import subprocess
import time

import pytest
from intervals_made import marks
from served import Server
from shop import SHOP, TOLD


@pytest.fixture
def serve(krait, synth, tmp_path):
    """serve(options...): a Server of the shop's recording, whose user has a folder of analyses."""
    folder = synth(marks(*TOLD))
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    servers = []

    def start(*options):
        servers.append(Server(krait, folder, *options, env=env))
        servers[-1].folder = folder
        servers[-1].built()
        return servers[-1]

    yield start
    for server in servers:
        server.end()


def send(server, name, text, method="POST", code=200):
    status, _, body = server.ask(f"api/{name}", method=method, body=text.encode())
    assert status == code, body
    return json.loads(body)


def lanes(server):
    return [(t["threadName"], t["kind"]) for t in server.api("trace")["tracks"] if t["of"] == "lane"]


def wait_for_change(server, kept):
    until = time.monotonic() + 30
    while server.api("trace")["changes"] < kept["changes"]:
        assert time.monotonic() < until
        time.sleep(0.02)
    server.built()


def test_a_preview_counts_what_a_definition_finds(serve):
    server = serve()
    found = send(server, "preview?limit=2", SHOP)
    order, oven, waiting = found["rules"]
    assert found["messages"] == len(TOLD) and [rule["kind"] for rule in found["rules"]] == ["interval", "state", "signal"]
    (row,) = order["rows"]
    assert (row["count"], row["total"], row["min"], row["max"], row["noStop"]) == (3, 600_000, 100_000, 300_000, 0)
    assert [(int(f["until"]) - int(f["begin"]), f["key"]) for f in order["first"]] == [(200_000, "1"), (300_000, "2")]
    assert [(row["key"], row["count"], row["noStop"]) for row in oven["rows"]] == [("hot", 1, 0), ("warm", 0, 1), ("off", 0, 1)]
    assert [f["key"] for f in oven["first"]] == ["hot"] and oven["transitions"] == [{"from": "hot", "to": "warm", "count": 1}]
    assert waiting["rows"][0]["count"] == 2 and [f["value"] for f in waiting["first"]] == [2, 1.5]
    begin = int(order["first"][0]["begin"])
    assert send(server, f"preview?from={begin + 350_000}", SHOP)["rules"][0]["rows"][0]["count"] == 1
    assert lanes(server) == []  # nothing is kept


def test_a_preview_has_the_numbers_of_krait_intervals(serve, krait):
    server = serve()
    (server.folder / "shop.toml").write_text(SHOP)
    printed = json.loads(subprocess.run([krait, "intervals", server.folder, "-f", server.folder / "shop.toml", "--json"], check=True, capture_output=True).stdout)
    rules = send(server, "preview", SHOP)["rules"]
    names = ["total", "min", "mean", "median", "p90", "p99", "max", "deviation"]

    def shown(row, unit):
        return [row.get(f"{name}{unit}") for name in names]

    def own(row, ndigits):
        return [round(row[name], ndigits) for name in names]

    assert [own(row, None) for rule in rules for row in rule["rows"] if rule["kind"] != "signal"] == [shown(row, "_ns") for row in printed["rows"]]
    assert [own(row, 9) for row in rules[2]["rows"]] == [[round(n, 9) for n in shown(row, "")] for row in printed["signals"]]


def test_a_rule_of_an_unknown_function_hides_no_other(serve, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(SHOP + '\n[interval.nobody]\ncall = "nobody.knows"\n')
    rules = serve("-f", own).api("intervals")["rules"]
    assert len(rules) == 4 and any(rule.get("rows") for rule in rules)


def test_what_the_page_keeps_is_shown_and_stays(serve, krait):
    server = serve()
    before = server.api("declared")
    assert before["text"] == "" and before["path"].endswith("/.krait-lanes.toml")
    wait_for_change(server, send(server, "declared", SHOP, "PUT"))
    shown = [("order", "slices"), ("order", "slices"), ("oven T0", "states"), ("oven T1", "states"), ("waiting", "counter")]
    assert lanes(server) == shown and server.api("declared")["text"] == SHOP
    assert lanes(serve()) == shown  # of the next server, too
    wait_for_change(server, send(server, "declared", "", "PUT"))
    assert lanes(server) == [] and not (server.folder / ".krait-lanes.toml").exists()


def test_of_changes_in_quick_succession_the_last_is_waited_for(serve):
    server = serve()
    for _ in range(5):
        first = send(server, "declared", SHOP, "PUT")
        last = send(server, "declared", "", "PUT")
        assert last["changes"] == first["changes"] + 1
        wait_for_change(server, last)
        assert lanes(server) == []


def test_a_named_one_is_kept_in_the_users_folder(serve, tmp_path):
    server = serve()
    send(server, "declared?file=shop-1", SHOP, "PUT")
    assert (tmp_path / "config/krait/analyses/shop-1.toml").read_text() == SHOP
    assert server.api("declared", file="shop-1")["text"] == SHOP
    assert ("waiting", "counter") in lanes(serve("-f", "shop-1"))
    for name in ("", "../shop", "a/b", ".hidden", "x" * 65, "a%00b", "a b"):
        status, _, body = server.ask(f"api/declared?file={name.replace(' ', '%20')}", method="PUT", body=SHOP.encode())
        assert status == 400, (name, body)
    assert sorted(p.name for p in (tmp_path / "config/krait/analyses").iterdir()) == ["shop-1.toml"]


@pytest.mark.parametrize("text, why", [("[interval.x]\nstrat = 'a'\n", "did you mean 'start'?"), ("[interval.x", "line"), ("[signal.x]\nmessage = '('\n", "message"), ("", "nothing")])
def test_what_is_wrong_with_a_definition_is_said_and_not_kept(serve, text, why):
    server = serve()
    said = send(server, "preview", text, code=400)["error"]
    assert why in said or why == "line"
    if text:
        assert send(server, "declared", text, "PUT", 400)["error"] == said
    assert not (server.folder / ".krait-lanes.toml").exists()


def test_a_kept_one_of_an_unknown_function_is_left_out(serve):
    """The file may have been made for another program, or by another version of this one."""
    server = serve()
    text = SHOP + "\n[interval.nobody]\ncall = 'no.such'\n"
    kept = send(server, "declared", text, "PUT")
    line = text[: text.index("call =")].count("\n") + 1
    (warning,) = kept["warnings"]
    assert warning.startswith(f"definition:{line}: 'nobody' is left out: no function 'no.such' in the trace") and kept["text"] == text
    wait_for_change(server, kept)
    assert {name for name, _ in lanes(server)} == {"order", "oven T0", "oven T1", "waiting"}
    kept = send(server, "declared", SHOP.replace("send (?P<key>", "send (?P<id>"), "PUT")
    assert kept["warnings"] == ["definition:4: interval.order.stop: it has no group 'key', as 'start' has; krait ignores that key, and pairs events as without a key"]
    assert send(server, "declared", SHOP, "PUT")["warnings"] == [] == server.api("declared")["warnings"]
    assert "no.such" in send(server, "preview", "[interval.x]\ncall = 'no.such'\n", code=400)["error"]


def test_a_kept_one_that_is_broken_is_left_out(serve):
    server = serve()
    (server.folder / ".krait-lanes.toml").write_text("[interval.x]\n")
    assert lanes(serve("-f", "syscalls")) == []


def test_only_the_page_may_send(serve):
    server = serve()
    body = SHOP.encode()
    head = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
    for method, name in (("POST", "preview"), ("PUT", "declared")):
        for host, more in ((server.host, "Origin: http://evil.example\r\n"), ("evil.example", ""), (server.host, "Sec-Fetch-Site: cross-site\r\n")):
            answer = server.send(f"{method} /{server.token}/api/{name} HTTP/1.1\r\nHost: {host}\r\n{more}".encode() + head)
            assert answer.split()[1] == b"403", answer
        wrong = server.send(f"{method} /{'0' * 32}/api/{name} HTTP/1.1\r\nHost: {server.host}\r\n".encode() + head)
        assert wrong.split()[1] == b"403"
    for method, name in (("PUT", "preview"), ("POST", "declared"), ("POST", "trace"), ("DELETE", "declared")):
        assert server.ask(f"api/{name}", method=method, body=body)[0] == 405
    assert server.ask("api/preview")[0] == 400
    assert server.ask("api/preview", method="POST", body=b"#" * (65 << 10))[0] == 413
    assert not (server.folder / ".krait-lanes.toml").exists()
