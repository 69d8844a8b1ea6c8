# SPDX-License-Identifier: Apache-2.0
"""krait path through packets and devices, on traces made up event by event: each rule of docs/path.md by itself."""

import pytest

import kernel_made as made
from conftest import verb_json
from kernel_made import event, switch, wake
from path_compared import run
from path_made import ASLEEP, packet, path  # noqa: F401  (path: fixture)


def receive(us, address, tid, cpu=0):
    """A soft interrupt in which a packet arrives and wakes a thread."""
    return [
        event(us, "irq_softirq_entry", cpu=cpu, vec=3),
        packet(us + 1, "net_if_receive_skb", address, cpu),
        wake(us + 2, tid, cpu=cpu),
        event(us + 3, "irq_softirq_exit", cpu=cpu, vec=3),
    ]


def test_a_packet_leads_to_the_thread_that_sent_it(path):
    found = path(
        [
            switch(0, 0, 5),
            switch(1, 0, 6, cpu=1),
            switch(10, 5, 0, ASLEEP),
            packet(30, "net_dev_queue", 0xABC, cpu=1),
            *receive(34, 0xABC, 5, cpu=1),
            switch(40, 0, 5),
            switch(50, 5, 0, ASLEEP),
        ],
        5,
    )
    assert found == [
        ("running", 5, 0, 10, 0),
        ("running", 6, 10, 30, 1),
        ("network", 5, 30, 36, 0),
        ("woken", 5, 36, 40, 0),
        ("running", 5, 40, 50, 0),
    ]


@pytest.mark.parametrize(
    "sent",
    [
        [],
        [packet(30, "net_dev_queue", 0x123, cpu=1)],  # another packet
        [packet(5, "net_dev_queue", 0xABC, cpu=1)],  # before the wait
        [event(29, "irq_handler_entry", cpu=1, irq=1), packet(30, "net_dev_queue", 0xABC, cpu=1), event(31, "irq_handler_exit", cpu=1, irq=1)],
        [packet(28, "net_dev_queue", 0xABC, cpu=1), packet(30, "netif_receive_skb", 0xABC, cpu=1)],  # received before
    ],
    ids=["none", "another", "before", "by an interrupt", "received before"],
)
def test_a_packet_that_nobody_is_known_to_have_sent_is_the_network(path, sent):
    events = [
        switch(0, 0, 5),
        switch(1, 0, 6, cpu=1),
        switch(10, 5, 0, ASLEEP),
        *sent,
        *receive(34, 0xABC, 5, cpu=1),
        switch(40, 0, 5),
        switch(50, 5, 0, ASLEEP),
    ]
    events.sort(key=lambda e: e[0])
    assert ("network", 5, 10, 36, 0) in path(events, 5)


def from_device(us, tid, *does, begin="irq_softirq_entry", end="irq_softirq_exit"):
    """A thread sleeps for 10 us, until an interrupt that does something wakes it."""
    return [switch(us, tid, 0, ASLEEP), event(us + 8, begin, vec=3), *does, wake(us + 10, tid), event(us + 11, end, vec=3), switch(us + 12, 0, tid)]


def disk(us, dev):
    return event(us, "block_rq_complete", dev=dev)


def interface(us, name):
    return event(us, "net_if_receive_skb", skbaddr=1, len=60, name=name)


VDA, SDB1 = 253 << 20, 8 << 20 | 17


@pytest.mark.parametrize(
    "does, kind, device",
    [
        ([disk(19, VDA)], "disk", "vda"),
        ([disk(19, SDB1)], "disk", "8:17"),
        ([disk(19, SDB1), disk(20, VDA)], "disk", "vda"),
        ([disk(19, 0)], "disk", None),
        ([interface(19, "eth0")], "network", "eth0"),
        ([interface(19, "")], "network", None),
        ([disk(19, VDA), event(20, "timer_hrtimer_expire_entry", hrtimer=1)], "timer", None),
        ([disk(19, VDA), event(19, "irq_softirq_exit", vec=3), event(20, "irq_softirq_entry", vec=4)], "disk", None),
        ([disk(19, VDA), event(19, "irq_softirq_exit", vec=3), event(20, "irq_softirq_entry", vec=3)], "network", None),
    ],
)
@pytest.mark.parametrize("named_at", [5, 40])
def test_devices_have_names(krait, path, tmp_path, does, kind, device, named_at):
    """Whether the state dump comes before or after; without it a disk has its numbers."""
    named = event(named_at, "lttng_statedump_block_device", dev=VDA, diskname="vda")
    events = sorted([switch(0, 0, 5), *from_device(10, 5, *does), switch(30, 5, 0, ASLEEP), named], key=lambda e: e[0])
    assert (kind, 5, 10, 20, 0) in path(events, 5)
    found = verb_json(krait, "path", tmp_path / "made", "--thread", 5)
    (segment,) = (s for s in found["segments"] if s["kind"] == kind)
    (member,) = (m for m in found["path"] if m["kind"] == kind)
    assert segment["device"] == member["device"] == device
    assert member["name"] == (f"{kind} {device}" if device else kind)


