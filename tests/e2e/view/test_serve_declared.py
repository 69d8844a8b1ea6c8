# SPDX-License-Identifier: Apache-2.0
"""Declared analyses that the page of `krait view` makes: what they would find, and where they are kept."""

import json
import os
import time

import pytest
from served import Server
from test_intervals import marks
from test_view_declared import SHOP, TOLD


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


def wait_for_generation(server, before):
    until = time.monotonic() + 30
    while server.api("trace")["generation"] == before:
        assert time.monotonic() < until
        time.sleep(0.02)
    server.built()


def test_a_preview_counts_what_a_definition_finds(serve):
    server = serve()
    found = send(server, "preview?limit=2", SHOP)
    rules = {rule["name"]: rule for rule in found["rules"]}
    order, oven, waiting = rules["order"], rules["oven"], rules["waiting"]
    assert found["messages"] == len(TOLD) and [rule["kind"] for rule in found["rules"]] == ["interval", "state", "signal"]
    assert (order["count"], order["total"], order["min"], order["max"], order["noStop"]) == (3, 600_000, 100_000, 300_000, 0)
    assert [(int(f["until"]) - int(f["begin"]), f["key"]) for f in order["first"]] == [(200_000, "1"), (300_000, "2")]
    assert (oven["count"], oven["noStop"]) == (1, 2) and [f["key"] for f in oven["first"]] == ["hot"]
    assert waiting["count"] == 2 and [f["value"] for f in waiting["first"]] == [2, 1.5]
    begin = int(order["first"][0]["begin"])
    assert send(server, f"preview?from={begin + 350_000}", SHOP)["rules"][0]["count"] == 1
    assert lanes(server) == []  # nothing is kept


def test_what_the_page_keeps_is_shown_and_stays(serve, krait):
    server = serve()
    before = server.api("declared")
    assert before["text"] == "" and before["path"].endswith("/.krait-lanes.toml")
    send(server, "declared", SHOP, "PUT")
    wait_for_generation(server, before["generation"])
    shown = [("order", "slices"), ("order", "slices"), ("oven T0", "states"), ("oven T1", "states"), ("waiting", "counter")]
    assert lanes(server) == shown and server.api("declared")["text"] == SHOP
    assert lanes(serve()) == shown  # of the next server, too
    generation = server.api("trace")["generation"]
    send(server, "declared", "", "PUT")
    wait_for_generation(server, generation)
    assert lanes(server) == [] and not (server.folder / ".krait-lanes.toml").exists()


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


@pytest.mark.parametrize("text, why", [("[interval.x]\nstrat = 'a'\n", "did you mean 'start'?"), ("[interval.x", "line"), ("[signal.x]\nmessage = '('\n", "message"), ("[interval.x]\ncall = 'no.such'\n", "no.such"), ("", "nothing")])
def test_what_is_wrong_with_a_definition_is_said_and_not_kept(serve, text, why):
    server = serve()
    said = send(server, "preview", text, code=400)["error"]
    assert why in said or why == "line"
    if text:
        assert send(server, "declared", text, "PUT", 400)["error"] == said
    assert not (server.folder / ".krait-lanes.toml").exists()


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
