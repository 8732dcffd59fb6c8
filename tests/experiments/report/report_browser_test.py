"""Opens the reports of a run and of a comparison in the real Chromium (Debian's), in light and dark, wide and narrow.

Usage: report_browser_test.py <folder for the virtual environment> <troupe> [--screenshots FOLDER [--site FOLDER]]; exit code 77: skipped.
Checks that they fit the screen, load nothing, print no error, and that axe-core finds nothing. --screenshots also takes the samples of a GAN in the
dashboard, and of the guide's site in FOLDER (build_site.py --out FOLDER) a page and a search.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2]), str(pathlib.Path(__file__).resolve().parents[1] / "web")]
from browser import PACKAGES, WatchedPage
from python_packages import python_with

SIZES = {1440: 900, 390: 844}
SHORT = ["--quiet", "--set", "stop.environment_steps=2000", "--set", "evaluation.period=500", "--set", "evaluation.episodes=1", "--set",
         "evaluation.final_episodes=1", "--set", "replay.minimum_items=200", "--set", "actors.random_steps=200"]
GAN = """name: "gan"
data { path: "scenes" size: 32 crop: "none" epochs: 2 evaluation_epochs: 1 }
sngan { generator_channels: 16 critic_channels: 16 critic_steps: 2 batch_size: 12 latent: 16 evaluation_samples: 24 }
"""


class Looks(WatchedPage):
    def __init__(self, browser, screenshots):
        super().__init__(browser.new_page())
        self.screenshots, self.requests = screenshots, []
        self.page.on("request", lambda request: self.requests.append(request.url))

    def look(self, name, audited, height=None):
        """`height`: of the pictures; the whole page without it."""
        for theme in ("light", "dark"):
            for width, usual in SIZES.items():
                self.page.emulate_media(color_scheme=theme)
                self.page.set_viewport_size({"width": width, "height": height or usual})
                self.fits(name, width)
                if audited:
                    self.audit(f"{name}, {theme}, {width} pixels")
                if self.screenshots:
                    self.page.screenshot(path=self.screenshots / f"{name}_{theme}_{width}.png", full_page=height is None)
        self.page.set_viewport_size({"width": 1440, "height": 900})

    def report(self, name, file, height):
        self.requests.clear()
        self.page.goto(f"file://{file}")
        self.look(name, True, height)
        outside = [url for url in self.requests if not url.startswith(("file:", "data:"))]
        assert not outside, outside

    def samples(self, address):
        self.page.goto(address)
        self.page.wait_for_selector("#run-list li")
        self.page.click("nav a[href='#run']")
        self.until("(document.querySelector('#view-run .pictures img')?.naturalWidth ?? 0) > 0")
        self.look("run_samples", False)

    def site(self, folder):
        self.page.goto(f"file://{folder}/experiments/guide/first_hour.html")
        self.look("guide", False, height=900)
        self.page.goto(f"file://{folder}/search.html?q=rate+limiter")
        self.page.wait_for_selector("#search-results li")
        self.look("guide_search", False, height=900)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("venv", type=pathlib.Path)
    parser.add_argument("troupe", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--site", type=pathlib.Path)
    parser.add_argument("--inside", action="store_true")
    options = parser.parse_args()
    if not shutil.which("chromium"):
        print("skipped: chromium is not installed")
        return 77
    if not options.inside:
        return subprocess.run([python_with(options.venv, PACKAGES), *sys.argv, "--inside"]).returncode
    from playwright.sync_api import sync_playwright

    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder, troupe = pathlib.Path(name), options.troupe.resolve()

        def run(*words):
            subprocess.run([troupe, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)

        for seed in (1, 2):
            for steps in (1, 5):
                run("train", "cartpole_balance", "--set", f"name=n{steps}", "--set", f"seed={seed}", "--set", f"replay.n_step={steps}", "--set",
                    f"evaluation.video={str(seed == 1).lower()}", *SHORT)
        run("report", "one step=runs/n1", "five steps=runs/n5", "--out", "report.html")
        with sync_playwright() as playwright:
            # Chromium's own sandbox needs privileges that containers lack.
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            looks = Looks(browser, options.screenshots)
            looks.report("comparison", folder / "report.html", 1500)
            looks.report("report", next(folder.glob("runs/n1/*/videos")).parent / "report.html", 900)
            if options.screenshots:
                for split in ("train", "validation"):
                    run("dataset", "render", "scenes", "--classes", "cartpole_balance,pendulum_swingup,reacher_easy", "--rows", "32", "--size", "32", "--split", split)
                (folder / "gan.textproto").write_text(GAN)
                run("train", "gan.textproto", "--runs", "gans", "--quiet")
                dashboard = subprocess.Popen([troupe, "dashboard", "gans", "--json"], cwd=folder, stdout=subprocess.PIPE, text=True)
                try:
                    looks.samples(json.loads(dashboard.stdout.readline())["address"])
                finally:
                    dashboard.terminate()
                    dashboard.wait(60)
                if options.site:
                    looks.site(options.site.resolve())
            assert not looks.problems, "\n".join(looks.problems)
            browser.close()
    print("the reports fit, load nothing, and axe-core found nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
