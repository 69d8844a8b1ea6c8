# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio in krait view: a lane each, coloured by what the task does."""

import re
import subprocess

import pytest
from browser import opened

PROGRAM = """
import asyncio
async def waiter(lock):
    async with lock:
        await asyncio.sleep(0.02)
async def main():
    lock = asyncio.Lock()
    tasks = [asyncio.get_running_loop().create_task(waiter(lock)) for _ in range(3)]
    tasks[0].set_name("<first & foremost>")
    await asyncio.gather(*tasks)
asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_each_task_has_a_lane(record, krait, python, tmp_path):
    trace = record.text(python, PROGRAM).path
    done = subprocess.run([krait, "view", trace, "--svg", tmp_path / "t.svg"], capture_output=True, text=True)
    assert done.returncode == 0 and re.search(r"1 thread, \d+ tasks", done.stderr), done.stderr
    svg = (tmp_path / "t.svg").read_text()
    lanes = re.findall(r'<text class="name"[^>]*>([^<]*)', svg)
    assert any(lane.startswith("&lt;first &amp; foremost") for lane in lanes)
    assert sum(lane.startswith("waiter Task-") for lane in lanes) == 2
    assert {"timer", "lock", "on CPU"} <= set(re.findall(r">([^<>]+)</text>", svg))


def test_the_page_has_them_below_their_threads(record, krait, any_python, chromium):
    trace = record.text(any_python, PROGRAM).path
    with opened(krait, chromium, trace) as page:
        page.page.locator(".fold").nth(1).click()  # the thread's calls
        page.press("Shift")
        titles = page.page.locator(".lane .title").all_inner_texts()
        labels = page.page.locator(".lane").evaluate_all("(lanes) => lanes.map((lane) => lane.getAttribute('aria-label'))")
        assert titles[1] == "MainThread" and any(label.startswith("<first & foremost> waiter") for label in labels)  # the title is shortened
        assert sum(title.startswith("waiter Task-") for title in titles) == 2
        assert page.errors == []
