"""Opens the page of `troupe play` in the real Chromium (Debian's), driven by Playwright, while a trained policy plays.

Usage: play_browser_test.py <folder for the virtual environment> <troupe> [--screenshots FOLDER]; exit code 77: skipped.
Checks that pictures move, that the mouse turns the camera and takes hold of a body, that pause, step and restart work, that strangers get
nothing, that no error is printed, and that axe-core finds nothing in light and dark, wide and narrow.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "web"))
from browser import WatchedPage, check_strangers, chromium, script_options, status_of


def train(troupe, folder):
    subprocess.run([troupe, "train", "walker_walk", "--runs", folder / "runs", "--quiet", "--set", "stop.environment_steps=2000", "--set", "evaluation.period=1000",
                    "--set", "evaluation.episodes=1", "--set", "evaluation.final_episodes=1", "--set", "evaluation.video=false",
                    "--set", "replay.minimum_items=200", "--set", "actors.random_steps=200"], check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("runs/walker_walk/*")).relative_to(folder)


class Page(WatchedPage):
    def __init__(self, browser, address):
        super().__init__(browser.new_page(viewport={"width": 1440, "height": 1000}, color_scheme="light"))
        self.page.goto(address)
        assert "token" not in self.page.url, self.page.url

    def text(self, name):
        return self.page.locator(f"#{name}").inner_text()

    def picture(self):
        return self.page.evaluate("document.querySelector('#picture').toDataURL()")

    def moves(self):
        blank = self.picture()
        self.until(f"document.querySelector('#picture').toDataURL() !== {blank!r}")
        self.until("document.querySelector('#task').textContent === 'walker_walk'")
        before = float(self.text("seconds"))
        self.until("(before) => Number(document.querySelector('#seconds').textContent) > before + 0.2", before)

    def pauses(self):
        self.page.keyboard.press("Space")
        self.until("document.querySelector('#pause').textContent === 'Resume'")
        step = int(self.text("step-number"))
        self.page.click("#step")
        self.until("(step) => Number(document.querySelector('#step-number').textContent) === step + 1", step)

    def camera_turns(self):
        """While it is paused, so that nothing else changes the picture."""
        assert self.text("camera-name") == "side"
        box = self.page.locator("#picture").bounding_box()
        before = self.picture()
        self.page.mouse.move(box["x"] + 30, box["y"] + 30)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + 230, box["y"] + 60, steps=5)
        self.page.mouse.up()
        self.until("document.querySelector('#camera-name').textContent === 'stands'")
        self.until("(before) => document.querySelector('#picture').toDataURL() !== before", before)
        self.page.mouse.wheel(0, -300)
        self.page.focus("#stage")
        self.page.keyboard.press("ArrowRight")
        for _ in range(2):  # back, follows, …: around to the first one
            self.page.keyboard.press("c")
        self.until("document.querySelector('#camera-name').textContent !== 'stands'")

    def body_is_pulled(self):
        """Somewhere in the middle of the picture of the camera that follows is the walker."""
        while self.text("camera-name") != "side":
            shown = self.text("camera-name")
            self.page.keyboard.press("c")
            self.until("(shown) => document.querySelector('#camera-name').textContent !== shown", shown)
        box = self.page.locator("#picture").bounding_box()
        self.page.click("#hand")
        for part in range(20, 80, 3):
            self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * part / 100)
            self.page.mouse.down()
            self.page.wait_for_timeout(150)
            if self.page.locator("#held").is_visible():
                break
            self.page.mouse.up()
        assert self.text("held").startswith("pulls "), self.text("held")
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=4)
        self.page.mouse.up()
        self.until("document.querySelector('#held').hidden")
        self.page.click("#hand")

    def begins_again(self):
        self.page.select_option("#speed", "5")
        episode = int(self.text("episode"))
        self.page.click("#restart")
        self.until("(episode) => Number(document.querySelector('#episode').textContent) === episode + 1", episode)
        self.page.click("#pause")
        self.until("document.querySelector('#pause').textContent === 'Pause'")

    def looks(self, screenshots):
        for theme in ("light", "dark"):
            for width in (1440, 390):
                self.page.emulate_media(color_scheme=theme)
                self.page.set_viewport_size({"width": width, "height": 1000 if width > 400 else 844})
                self.page.wait_for_timeout(200)
                self.fits("the page", width)
                self.audit(f"{theme}, {width} pixels")
                if screenshots:
                    self.page.screenshot(path=screenshots / f"play_{theme}_{width}.png", full_page=True)


def check_requests(address):
    base, token = address.split("/?token=")
    bearer = {"Authorization": f"Bearer {token}"}
    assert status_of(base + "/api/commands", "POST", **bearer) == 403
    assert status_of(base + "/api/commands", "POST", **bearer, **{"X-Troupe": "play"}) == 400
    assert status_of(base + "/api/picture?after=one", **bearer) == 400


def main():
    options = script_options()
    folder = pathlib.Path(tempfile.mkdtemp())
    troupe = pathlib.Path(options.troupe).resolve()
    played = subprocess.Popen([troupe, "play", train(troupe, folder), "--json"], stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        address = json.loads(played.stdout.readline())["address"]
        with chromium() as browser:
            page = Page(browser, address)
            page.moves()
            page.pauses()
            page.camera_turns()
            page.body_is_pulled()
            page.begins_again()
            page.looks(options.screenshots)
            check_strangers(address, ("/", "/play.js", "/api/picture", "/api/about"))
            check_requests(address)
            assert not page.problems, "\n".join(page.problems)
    finally:
        played.terminate()
        code = played.wait(60)
        shutil.rmtree(folder)
    assert code == 0, code
    print("pictures moved; pause, step, camera, hand and restart worked; axe-core found nothing; strangers got nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
