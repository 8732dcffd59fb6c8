"""A page in the real Chromium, driven by Playwright, that notes what goes wrong; and requests without a browser."""

import argparse
import contextlib
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with

PACKAGES = ["playwright==1.65.2", "axe-playwright-python==0.1.8"]
WAIT = 60_000  # milliseconds


def script_options(*programs):
    """The options of a test script: <folder for the virtual environment> <troupe> [--screenshots FOLDER]. Runs the script again in that environment
    unless it runs there already. Ends it with exit code 77 if Chromium or one of `programs` is not installed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("venv", type=pathlib.Path)
    parser.add_argument("troupe")
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--inside", action="store_true")
    options = parser.parse_args()
    for program in ("chromium", *programs):
        if not shutil.which(program):
            print(f"skipped: {program} is not installed")
            sys.exit(77)
    if not options.inside:
        sys.exit(subprocess.run([python_with(options.venv, PACKAGES), *sys.argv, "--inside"]).returncode)
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    return options


@contextlib.contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium's own sandbox needs privileges that containers lack.
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


class WatchedPage:
    """`problems`: errors and warnings of the console, and exceptions."""

    def __init__(self, page):
        self.page, self.problems = page, []
        page.set_default_timeout(WAIT)
        page.on("console", lambda line: line.type in ("error", "warning") and self.problems.append(f"console: {line.text}"))
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))

    def until(self, expression, arg=None):
        """The page's policy forbids scripts from texts, with which Playwright's own function of this kind works."""
        deadline = time.monotonic() + WAIT / 1000
        while not self.page.evaluate(expression, arg):
            if time.monotonic() > deadline:
                is_now = self.page.evaluate(expression.split(" === ")[0], arg)
                raise AssertionError(f"not within {WAIT / 1000} s: {expression}; it is {is_now!r}; {self.problems[:5]}")
            self.page.wait_for_timeout(100)

    def fits(self, what, width):
        wide = self.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{what} is {wide} pixels wide on a screen of {width}"

    def audit(self, what):
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page)
        assert found.violations_count == 0, f"{what}: {found.generate_report()}"


def status_of(address, method="GET", **headers):
    body = b"{}" if method == "POST" else None
    try:
        return urllib.request.urlopen(urllib.request.Request(address, body, headers, method=method), timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code


def check_strangers(address, paths):
    """Without the token, with another one, and by another name of the host."""
    base, token = address.split("/?token=")
    bearer = {"Authorization": f"Bearer {token}"}
    for path in paths:
        assert status_of(base + path) == 401, path
        assert status_of(base + path, **bearer) == 200, path
        assert status_of(base + path, Host="rebound.example", **bearer) == 403, path
    assert status_of(base + "/?token=" + "0" * 64) == 401
