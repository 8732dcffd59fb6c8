// Learning curves of the chosen runs in one chart.
import {SeriesCache} from './api.js';
import {Chart} from './chart.js';
import {columnName, field, h} from './format.js';
import {meanCurve, smoothed} from './statistics.js';
import {runName, shortName, store, sweepPart} from './store.js';

const kMostRuns = 256; // the server accepts no more
const kAlong = ['environment_steps', 'frames', 'updates', 'training_seconds', 'processor_seconds'];
const kFirst = ['headline', 'episode_return', 'environment_steps_per_second', 'updates_per_second'];
const kNotDrawn = new Set(['kind', ...kAlong]);

let count = 0;

/** A chart with a selector for what it shows. */
class ChartCard {
  constructor(view, column) {
    this.view = view;
    this.cache = new SeriesCache();
    this.column = column;
    this.chart = new Chart(columnName(column), view.cards.length === 0 ? 360 : 240);
    const id = `column-${++count}`;
    this.select = h('select', {id, onchange: () => {
      this.column = this.select.value;
      this.chart.reset();
      view.refresh();
    }});
    const remove = h('button', {type: 'button', class: 'quiet', 'aria-label': 'Remove this chart', onclick: () => view.remove(this)}, '✕');
    this.note = h('span', {class: 'muted', role: 'status'});
    this.element = h('article', {class: 'card'},
      h('div', {class: 'card-head'}, h('label', {for: id, class: 'hidden'}, 'What this chart shows'), this.select, this.note, remove),
      this.chart.element);
    this.offer(new Set([column]));
  }

  /** Fills the selector. */
  offer(columns) {
    const names = [...new Set(['headline', ...columns, this.column])].filter((column) => !kNotDrawn.has(column));
    if (this.select.options.length === names.length) return;
    this.select.replaceChildren(...names.map((column) => new Option(columnName(column), column)));
    this.select.value = this.column;
  }

  async refresh(ids) {
    const points = Math.max(60, Math.min(600, Math.floor(60000 / Math.max(1, ids.length))));
    await this.cache.refresh(ids, this.view.along.value, this.column, points);
    this.draw();
  }

  draw() {
    const runs = store.shownRuns().filter((run) => this.cache.runs.has(run.id));
    const read = this.cache.read(runs.map((run) => run.id));
    this.note.textContent = read < 1 ? `reading, ${Math.floor(100 * read)} %` : '';
    const weight = Number(this.view.smoothing.value);
    const curves = runs.map((run) => {
      const curve = this.cache.runs.get(run.id);
      return {run, ...curve, mean: smoothed(curve.mean, weight)};
    });
    const lines = this.view.seeds.value === 'mean' ? grouped(curves) : curves.map((curve) => ({
      ...curve, name: runName(curve.run), color: store.color(curve.run.id), band: weight === 0,
    }));
    const along = this.view.along.value;
    this.chart.set(lines, {xName: columnName(along), time: along.endsWith('_seconds'), label: columnName(this.column)});
  }
}

/** One line for all runs that differ only in their seeds. Of several attempts of a sweep's run, only the newest counts. */
export function grouped(curves) {
  const groups = new Map();
  const parts = new Set();
  for (const curve of curves) { // the newest first
    const part = sweepPart(curve.run);
    if (part && parts.has(part)) continue;
    parts.add(part);
    if (!groups.has(curve.run.group)) groups.set(curve.run.group, []);
    groups.get(curve.run.group).push(curve);
  }
  return [...groups.values()].map((group) => {
    const first = group[0].run;
    const count = new Set(group.map((curve) => curve.run.seed)).size;
    const seeds = count === 1 ? 'one seed' : `${count} seeds`;
    const runs = group.length === count ? seeds : `${group.length} runs of ${seeds}`;
    const name = shortName(first).replace(/(, )?seed=\d+/, '');
    return {...meanCurve(group), name: `${name}, ${runs}`, color: store.color(first.id), band: group.length > 1, interval: group.length > 1};
  });
}

export class CurvesView {
  constructor() {
    this.element = document.getElementById('view-curves');
    this.cards = [];
    const redraw = () => this.redraw();
    this.along = h('select', {id: 'along', onchange: () => {
      this.cards.forEach((card) => card.chart.reset());
      this.refresh();
    }}, ...kAlong.map((column) => new Option(columnName(column), column)));
    this.smoothing = h('input', {id: 'smoothing', type: 'range', min: '0', max: '0.99', step: '0.01', value: '0', oninput: redraw});
    this.seeds = h('select', {id: 'seeds', onchange: redraw}, new Option('each run', 'each'), new Option('mean and 95 % interval', 'mean'));
    const add = h('button', {type: 'button', onclick: () => this.add('updates_per_second')}, 'Add a chart');
    this.grid = h('div', {class: 'charts'});
    this.element.append(
      h('div', {class: 'tools'},
        field('X-axis', this.along), field('Smoothing', this.smoothing), field('Seeds', this.seeds), add),
      this.grid,
      h('p', {class: 'muted hint'}, 'Drag over a chart to zoom, double-click to see all. With the keyboard: arrows, + and −, Escape. '
        + 'Bands show the range of the values behind each point, or the 95 % interval of the mean.'));
    for (const column of kFirst) this.add(column);
    store.addEventListener('chosen', () => !this.element.hidden && this.refresh());
  }

  add(column) {
    const card = new ChartCard(this, column);
    this.cards.push(card);
    this.grid.append(card.element);
    this.offer();
    if (!this.element.hidden) this.refresh();
  }

  redraw() {
    this.cards.forEach((card) => card.draw());
  }

  remove(card) {
    this.cards = this.cards.filter((one) => one !== card);
    card.element.remove();
  }

  offer() {
    const columns = new Set();
    for (const card of this.cards) card.cache.columns.forEach((column) => columns.add(column));
    this.cards.forEach((card) => card.offer(columns));
  }

  /** Returns whether there is more to read immediately. */
  async refresh() {
    const ids = store.shownRuns().slice(0, kMostRuns).map((run) => run.id);
    for (const card of this.cards) await card.refresh(ids);
    this.offer();
    return this.cards.some((card) => card.cache.read(ids) < 1);
  }
}
