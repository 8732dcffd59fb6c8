"""Opens the dashboard in the real Chromium (Debian's), driven by Playwright: every view in light and dark, wide and narrow, while a real run trains.

Usage: browser_test.py <folder for the virtual environment> <troupe> [--screenshots FOLDER]; exit code 77: skipped.
Checks that curves move as the run writes, that the actions reach it, that no other host is contacted, that no error is printed, that
axe-core finds nothing, that strangers get no data, and that Prometheus' promtool accepts /metrics.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "web"))
from browser import WatchedPage, check_strangers, chromium, script_options

VIEWS = ["curves", "run", "compare", "config", "logs"]
SIZES = {1440: 900, 390: 844}
QUICK = ["--set", "evaluation.episodes=1", "--set", "evaluation.final_episodes=1",
         "--set", "replay.minimum_items=200", "--set", "actors.random_steps=200", "--quiet"]


class Runs:
    """Finished runs, a sweep, one that trains, and a dashboard over them."""

    def __init__(self, troupe, folder):
        self.troupe, self.folder = troupe, folder
        short = [*QUICK, "--set", "stop.environment_steps=2000", "--set", "evaluation.period=300"]
        for seed in (1, 2):
            self.run("train", "cartpole_balance", "--runs", folder, "--set", f"seed={seed}", "--set", f"evaluation.video={str(seed == 2).lower()}", *short)
        self.run("sweep", "cartpole_balance", "--runs", folder, "--name", "steps", "--seeds", "1", "--vary", "replay.n_step=1,5", "--vary",
                 "learner.publish_period=5,20", "--jobs", "2", "--set", "evaluation.video=false", *[word for word in short if word != "--quiet"])
        # Slow enough to last for the whole test, fast enough that there is something new at each look.
        self.live = subprocess.Popen([troupe, "train", "cartpole_balance", "--processes", "--runs", folder, "--set", "name=live", "--set", "actors.environment=2",
                                      "--set", "stop.environment_steps=100000000", "--set", "evaluation.period=2000", "--set", "evaluation.video=false", *QUICK])
        self.dashboard = subprocess.Popen([troupe, "dashboard", folder, "--json"], stdout=subprocess.PIPE, text=True)
        self.address = json.loads(self.dashboard.stdout.readline())["address"]

    def run(self, *words):
        subprocess.run([self.troupe, *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    def close(self):
        for process in (self.live, self.dashboard):
            process.terminate()
        for process in (self.live, self.dashboard):
            process.wait(60)


class Checks(WatchedPage):
    def __init__(self, browser, runs, screenshots):
        super().__init__(browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light").new_page())
        self.runs, self.screenshots, self.hosts = runs, screenshots, set()
        self.page.on("request", lambda request: self.hosts.add(urllib.parse.urlsplit(request.url).hostname))
        self.page.on("requestfailed", self.failed)

    def failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # of a video that left the page
            self.problems.append(f"request: {request.url} {request.failure}")

    def all(self):
        self.opens()
        check_strangers(self.runs.address, ("/", "/main.js", "/api/runs", "/metrics"))
        self.curves_move()
        check_metrics(self.runs.address)
        self.views()
        self.keyboard()
        self.video()
        self.actions()
        assert self.hosts == {"127.0.0.1"}, self.hosts
        assert not self.problems, "\n".join(self.problems)

    def opens(self):
        page = self.page
        page.goto(self.runs.address)
        assert "token" not in page.url, page.url
        page.wait_for_selector("#connection.connection-live")
        self.until("document.querySelectorAll('#run-list li').length === 7")
        self.until("document.querySelectorAll('.state-finished').length === 6 && document.querySelectorAll('.state-running').length === 1")

    def chart_end(self, number):
        """Where the curves of a chart end, as the chart says it to a screen reader."""
        chart = self.page.locator("#view-curves .chart").nth(number)
        chart.focus()
        chart.press("End")
        text = chart.locator("[role=status]").inner_text()
        return float(text.split(":")[0].replace(",", "").replace(" M", "e6").replace(" k", "e3"))

    def curves_move(self):
        """The steps of the live run go beyond what the chart showed before."""
        self.until("[...document.querySelectorAll('#view-curves .chart')].every((chart) => chart.querySelector('.chart-empty').hidden)")
        self.until("document.querySelector('#run-list .state-running')")
        before = self.chart_end(1)
        self.until("""(before) => {
          const chart = document.querySelectorAll('#view-curves .chart')[1];
          chart.dispatchEvent(new KeyboardEvent('keydown', {key: 'End'}));
          const text = chart.querySelector('[role=status]').textContent.split(':')[0];
          return Number(text.replace(/,/g, '').replace(' M', 'e6')) > before;
        }""", arg=before)

    def open_view(self, view):
        self.page.click(f"nav a[href='#{view}']")
        self.page.wait_for_selector(f"#view-{view}:not([hidden])")
        wanted = {"curves": ".chart-empty[hidden]", "run": "svg.flow", "compare": ".parallel-line", "config": "pre.config:not(:empty)", "logs": ".line"}
        self.page.wait_for_selector(f"#view-{view} {wanted[view]}", state="attached")

    def views(self):
        self.page.get_by_role("button", name="live").click()
        for look in self.looks():
            for view in VIEWS:
                self.open_view(view)
                if view == "config":
                    self.page.select_option("#config-other", index=5)
                    self.page.wait_for_selector("#view-config td, #view-config p")
                if view == "compare":
                    self.page.select_option("#compare-which", "steps")
                    self.until("document.querySelectorAll('.parallel-line').length === 4")
                self.look(view, look)

    def looks(self):
        """Shows the page in light and dark, wide and narrow, and as before at the end."""
        for theme in ("light", "dark"):
            self.page.select_option("#theme", theme)
            for width, height in SIZES.items():
                self.page.set_viewport_size({"width": width, "height": height})
                yield theme, width
        self.page.set_viewport_size({"width": 1440, "height": 900})
        self.page.select_option("#theme", "system")

    def look(self, name, look):
        theme, width = look
        self.fits(name, width)
        self.audit(f"{name}, {theme}, {width} pixels")
        self.picture(f"{name}_{theme}_{width}")

    def picture(self, name):
        if self.screenshots:
            self.page.evaluate("scrollTo(0, 0)")
            self.page.screenshot(path=self.screenshots / f"{name}.png", full_page=name.startswith("run") or "390" in name)

    def keyboard(self):
        """The first link skips the list; the views and the runs are reached by Tab and opened by Enter."""
        page = self.page
        page.goto(page.url.split("#")[0])
        page.wait_for_selector("#run-list li")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.id || document.activeElement.className || document.activeElement.hash"))
        assert {"theme", "run-filter", "run-button", "#logs", "along", "chart"} <= reached, reached

    def video(self):
        """The browser can play the video of the run that recorded one."""
        self.open_view("run")
        video = next(self.runs.folder.glob("*/*/videos/*.mp4"))
        self.page.select_option("#run-run", value=str(video.parent.parent.relative_to(self.runs.folder)))
        self.until("(document.querySelector('#view-run video')?.videoWidth ?? 0) > 0")
        assert f"videos%2F{video.name}" in self.page.get_attribute("#view-run video", "src")

    def actions(self):
        page = self.page
        self.open_view("run")
        page.select_option("#run-run", label=page.locator("#run-run option", has_text="live").first.inner_text())
        page.wait_for_selector("#scale-count:visible")
        page.fill("#scale-count", "3")
        page.get_by_role("button", name="Scale", exact=True).click()
        self.until("/3/.test(document.querySelector('.done').textContent)")
        self.until("/3 environment actors/.test(document.querySelector('svg.flow').textContent)")
        self.until("/in flight/.test(document.querySelector('svg.flow').textContent) && /ready/.test(document.querySelector('svg.flow').textContent)")
        page.get_by_text("Each actor (").click()
        page.get_by_text("environment 0 on the head’s host").wait_for()
        page.select_option("#restart-role", "evaluator")
        page.get_by_role("button", name="Restart", exact=True).click()
        self.until("/processes restarted: 1/.test(document.querySelector('.done').textContent)")
        self.until("[...document.querySelectorAll('#view-run .facts')].some((facts) => /^restarts1of the head0/.test(facts.textContent))")
        page.get_by_role("button", name="Pause", exact=True).click()
        self.until("/pauses/.test(document.querySelector('.done').textContent)")
        page.get_by_role("button", name="Write a checkpoint").click()
        self.until("/^checkpoint /.test(document.querySelector('.done').textContent)")
        page.get_by_role("button", name="Resume", exact=True).click()
        self.until("/continues/.test(document.querySelector('.done').textContent)")
        page.get_by_text("None yet: “Record timeline”").wait_for()
        page.fill("#timeline-updates", "5")
        page.get_by_role("button", name="Record timeline").click()
        self.until("/^timeline .*5 updates/.test(document.querySelector('.done').textContent)")
        self.until("document.querySelectorAll('.timeline-strip rect.timeline-span').length >= 10")
        self.until("/learner 0/.test(document.querySelector('.timeline table').textContent) && /environment/.test(document.querySelector('.timeline table').textContent)")
        assert page.evaluate("[...document.querySelectorAll('.timeline-strip rect')].every((box) => box.width.baseVal.value > 0 && getComputedStyle(box).fill !== 'rgb(0, 0, 0)')")
        for look in self.looks():
            self.look("run_timeline", look)
        self.live_picture()
        page.fill("#limit-ratio", "3")
        page.get_by_role("button", name="Change the rate limiter").click()
        self.until("/3 samples per insert/.test(document.querySelector('.done').textContent)")
        self.until("/3, changed/.test(document.querySelector('#view-run .facts').textContent)")
        page.fill("#scale-count", "70000")
        page.get_by_role("button", name="Scale", exact=True).click()
        page.wait_for_selector(".done.problem")
        # A refusal is a normal answer, which Chromium reports as an error.
        self.problems = [line for line in self.problems if "400 (Bad Request)" not in line]
        page.get_by_role("button", name="Stop the run").click()
        page.get_by_role("button", name="Cancel").click()
        assert self.runs.live.poll() is None
        page.get_by_role("button", name="Stop the run").click()
        page.locator("#confirm-yes").click()
        self.until("document.querySelector('#view-run .tools .state').textContent === 'stopped'")
        assert self.runs.live.wait(60) == 0

    def live_picture(self):
        """The scene moves while it is watched; what cannot be seen is refused."""
        page = self.page
        page.get_by_role("button", name="Watch").click()
        shown = "document.querySelector('canvas.live')"
        self.until(f"!{shown}.hidden && {shown}.width === 320 && /^The scene of environment 0 of \\d+ of actor 0$/.test({shown}.ariaLabel)")
        first = page.evaluate(f"{shown}.toDataURL()")
        self.until(f"{shown}.toDataURL() !== {json.dumps(first)}")
        for look in self.looks():
            self.look("run_live", look)
        page.check("#live-observed")
        page.get_by_text("numbers, not a picture").wait_for()
        page.get_by_role("button", name="Stop watching").click()
        page.uncheck("#live-observed")


def check_metrics(address):
    base, token = address.split("/?token=")
    answer = urllib.request.urlopen(urllib.request.Request(base + "/metrics", headers={"Authorization": f"Bearer {token}"}), timeout=20).read()
    assert b"troupe_updates_total" in answer and b"troupe_stage_seconds_total" in answer
    checked = subprocess.run(["promtool", "check", "metrics"], input=answer, capture_output=True)
    assert checked.returncode == 0 and not checked.stderr, checked.stderr.decode() + checked.stdout.decode()


def main():
    options = script_options("promtool")
    folder = pathlib.Path(tempfile.mkdtemp())
    runs = Runs(options.troupe, folder)
    try:
        with chromium() as browser:
            Checks(browser, runs, options.screenshots).all()
    finally:
        runs.close()
        shutil.rmtree(folder)
    print("every view opened in light and dark, wide and narrow; curves moved, actions worked, axe-core and promtool found nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
