"""Opens the dashboard in the real Chromium (Debian's) over four runs with known contents, and compares what the views show with them.

Usage: views_test.py <folder for the virtual environment> <troupe>; exit code 77: skipped.
Checks smoothing, the x-axis, the mean over seeds with its interval, queue lengths, the time of each actor, the memory and failure cards, GAN grids, which
cards are shown, the colors of charts after a change of the theme, the filters of the log, and the difference of two configurations.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "web"))
from browser import WatchedPage, chromium, script_options

ONE, TWO, OTHER, GAN = "pair/2026-11-25T10-00-00", "pair/2026-11-25T11-00-00", "other/2026-11-25T12-00-00", "gan/2026-11-25T09-00-00"
LIVE = {"version": 1, "time": "2026-11-25T12:00:09Z", "environment_steps": 400, "agent_steps": 400, "episodes": 4, "updates": 40, "inserts": 390, "samples": 12480,
        "frames": 0, "replay_items": 50, "replay_bytes": 9000, "replay_disk_bytes": 0, "replay_failed_spills": 0, "failed_copies": 2, "taken_over": 0,
        "refused_connections": 0, "priorities": 0,
        "parameter_version": 30, "parameter_lag": 10, "insertions_in_flight": 12, "waiting_insertions": 3, "waiting_samples": 1, "ready_batches": 2,
        "training_seconds": 240, "processor_seconds": 300, "environment_steps_per_second": 1.5, "updates_per_second": 0.5, "samples_per_second": 128,
        "frames_per_second": 0, "episode_return": 50, "process_bytes": 3 << 20, "learner": {"staleness_mean": 1.5, "staleness_max": 4, "dropped_gradients": 3},
        "seconds": {"environment.step": 6.0, "environment.wait": 2.0, "learner.update": 5.0},
        "actors": [{"role": "environment", "index": 0, "seconds": {"environment.step": 4.0}},
                   {"role": "environment", "index": 1, "seconds": {"environment.step": 2.0, "environment.wait": 2.0}},
                   {"role": "learner", "index": 0, "seconds": {"learner.update": 5.0}}], "actors_left_out": 7,
        "shards": [{"index": 0, "items": 50, "bytes": 9000, "inserted": 390, "sampled": 12480, "waiting": ""}], "waits": []}


def picture(side):
    """A grey PNG."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x80" * side) * side
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_run(folder, name, seed, n_step, returns):
    folder.mkdir(parents=True)
    (folder / "config.textproto").write_text(f'name: "{name}"\nseed: {seed}\nenvironment {{ task: "cartpole_balance" }}\nreplay {{ n_step: {n_step} }}\n')
    rows = [f"progress,{100 * i},{10 * i},{60 * i},{i},{value}," for i, value in enumerate(returns, 1)]
    end = len(returns)
    rows.append(f"final,{100 * end},{10 * end},{60 * end},,,{100 * seed}")
    names = "kind,environment_steps,updates,training_seconds,parameter_lag,episode_return,evaluation_return"
    (folder / "metrics.csv").write_bytes("\r\n".join([names, *rows, ""]).encode())


def write_gan(folder):
    """A run on data with pictures of two evaluations."""
    (folder / "pictures").mkdir(parents=True)
    (folder / "config.textproto").write_text('name: "gan"\nseed: 1\ndata { path: "scenes" size: 32 }\nsngan { batch_size: 12 }\n')
    (folder / "metrics.csv").write_bytes(b"kind,updates,training_seconds\r\nfinal,40,240\r\n")
    (folder / "live.json").write_text(json.dumps(LIVE))
    for updates, side in ((9, 8), (10, 16)):
        made = folder / f"pictures/samples-{updates}.png"
        made.write_bytes(picture(side))
        os.utime(made, (1_795_000_000 + updates, 1_795_000_000 + updates))


def write_runs(folder):
    write_run(folder / ONE, "pair", 1, 1, [0, 100, 0, 100])
    write_run(folder / TWO, "pair", 2, 1, [200, 300, 200, 300])
    other = folder / OTHER
    write_run(other, "other", 1, 5, [])
    (other / "live.json").write_text(json.dumps(LIVE))
    (other / "log.txt").write_text("2026-11-25T12:00:00Z info training\n2026-11-25T12:00:01Z warning a disk is slow\n2026-11-25T12:00:02Z info evaluation\n")
    (other / "logs").mkdir()
    (other / "logs/environment-0.log").write_text("2026-11-25T12:00:03Z n-0: steps slowly\n")
    write_gan(folder / GAN)


