// Compares runs: the keys in which they differ and their results, as a table and in parallel coordinates. A sweep can be chosen as a whole.
import {post} from './api.js';
import {columnName, duration, field, h, number, svg, tick} from './format.js';
import {roundTicks} from './statistics.js';
import {runName, store} from './store.js';

const kTop = 40;
const kHeight = 300;
const kSteps = ['#3b4cc0', '#2c7fb8', '#1fa187', '#7ad151', '#f9c80e', '#f8961e', '#d7301f']; // low to high

/** Positions on an axis: numbers by value, everything else in the order of appearance. */
function axis(name, values) {
  const numbers = values.map((value) => (typeof value === 'number' || (value !== '' && !Number.isNaN(Number(value))) ? Number(value) : NaN));
  const known = numbers.filter(Number.isFinite);
  const numeric = known.length > 0 && values.every((value, i) => value === null || Number.isFinite(numbers[i]));
  if (numeric) {
    let [low, high] = [Math.min(...known), Math.max(...known)];
    const distinct = [...new Set(known)];
    if (low === high) [low, high] = [low - 1, high + 1];
    return {
      name, place: (i) => (Number.isFinite(numbers[i]) && values[i] !== null ? (numbers[i] - low) / (high - low) : null),
      ticks: (distinct.length <= 6 ? distinct : roundTicks(low, high, 5)).map((value) => ({at: (value - low) / (high - low), text: tick(value)})),
    };
  }
  const kinds = [...new Set(values)];
  const at = (value) => (kinds.length === 1 ? 0.5 : kinds.indexOf(value) / (kinds.length - 1));
  return {
    name, place: (i) => at(values[i]),
    ticks: kinds.map((value) => ({at: at(value), text: value === '' ? 'empty' : String(value).slice(-18)})),
  };
}

/** Leaves out ticks whose texts would overlap those of earlier ones. */
function spaced(ticks) {
  const kept = [];
  for (const mark of ticks) {
    if (kept.every((other) => Math.abs(other.at - mark.at) * kHeight >= 12)) kept.push(mark);
  }
  return kept;
}

export class CompareView {
  constructor() {
    this.element = document.getElementById('view-compare');
    this.which = h('select', {id: 'compare-which', onchange: () => this.refresh()});
    this.note = h('p', {class: 'muted', role: 'status'});
    this.drawing = h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Parallel coordinates'});
    this.table = h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table of runs'});
    this.sort = {column: 'result', up: false};
    this.element.append(
      h('div', {class: 'tools'}, field('Runs', this.which)),
      this.note,
      h('article', {class: 'card'}, h('h3', {}, 'Parallel coordinates'), this.drawing,
        h('p', {class: 'muted'}, 'Each line is a run. Blue lines have the lowest results, red lines the highest.')),
      h('article', {class: 'card'}, h('h3', {}, 'Table'), this.table));
    new ResizeObserver(() => this.told && this.drawLines()).observe(this.drawing);
  }

  fill() {
    const sweeps = [...new Set(store.runs.map((run) => run.sweep).filter(Boolean))];
    const wanted = JSON.stringify(sweeps);
    if (this.filled === wanted) return;
    const first = this.filled === undefined && sweeps.length > 0 && !store.byId.get(store.focus)?.sweep ? '' : this.which.value;
    this.filled = wanted;
    this.which.replaceChildren(new Option('the selected runs', ''), ...sweeps.map((name) => new Option(`sweep ${name}`, name)));
    this.which.value = sweeps.includes(first) ? first : store.byId.get(store.focus)?.sweep ?? '';
  }

  async refresh() {
    this.fill();
    const sweep = this.which.value;
    const runs = sweep ? store.runs.filter((run) => run.sweep === sweep) : store.shownRuns();
    const told = await post('/api/compare', {runs: runs.slice(0, 500).map((run) => run.id)});
    const text = JSON.stringify([told, [...store.shown]]);
    if (text === this.shown) return false;
    this.shown = text;
    this.told = told;
    this.draw();
    return false;
  }

  draw() {
    const {keys, rows} = this.told;
    this.note.textContent = rows.length < 2 ? 'Choose two runs or more.'
      : keys.length === 0 ? `${rows.length} runs with the same configuration.` : `${rows.length} runs that differ in ${keys.join(', ')}.`;
    this.drawLines();
    this.drawTable(keys, rows);
  }