def test_each_device_has_a_lane_of_its_own(krait, tmp_path):
    events = [switch(0, 0, 5), *from_device(10, 5, disk(19, VDA)), *from_device(30, 5, disk(39, SDB1)), *from_device(50, 5, interface(59, "lo")), switch(70, 5, 0, ASLEEP)]
    folder = made.write(tmp_path / "made", events)
    shown = run(krait, folder, "--thread", 5, env={"PATH": "/usr/bin", "LANG": "C"}).stdout
    assert [line.split("  ")[0] for line in shown.split("\n\n")[1].splitlines()[:4]] == ["t5 5", "disk 253:0", "disk 8:17", "network lo"]
    parts = run(krait, folder, "--thread", 5, "--segments").stdout
    assert [parts.count(f"  {what} ") for what in ("disk 253:0", "disk 8:17", "network lo")] == [1, 1, 1]


def test_a_packets_way_is_through_the_interface_that_hands_it_in(krait, path, tmp_path):
    sent = event(30, "net_dev_queue", cpu=1, skbaddr=0xABC, len=60, name="veth1")
    got = event(35, "net_if_receive_skb", cpu=1, skbaddr=0xABC, len=60, name="veth0")
    softirq = [event(34, "irq_softirq_entry", cpu=1, vec=3), got, wake(36, 5, cpu=1), event(37, "irq_softirq_exit", cpu=1, vec=3)]
    events = [switch(0, 0, 5), switch(1, 0, 6, cpu=1), switch(10, 5, 0, ASLEEP), sent, *softirq, switch(40, 0, 5), switch(50, 5, 0, ASLEEP)]
    assert ("network", 5, 30, 36, 0) in path(events, 5)
    found = verb_json(krait, "path", tmp_path / "made", "--thread", 5)
    assert {s["device"] for s in found["segments"]} == {None, "veth0"}


def test_what_is_sent_in_answer_to_a_packet_is_due_to_its_sender(path):
    """6 sends to 7's port; the kernel answers in the soft interrupt, and that answer wakes 5."""
    found = path(
        [
            switch(0, 0, 5),
            switch(1, 0, 6, cpu=1),
            switch(10, 5, 0, ASLEEP),
            packet(30, "net_dev_queue", 0xA, cpu=1),
            event(32, "irq_softirq_entry", cpu=1, vec=3),
            packet(33, "net_if_receive_skb", 0xA, cpu=1),
            packet(34, "net_dev_queue", 0xB, cpu=1),
            event(35, "irq_softirq_exit", cpu=1, vec=3),
            *receive(38, 0xB, 5, cpu=1),
            switch(45, 0, 5),
            switch(50, 5, 0, ASLEEP),
        ],
        5,
    )
    assert found[1:3] == [("running", 6, 10, 30, 1), ("network", 5, 30, 40, 0)]


def test_a_received_packet_counts_in_its_soft_interrupt_alone(path):
    found = path(
        [
            switch(0, 0, 5),
            switch(1, 0, 6, cpu=1),
            switch(10, 5, 0, ASLEEP),
            packet(30, "net_dev_queue", 0xA, cpu=1),
            *receive(32, 0xA, 77, cpu=1),
            event(37, "irq_softirq_entry", cpu=1, vec=3),
            wake(38, 5, cpu=1),
            switch(45, 0, 5),
            switch(50, 5, 0, ASLEEP),
        ],
        5,
    )
    assert found[1] == ("network", 5, 10, 38, 0)
