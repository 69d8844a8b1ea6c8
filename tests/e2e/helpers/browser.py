# SPDX-License-Identifier: Apache-2.0
"""The page of `krait view` in Debian's headless Chromium, and the server behind it."""

import contextlib
import json
import shutil
import subprocess
import time
import urllib.request

import pytest

# Playwright turns off the first ones, and a second list replaces the first. The last two render the address bar's list in a page of
# its own, whenever a window opens: half of what a window costs.
NO_FEATURES = (
    "AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LensOverlay,"
    "MediaRouter,PaintHolding,ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,OptimizationHints,"
    "NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch,WebUIOmniboxPopup,WebUIOmniboxAimPopup"
)
BROWSER = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None)


@contextlib.contextmanager
def served(krait, *folders):
    """The link of a server that shows these; it has ended when the block has, and left nothing."""
    process = subprocess.Popen([krait, "view", "--no-open", *folders], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        link = process.stdout.readline().strip()
        assert link.startswith("http://127.0.0.1:"), process.stderr.read()
        yield link
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def ask(link, name, **params):
    query = "&".join(f"{key}={value}" for key, value in params.items())
    with urllib.request.urlopen(f"{link}api/{name}?{query}", timeout=60) as answer:
        return json.load(answer)


# After a change the page waits whether another one follows, for 150 to 400 ms, before it asks and before it writes its address. Tests
# make each change on its own: a quarter of that is enough, in the same order.
QUICK = "const later = setTimeout; window.setTimeout = (work, ms, ...rest) => later(work, ms >= 150 && ms <= 400 ? ms / 4 : ms, ...rest);"


class Page:
    """A page that waits for what it asked for before anything is read from it."""

    def __init__(self, page):
        self.page = page
        page.add_init_script(QUICK)
        self.errors = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)

    def wait(self):
        for _ in range(1500):
            if self.page.evaluate("() => !!(window.krait && window.krait.settled)"):
                return self
            time.sleep(0.02)
        pytest.fail(f"the page is not done after half a minute: {self.errors}")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
            self.pause()
        return self

    def pause(self):
        """Waits until the page has asked for what it shows after a change, and has it: timers of the page end in their order."""
        self.page.evaluate("() => new Promise((done) => setTimeout(done, 400))")  # a quarter of that; see QUICK
        return self.wait()

    def address(self):
        """What the address bar says of the view, once it is written there."""
        self.wait()
        return self.page.evaluate("() => location.hash.slice(1)")

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def rows(self, selector=".table-rows .row"):
        """The texts of a table's rows that are on the screen."""
        return [row.locator(".cell").all_inner_texts() for row in self.page.locator(selector).all()]


@contextlib.contextmanager
def opened(krait, chromium, folder, hash="", width=1280, options=()):
    """The page of a recording in a window; nothing went wrong on it."""
    with served(krait, folder, *options) as link:
        context = chromium.new_context(viewport={"width": width, "height": 800})
        page = Page(context.new_page())
        page.page.goto(link + hash)
        yield page.wait()
        context.close()
    assert page.errors == []


@contextlib.contextmanager
def browser():
    """A browser, or the test is skipped."""
    if not BROWSER:
        pytest.skip("no Chromium: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", f"--disable-features={NO_FEATURES}"])
        yield chromium
        chromium.close()