  drawLines() {
    const {keys, rows} = this.told;
    const headline = rows[0]?.headline ?? 'headline';
    const axes = keys.slice(0, 10).map((key, i) => axis(key, rows.map((row) => row.values[i])));
    axes.push(axis('training time (s)', rows.map((row) => row.training_seconds)));
    axes.push(axis(columnName(headline), rows.map((row) => row.result)));
    const width = Math.max(620, axes.length * 150, this.drawing.clientWidth);
    const at = (i) => 110 + (i * (width - 220)) / Math.max(1, axes.length - 1);
    const y = (place) => kTop + (1 - place) * kHeight;
    const picture = svg('svg', {
      width, height: kTop + kHeight + 24, role: 'img', class: 'parallel',
      'aria-label': `Each of ${rows.length} runs as a line through ${axes.map((one) => one.name).join(', ')}; the table below has the values`,
    });
    const result = axes[axes.length - 1];
    rows.forEach((row, r) => {
      const places = axes.map((one) => one.place(r));
      const points = places.map((place, i) => (place === null ? null : `${at(i)},${y(place)}`)).filter(Boolean);
      const good = result.place(r);
      const color = good === null ? undefined : kSteps[Math.min(kSteps.length - 1, Math.floor(good * kSteps.length))];
      picture.append(svg('polyline', {points: points.join(' '), color, class: 'parallel-line', 'data-run': row.id},
        svg('title', {}, runName(store.byId.get(row.id)))));
    });
    axes.forEach((one, i) => {
      picture.append(svg('line', {x1: at(i), x2: at(i), y1: kTop, y2: kTop + kHeight, class: 'parallel-axis'}));
      picture.append(svg('text', {x: at(i), y: 18 + (i % 2) * 12, 'text-anchor': 'middle', class: 'parallel-name'}, one.name.slice(-30)));
      for (const mark of spaced(one.ticks.slice(0, 12))) {
        picture.append(svg('text', {x: at(i) + 6, y: y(mark.at) + 4, class: 'parallel-tick'}, mark.text));
      }
    });
    this.drawing.replaceChildren(picture);
  }

  drawTable(keys, rows) {
    const columns = [
      {name: 'run', value: (row) => runName(store.byId.get(row.id))},
      {name: 'state', value: (row) => row.state},
      ...keys.map((key, i) => ({name: key, value: (row) => row.values[i]})),
      {name: 'result', value: (row) => row.result, text: number},
      {name: 'steps', value: (row) => row.environment_steps || row.updates, text: number},
      {name: 'time', value: (row) => row.training_seconds, text: duration},
    ];
    const by = columns.find((column) => column.name === this.sort.column) ?? columns[0];
    const sorted = [...rows].sort((a, b) => compare(by.value(a), by.value(b)) * (this.sort.up ? 1 : -1));
    const heads = columns.map((column) => {
      const active = column === by;
      const button = h('button', {type: 'button', class: 'sort', onclick: () => {
        this.sort = {column: column.name, up: active ? !this.sort.up : true};
        this.draw();
        this.table.querySelector('th[aria-sort] button')?.focus();
      }}, column.name, active ? (this.sort.up ? ' ▲' : ' ▼') : '');
      return h('th', {scope: 'col', 'aria-sort': active ? (this.sort.up ? 'ascending' : 'descending') : undefined}, button);
    });
    const lines = sorted.map((row) => h('tr', {
      onmouseenter: () => this.mark(row.id), onmouseleave: () => this.mark(null),
    }, ...columns.map((column) => {
      const text = (column.text ?? String)(column.value(row) ?? NaN);
      if (column.name !== 'run') return h('td', {}, text === 'NaN' ? '–' : text);
      return h('td', {}, h('button', {
        type: 'button', class: 'link', onfocus: () => this.mark(row.id), onblur: () => this.mark(null), onclick: () => {
          store.setFocus(row.id);
          location.hash = '#run';
        },
      }, text));
    })));
    this.table.replaceChildren(h('table', {},
      h('caption', {class: 'hidden'}, 'Runs, the keys in which they differ, and results'), h('thead', {}, h('tr', {}, ...heads)), h('tbody', {}, ...lines)));
  }

  /** Draws one run's line in front of the others. */
  mark(id) {
    for (const line of this.drawing.querySelectorAll('.parallel-line')) {
      line.classList.toggle('marked', line.dataset.run === id);
      line.classList.toggle('faded', id !== null && line.dataset.run !== id);
    }
  }
}

function compare(a, b) {
  const [x, y] = [Number(a ?? NaN), Number(b ?? NaN)];
  if (a !== '' && b !== '' && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  if (a === null || b === null) return (a === null ? 0 : 1) - (b === null ? 0 : 1);
  return String(a).localeCompare(String(b), 'en', {numeric: true});
}
