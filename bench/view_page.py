# SPDX-License-Identifier: Apache-2.0
"""The page of krait view in headless Chromium: view_page.py KRAIT HELPERS TRACE REPS prints one JSON object.

Seconds from the start of `krait view` to the first picture, with everything in it that the range on the screen shows at that time,
without an index file and with one; and of them the seconds that are krait's: until it prints the link, and from the begin of the navigation
(the page's own clock) to the picture. The rest is the browser opening a tab. Then a script zooms from the whole to a microsecond and back and moves to both sides: how long
the page takes to draw a frame, how long frames are apart, and the server's own memory afterwards. Playwright has to be there.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

krait, helpers, trace, reps = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
sys.path.insert(0, helpers)
from browser import browser  # noqa: E402

# Milliseconds since the navigation began, once the picture is there.
FIRST = """() => {
  const page = window.krait;
  return !!page && !page.context.timeline.wanted && !page.context.timeline.painter.missing && performance.now();
}"""
# Frames are 16.7 ms apart where nothing is late: that is the screen's rate.
MOVE = """async () => {
  const { store, timeline } = window.krait.context, drawn = [], apart = [], paint = timeline.paint.bind(timeline);
  timeline.paint = () => { const begin = performance.now(); paint(); drawn.push(performance.now() - begin); };
  let last = performance.now();
  const frame = async (move) => {
    move();
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    apart.push(now - last);
    last = now;
  };
  const steps = Math.ceil(Math.log(store.whole.span / 1000) / Math.log(1 / 0.93));
  for (const place of [0.3, 0.7]) {
    for (let i = 0; i < steps; i++) await frame(() => store.zoom(0.93, place));
    for (let i = 0; i < 60; i++) await frame(() => store.pan(i < 30 ? 0.03 : -0.03));
    for (let i = 0; i < steps; i++) await frame(() => store.zoom(1 / 0.93, place));
    for (let i = 0; i < 60; i++) await frame(() => store.pan(i < 30 ? 0.03 : -0.03));
  }
  const rank = (list, share) => [...list].sort((a, b) => a - b)[Math.floor(share * (list.length - 1))];
  return { frames: apart.length, drawn: [rank(drawn, 0.5), rank(drawn, 0.95), rank(drawn, 1)], apart: [rank(apart, 0.5), rank(apart, 0.95), rank(apart, 1)] };
}"""


def own_memory(pid):
    lines = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines["RssAnon"].split()[0]) * 1024


def look(chromium, move):
    """Seconds to the first picture, and of them those of krait; what the script measured; bytes of the server."""
    start = time.monotonic()
    process = subprocess.Popen([krait, "view", "--no-open", trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        link = process.stdout.readline().strip()
        serves = time.monotonic() - start
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto(link, wait_until="commit")
        shown_ms = page.wait_for_function(FIRST, timeout=120_000).json_value()
        first = (time.monotonic() - start, serves + shown_ms / 1000)
        page.wait_for_function("() => window.krait.settled", timeout=120_000)
        moved = page.evaluate(MOVE) if move else None
        memory = own_memory(process.pid)
        page.close()
        return first, moved, memory
    finally:
        process.terminate()
        process.wait()


def forget_index():
    for file in trace.rglob(".krait-view*"):
        file.unlink()


with browser() as chromium:
    look(chromium, False)  # the browser's own first page takes longer
    cold = []
    for _ in range(reps):
        forget_index()
        cold.append(look(chromium, False)[0])
    runs = [look(chromium, True) for _ in range(reps)]
middle = lambda values: statistics.median(values)  # noqa: E731
print(
    json.dumps(
        {
            "cold": middle([first[0] for first in cold]),
            "cold_own": middle([first[1] for first in cold]),
            "warm": middle([run[0][0] for run in runs]),
            "warm_own": middle([run[0][1] for run in runs]),
            "frames": runs[0][1]["frames"],
            "drawn": [middle([run[1]["drawn"][i] for run in runs]) for i in range(3)],
            "apart": [middle([run[1]["apart"][i] for run in runs]) for i in range(3)],
            "memory": max(run[2] for run in runs),
        }
    )
)