class Views(WatchedPage):
    def __init__(self, browser, address):
        super().__init__(browser.new_page(viewport={"width": 1440, "height": 900}))
        self.page.goto(address)
        self.until("document.querySelectorAll('#run-list li').length === 4")

    def open_view(self, view):
        self.page.click(f"nav a[href='#{view}']")
        self.page.wait_for_selector(f"#view-{view}:not([hidden])")

    def returns_at_end(self, *wanted):
        """What the chart of returns says about its last point."""
        self.until("""(wanted) => {
          const chart = document.querySelectorAll('#view-curves .chart')[1];
          chart.dispatchEvent(new KeyboardEvent('keydown', {key: 'End'}));
          return wanted.every((text) => chart.querySelector('[role=status]').textContent.includes(text));
        }""", arg=wanted)

    def curves(self):
        page = self.page
        self.open_view("curves")
        self.returns_at_end("400: pair, 2026-11-25 11:00:00 300, pair, 2026-11-25 10:00:00 100")
        page.fill("#smoothing", "0.5")
        self.returns_at_end("11:00:00 266.7", "10:00:00 66.7")  # (0.5 · 25 + 0.5 · 100) / (1 - 0.5⁴)
        page.fill("#smoothing", "0")
        page.select_option("#along", "updates")
        self.returns_at_end("40: ", "11:00:00 300")
        page.select_option("#along", "training_seconds")
        self.returns_at_end("4 min: ", "11:00:00 300")
        page.select_option("#along", "environment_steps")
        page.select_option("#seeds", "mean")
        self.returns_at_end("400: pair, 2 seeds 200 ± 1,271")  # 12.706 · 141.4 / √2
        page.select_option("#seeds", "each")

    def arithmetic(self):
        told = self.page.evaluate("""async () => {
          const {halfInterval, interpolated, meanCurve, smoothed} = await import('/statistics.js');
          const mean = meanCurve([{x: [0, 10], mean: [0, 10]}, {x: [5, 20], mean: [5, 20]}], 2);
          return {half: [[7], [1, 3], [1, 2, 3, 4], Array.from({length: 40}, (_, i) => i % 2)].map(halfInterval),
            between: [0, 2.5, 10, 11].map((at) => interpolated([0, 10], [0, 100], at)),
            x: mean.x, mean: mean.mean, smoothed: Array.from(smoothed([4, 4, 8], 0.5))};
        }""")
        for found, wanted in zip(told["half"], [0, 12.706, 2.054, 0.1569]):
            assert abs(found - wanted) < 1e-3, told
        assert told["between"][:3] == [0, 25, 100] and told["between"][3] != told["between"][3], told  # NaN outside
        assert told["x"] == [5, 10] and told["mean"] == [5, 10], told  # where both have values
        assert [round(value, 3) for value in told["smoothed"]] == [4, 4, 6.286], told

    def seeds(self):
        """A mean is over seeds: of the attempts of a sweep's run, the newest counts."""
        told = self.page.evaluate("""async () => {
          const {grouped} = await import('/curves_view.js');
          const curve = (id, seed, value) => ({x: [0, 10], mean: [value, value],
            run: {id, seed, group: id.split('/')[0], sweep: id.startsWith('s/') ? 's' : '', experiment: 'n', started: ''}});
          const lines = grouped([curve('s/n_width=3_seed=1/n/2026-11-26', '1', 4), curve('s/n_width=3_seed=1/n/2026-11-25', '1', 100),
            curve('s/n_width=3_seed=2/n/2026-11-25', '2', 6), curve('n/2026-11-24', '1', 1), curve('n/2026-11-23', '1', 3)]);
          return lines.map((line) => [line.name, line.mean[0]]);
        }""")
        assert told == [["width=3, 2 seeds", 5], ["n, 2 runs of one seed", 2]], told

    def card(self, title):
        return self.page.locator("#view-run .card", has=self.page.get_by_role("heading", name=title, exact=True))

    def shows(self, title, *wanted):
        text = " ".join(self.card(title).inner_text().split())
        for part in wanted:
            assert part in text, f"{title}: {part!r} is not in {text!r}"

    def run_cards(self):
        page = self.page
        self.open_view("run")
        page.select_option("#run-run", value=OTHER)
        self.until("/12 in flight/.test(document.querySelector('svg.flow')?.textContent ?? '')")
        flow = page.locator("svg.flow").text_content()
        for part in ("3 of them wait", "2 batches ready", "1 request waits", "lag 10 updates", "32 per insert"):
            assert part in flow, flow
        self.shows("Memory", "replay 8.79 KiB of", "bytes per item 180 B", "failed copies 2", "the process 3 MiB", "staleness 1.5 on average, 4 at most", "dropped gradients 3")
        self.shows("Restarts and failures", "First warning or error", "warning a disk is slow")
        self.shows("How actors spend their time", "Environment actors", "step 75 %", "wait 25 %", "update 100 %")
        page.get_by_text("Each actor (3)").click()
        page.get_by_text("environment 1", exact=True).wait_for()
        self.shows("How actors spend their time", "environment 0 step 100 %", "environment 1 step 50 % wait 50 %", "learner 0 update 100 %", "Left out: 7 more actors")
        self.audit("run with the time of each actor")
        for absent in ("Live environment", "Newest video and pictures", "Timeline of the learner’s steps"):  # of a run that is over and has none
            assert self.card(absent).count() == 0, absent

    def run_on_data(self):
        page = self.page
        page.select_option("#run-run", value=GAN)
        self.until("[...document.querySelectorAll('#view-run .pictures img')].map((one) => one.naturalWidth).join() === '16,8'")  # the newest first
        assert page.locator("#view-run .pictures img").first.get_attribute("alt") == "Samples, pictures/samples-10.png"
        assert self.card("Live environment").count() == 0
        for width, wide in ((390, "false"), (1440, "true")):  # the drawing has no empty place for environment actors
            page.set_viewport_size({"width": width, "height": 900})
            self.until(f"/ Data: 128 rows/.test(document.querySelector('svg.flow').ariaLabel) && (document.querySelector('svg.flow').viewBox.baseVal.width > 400) === {wide}")
            above, left = page.evaluate("""() => {
              const drawing = document.querySelector('svg.flow').getBoundingClientRect();
              const boxes = [...document.querySelectorAll('svg.flow rect')].map((box) => box.getBoundingClientRect());
              return [Math.min(...boxes.map((box) => box.top)) - drawing.top, Math.min(...boxes.map((box) => box.left)) - drawing.left];
            }""")
            assert above < 8 and left < 8, (width, above, left)

    def theme(self):
        """Charts get their colors again before the first frame in the other theme."""
        page = self.page
        page.select_option("#run-run", value=ONE)
        for view, number in (("run", 0), ("curves", 1)):
            self.open_view(view)
            chart = f"document.querySelectorAll('#view-{view} .chart')[{number}]"
            self.until(f"{chart}.querySelector('.chart-empty').hidden")
            page.emulate_media(color_scheme="light")
            page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
            page.evaluate(f"""() => {{
              const drawn = () => {chart}.querySelector('canvas').toDataURL();
              document.looks = [drawn()];
              matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => document.looks.push(drawn()), {{once: true}});
            }}""")
            page.emulate_media(color_scheme="dark")
            self.until("document.looks.length === 2")
            assert page.evaluate("document.looks[0] !== document.looks[1]"), view

    def logs(self):
        page = self.page
        self.open_view("logs")
        page.select_option("#log-run", value=OTHER)
        lines = "[...document.querySelectorAll('#view-logs .line')].map((line) => line.textContent.slice(20)).join('|')"
        self.until(f"{lines} === 'head info training|head warning a disk is slow|head info evaluation|environment/0 on n-0 steps slowly'")
        page.fill("#log-contains", "EVALUATION")
        self.until(f"{lines} === 'head info evaluation'")
        page.fill("#log-contains", "")
        page.fill("#log-who", "environment/0")
        self.until(f"{lines} === 'environment/0 on n-0 steps slowly'")
        page.fill("#log-who", "")
        page.check("#log-problems")
        self.until(f"{lines} === 'head warning a disk is slow'")

    def difference(self):
        page = self.page
        self.open_view("config")
        page.select_option("#config-run", value=OTHER)
        page.select_option("#config-other", value=ONE)
        rows = "[...document.querySelectorAll('#view-config tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent).join(' ')).join('|')"
        self.until(f"/(^|[|])replay.n_step 1 5($|[|])/.test({rows})")  # of the other run, then of this one
        assert "seed" not in page.evaluate(rows), page.evaluate(rows)
        assert "pair" in page.locator("#view-config th").nth(1).inner_text()
        page.select_option("#config-run", value=TWO)
        self.until(f"{rows} === 'seed 1 2'")


def main():
    options = script_options()
    with tempfile.TemporaryDirectory() as name:
        write_runs(pathlib.Path(name))
        dashboard = subprocess.Popen([options.troupe, "dashboard", name, "--json"], stdout=subprocess.PIPE, text=True)
        try:
            with chromium() as browser:
                views = Views(browser, json.loads(dashboard.stdout.readline())["address"])
                for check in (views.curves, views.arithmetic, views.seeds, views.run_cards, views.run_on_data, views.theme, views.logs, views.difference):
                    check()
                assert not views.problems, "\n".join(views.problems)
        finally:
            dashboard.terminate()
            dashboard.wait(60)
    print("charts, cards, filters and differences showed the values of the runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
