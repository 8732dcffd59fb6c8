// The newest recorded timeline of a run: learner 0's spans as a strip, and all actors' times as a table.
import {fileAddress} from './api.js';
import {h, show, svg, table} from './format.js';

const kMostDrawn = 2000; // spans
const kWidth = 1000, kRow = 22;

function milliseconds(microseconds) {
  return `${(microseconds / 1000).toPrecision(3)} ms`;
}

/** The nesting depth of each span within its lane. */
function withDepths(spans) {
  const open = new Map();
  return [...spans].sort((a, b) => a.tid - b.tid || a.ts - b.ts || b.dur - a.dur).map((span) => {
    if (!open.has(span.tid)) open.set(span.tid, []);
    const ends = open.get(span.tid);
    while (ends.length > 0 && ends.at(-1) <= span.ts) ends.pop();
    ends.push(span.ts + span.dur);
    return {...span, depth: ends.length - 1};
  });
}

/** The actors of a trace with their spans; learners come first, as in the file. */
export function actorsOf(trace) {
  const actors = new Map();
  for (const event of trace.traceEvents) {
    if (event.name === 'process_name') actors.set(event.pid, {name: event.args.name.replace(/ \(.*/, ''), dropped: event.args.dropped_spans, spans: []});
  }
  for (const event of trace.traceEvents) if (event.ph === 'X') actors.get(event.pid)?.spans.push(event);
  return [...actors.values()];
}

export class TimelineStrip {
  constructor() {
    this.element = h('div', {class: 'timeline'});
    this.shown = '';
  }

  async refresh(id, files) {
    const newest = files?.[0];
    const key = `${id} ${newest?.path} ${newest?.time}`;
    if (key === this.shown) return;
    this.shown = key;
    if (!newest) {
      show(this.element, h('p', {class: 'muted'}, 'None yet: “Record timeline” above or troupe timeline records one.'));
      return;
    }
    const address = fileAddress(id, newest.path);
    try {
      const trace = await (await fetch(address)).json();
      if (this.shown === key) this.draw(trace, address, newest.path);
    } catch {
      this.shown = ''; // the file was being replaced: the next refresh tries again
    }
  }

  draw(trace, address, path) {
    const actors = actorsOf(trace);
    const learner = actors.find((one) => one.name.startsWith('learner') && one.spans.length > 0);
    const parts = [h('p', {class: 'muted'}, `${path}; Perfetto opens `, h('a', {href: address, download: path.replace('timelines/', 'timeline-')}, 'the whole trace'), '.')];
    if (learner) parts.push(h('div', {class: 'timeline-box', tabindex: '0', role: 'group', 'aria-label': 'Timeline, scrolls sideways'}, this.strip(learner)));
    parts.push(this.times(actors));
    show(this.element, ...parts);
  }

  strip(learner) {
    const spans = withDepths(learner.spans).slice(0, kMostDrawn);
    const lanes = [...new Set(spans.map((span) => span.tid))];
    const rows = new Map(); // lane -> its first row
    let row = 0;
    for (const lane of lanes) {
      rows.set(lane, row);
      row += 1 + Math.max(...spans.filter((span) => span.tid === lane).map((span) => span.depth));
    }
    const end = Math.max(...spans.map((span) => span.ts + span.dur), 1);
    const names = [...new Set(spans.map((span) => span.name.replace(/ \d+$/, '')))];
    const drawing = svg('svg', {viewBox: `0 0 ${kWidth} ${row * kRow + 18}`, class: 'timeline-strip', role: 'img', 'aria-label': `${learner.name}: ${spans.length} spans in ${milliseconds(end)}; the table below has their times`});
    for (const span of spans) {
      const x = (kWidth * span.ts) / end, width = Math.max((kWidth * span.dur) / end, 0.5);
      const y = (rows.get(span.tid) + span.depth) * kRow;
      drawing.append(svg('rect', {x, y: y + 2, width, height: kRow - 4, class: `timeline-span series-${names.indexOf(span.name.replace(/ \d+$/, '')) % 10}`},
        svg('title', {}, `${span.name}, ${milliseconds(span.dur)}`)));
    }
    const label = (x, text, anchor) => drawing.append(svg('text', {x, y: row * kRow + 14, 'text-anchor': anchor, class: 'timeline-label'}, text));
    label(0, '0 ms', 'start');
    label(kWidth, milliseconds(end), 'end');
    return h('div', {}, drawing, h('ul', {class: 'legend'}, ...names.map((name, i) => h('li', {}, h('span', {class: `swatch series-${i % 10}`}), name))));
  }

  /** For each actor and stage, how often it ran and how long it took. */
  times(actors) {
    const rows = [];
    for (const actor of actors) {
      const stages = new Map();
      for (const span of actor.spans) {
        const name = span.name.replace(/ \d+$/, '');
        const sum = stages.get(name) ?? {count: 0, time: 0};
        stages.set(name, {count: sum.count + 1, time: sum.time + span.dur});
      }
      for (const [name, sum] of stages) rows.push([actor.name, name, String(sum.count), milliseconds(sum.time), milliseconds(sum.time / sum.count)]);
    }
    return table('Times in the timeline', ['actor', 'stage', 'spans', 'total time', 'mean time'], rows.slice(0, 200));
  }
}
