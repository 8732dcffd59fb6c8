// The state of the page: the runs, which of them are shown, and which one is focused.
import {get} from './api.js';

const kColors = 10; // --series-0 to --series-9

class Store extends EventTarget {
  constructor() {
    super();
    this.runs = [];
    this.byId = new Map();
    this.shown = new Set(); // ids
    this.focus = '';        // id
    this.pending = true;
    this.known = false;     // whether the list has arrived
  }

  async refresh() {
    const told = await get('/api/runs');
    this.runs = told.runs;
    this.byId = new Map(told.runs.map((run) => [run.id, run]));
    this.folder = told.folder;
    this.pending = told.pending;
    for (const id of this.shown) if (!this.byId.has(id)) this.shown.delete(id);
    if (!this.byId.has(this.focus)) this.focus = '';
    if (!this.known && told.runs.length > 0) this.choose(told.selected);
    this.dispatchEvent(new Event('runs'));
  }

  /** The initial selection: the selected run or the newest one, and the newest others. */
  choose(selected) {
    this.known = true;
    this.focus = this.byId.has(selected) ? selected : this.runs[0].id;
    this.shown.add(this.focus);
    for (const run of this.runs.slice(0, 9)) this.shown.add(run.id);
  }

  changed() {
    this.dispatchEvent(new Event('chosen'));
  }

  show(id, on) {
    if (on) this.shown.add(id);
    else this.shown.delete(id);
    this.changed();
  }

  showOnly(ids) {
    this.shown = new Set(ids);
    this.changed();
  }

  setFocus(id) {
    this.focus = id;
    this.changed();
  }

  shownRuns() {
    return this.runs.filter((run) => this.shown.has(run.id));
  }

  /** The color of a run, which it keeps while it is in the list. */
  color(id) {
    this.colors ??= new Map();
    if (!this.colors.has(id)) this.colors.set(id, this.colors.size % kColors);
    return getComputedStyle(document.documentElement).getPropertyValue(`--series-${this.colors.get(id)}`).trim();
  }

  colorNumber(id) {
    this.color(id);
    return this.colors.get(id);
  }
}

export const store = new Store();

/** "2026-11-25 10:00:00", from the name of a run's folder. */
export function runTime(run) {
  return run.started.replace('T', ' ').replace(/(\d\d)-(\d\d)-(\d\d)(-\d+)?$/, '$1:$2:$3$4');
}

/** The folder of a sweep's run, which may contain earlier attempts as well; '' for other runs. */
export function sweepPart(run) {
  const folder = run.id.split('/').slice(0, -2).join('/');
  return /_seed=\d+$/.test(folder) ? folder : '';
}

/** "cartpole"; for a run of a sweep, what varies: "n_step=5, seed=1". */
export function shortName(run) {
  const name = run.experiment || run.id.split('/').slice(-2)[0];
  if (!run.sweep) return name;
  const part = run.id.split('/')[1].replace(`${name}_`, '');
  const varied = [...part.matchAll(/([A-Za-z][\w.]*)=([^=]*?)(?=_[A-Za-z][\w.]*=|$)/g)];
  return varied.map(([, key, value]) => `${key.split('.').pop()}=${value}`).join(', ') || part;
}

/** Likewise with the run's time or sweep, which makes the name unique. */
export function runName(run) {
  return run.sweep ? `${run.sweep}: ${shortName(run)}` : `${shortName(run)}, ${runTime(run)}`;
}

/** A form control to choose a run. */
export function fillRuns(select, {none, value}) {
  const options = store.runs.map((run) => [run.id, runName(run)]);
  const wanted = JSON.stringify([none, options]);
  if (select.filled !== wanted) {
    select.filled = wanted;
    select.replaceChildren();
    if (none !== undefined) select.append(new Option(none, ''));
    for (const [id, name] of options) select.append(new Option(name, id));
  }
  select.value = value;
}
