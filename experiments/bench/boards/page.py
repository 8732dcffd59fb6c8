"""The page of a board: tables and curves, without scripts or external links."""
import html

COLOURS = {"d4pg": "#d55e00", "drqv2": "#d55e00", "mrq": "#009e73", "dr_q": "#cc79a7", "tdmpc2": "#e69f00", "dreamerv3": "#56b4e9", "simbav2_utd1": "#7f5fc7"}
OTHERS, OURS = "#b5b5b5", "#1f4fb4"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 300, 44, 10, 26, 30

STYLE = """:root{color-scheme:light dark}body{font-family:sans-serif;max-width:92em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}caption{text-align:left;font-weight:bold;padding:.4em 0}
td,th{padding:.3em 1em .3em 0;text-align:left;border-bottom:1px solid #8884}figure{display:inline-block;margin:.4em}svg{max-width:100%;height:auto}
.key span{white-space:nowrap;margin-right:1.2em}.key i{display:inline-block;width:1.6em;height:.3em;vertical-align:middle;margin-right:.4em}"""


def table(caption, rows):
    def line(row, is_head):
        cells = [("th" if is_head or i == 0 else "td", html.escape(cell)) for i, cell in enumerate(row)]
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for tag, cell in cells) + "</tr>"

    return f"<table><caption>{html.escape(caption)}</caption>\n" + "\n".join(line(row, i == 0) for i, row in enumerate(rows)) + "</table>\n"


def value_at(curve, step):
    """Returns the interpolated value of a curve at a step within it."""
    before = max(p for p in curve if p[0] <= step)
    after = min(p for p in curve if p[0] >= step)
    return before[1] if after[0] == before[0] else before[1] + (step - before[0]) / (after[0] - before[0]) * (after[1] - before[1])


def mean_curve(curves):
    """Returns the mean over the seeds, at the steps that all of them cover."""
    first, last = max(curve[0][0] for curve in curves), min(curve[-1][0] for curve in curves)
    return [(step, sum(value_at(curve, step) for curve in curves) / len(curves)) for step in sorted({p[0] for curve in curves for p in curve if first <= p[0] <= last})]


def picture(board, task):
    curves = [run.points for run in board.of(task) if run.points]
    end = max([board.mark, *(curve[-1][0] for curve in curves)])
    published = {method: [p for p in tasks[task][1] if p[0] <= end] for method, tasks in board.published.methods.items() if task in tasks}
    top = max([1.0, *(p[1] for curve in [*curves, *published.values()] for p in curve)])
    top = next(limit for limit in [10, 50, 100, 200, 400, 600, 800, 1000, float("inf")] if top <= limit)
    top = top if top < float("inf") else max(p[1] for curve in [*curves, *published.values()] for p in curve)

    def line(curve, colour, width, name, more=""):
        points = " ".join(f"{LEFT + p[0] / end * (WIDTH - LEFT - RIGHT):.1f},{HEIGHT - BOTTOM - p[1] / top * (HEIGHT - TOP - BOTTOM):.1f}" for p in curve)
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"{more}><title>{html.escape(name)}</title></polyline>\n'

    out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11" role="img" '
           f'aria-label="{html.escape(task)}: return over environment steps"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n']
    for part in (0, 0.25, 0.5, 0.75, 1):
        y, x = HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM), LEFT + part * (WIDTH - LEFT - RIGHT)
        out.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#ddd"/><text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{part * top:g}'
                   f'</text><text x="{x}" y="{HEIGHT - 10}" text-anchor="{"end" if part == 1 else "middle"}">{part * end / 1000:g}k</text>\n')
    out.append(f'<text x="{WIDTH / 2}" y="16" text-anchor="middle" font-weight="bold">{html.escape(task)}{"" if curves else ": no evaluation of ours yet"}</text>\n')
    for method in sorted(published, key=lambda method: method in COLOURS):
        out.append(line(published[method], COLOURS.get(method, OTHERS), 1.2, board.published.sources[method]["name"]))
    best = board.published.best(task, board.mark)
    if best:
        out.append(line([(0, best[0]), (end, best[0])], "#000", 0.8, f"best published at {board.mark:,}: {best[0]}", ' stroke-dasharray="4 4"'))
    for run in board.of(task):
        if len(curves) > 1 and run.points:
            out.append(line(run.points, OURS, 1, f"Troupe, seed {run.seed}", ' stroke-opacity="0.45"'))
    if curves:
        mean = mean_curve(curves)
        out.append(line(mean, OURS, 2.8, f"Troupe, mean of {len(curves)} seeds"))
        out += [f'<circle cx="{LEFT + x / end * (WIDTH - LEFT - RIGHT):.1f}" cy="{HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM):.1f}" r="2" fill="{OURS}"/>'
                for x, y in mean[-1:]]
    return f'<figure id="{html.escape(board.name)}-{html.escape(task)}">{"".join(out)}</svg></figure>\n'


def key(board):
    names = [(OURS, f"Troupe, {board.agent} (thin: seeds)"), ("#000", "best published (dashed)")]
    names += [(COLOURS[method], source["name"]) for method, source in board.published.sources.items() if method in COLOURS]
    others = ", ".join(source["name"] for method, source in board.published.sources.items() if method not in COLOURS)
    shown = [f'<i style="background:{colour}"></i>{html.escape(name)}' for colour, name in [*names, (OTHERS, others)]]
    return '<p class="key">' + "".join(f"<span>{one}</span>" for one in shown[:-1]) + shown[-1] + "</p>\n"


def runs_table(board):
    rows = [["run", "state", "environment steps", "last evaluation", "core-hours", "processor", "commit"]]
    for run in board.runs:
        hours, is_measured = run.hours() if run.seconds else (0, True)
        rows.append([run.part.name, "done" if run.done else "not finished", f"{run.steps:,} of {run.length:,}", f"{run.points[-1][1]:.1f}" if run.points else "-",
                     ("" if is_measured else "at most ") + f"{hours:.2g}", f"{run.origin.get('processor', '-')}, {run.cores} cores",
                     (run.origin.get("commit") or "-")[:12]])
    return table(f"{board.name}: runs", rows)


def section(board):
    out = [f"<h2>{html.escape(board.name)}</h2>\n"]
    if board.missing():
        out.append(f'<p class="missing"><b>Without a finished run</b>, and not in the means: {html.escape(", ".join(board.missing()))}.</p>\n')
    out += [table(caption, rows) for caption, rows in board.tables()]
    out += [key(board), *(picture(board, task) for task in board.tasks), runs_table(board)]
    sources = [["method", "paper", "figures from"], *([source["name"], source["paper"], source["figures"]] for source in board.published.sources.values())]
    return "".join([*out, table(f"What is published (experiments/configs/published/{board.published.path.name})", sources)])


def page_of(boards):
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Board</title>\n<style>{STYLE}'
            "</style></head><body>\n<h1>Beside what is published</h1>\n<p>Ours are finished runs: the last evaluation of each, means and interquartile means with "
            "95 % intervals of the stratified bootstrap over seeds. Published: means over seeds of the evaluation nearest to the mark, over the same tasks; only means "
            "are published in one form by all, so they have no interquartile means. The best of each task is the greatest of many noisy means, thus optimistic. "
            "Core-hours are processor time of all processes of a run, with acting and evaluations; a GPU's time is not in them. "
            "&ldquo;At most&rdquo;: it was not measured, and the wall-clock time of training counts for every core of the machine.</p>\n"
            + "".join(map(section, boards)) + "</body></html>\n")
