// The list of runs: which ones are drawn, which one is focused, and their states.
import {h, number} from './format.js';
import {runName, runTime, shortName, store} from './store.js';

const kMostRows = 400;

function fits(run, words) {
  const text = `${run.id} ${run.experiment} ${run.task} ${run.agent} ${run.state} seed ${run.seed}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Progress towards the end of the run: "62 %". */
function progress(run) {
  const done = run.environment_steps > 0 ? run.environment_steps : run.updates;
  return run.target > 0 ? `${Math.min(100, Math.floor((100 * done) / run.target))} %` : '';
}

class Row {
  constructor(id) {
    this.box = h('input', {type: 'checkbox', onchange: () => store.show(id, this.box.checked)});
    this.swatch = h('span', {class: `swatch series-${store.colorNumber(id)}`});
    this.name = h('span', {class: 'run-name'});
    this.about = h('span', {class: 'muted run-about'});
    this.state = h('span', {class: 'state'});
    this.button = h('button', {type: 'button', class: 'run-button', onclick: () => store.setFocus(id)},
      h('span', {class: 'run-line'}, this.name, this.state), this.about);
    this.element = h('li', {}, h('label', {class: 'run-box'}, this.box, this.swatch), this.button);
  }

  update(run) {
    this.box.checked = store.shown.has(run.id);
    this.box.setAttribute('aria-label', `draw ${runName(run)}`);
    this.name.textContent = shortName(run);
    const parts = [run.sweep || runTime(run).slice(5, 16), run.agent, run.seed ? `seed ${run.seed}` : '',
      run.result === null ? '' : number(run.result)];
    this.about.textContent = run.problem ? 'its configuration was written by another version' : parts.filter(Boolean).join(' · ');
    this.state.textContent = run.state === 'finished' ? run.state : `${run.state} ${progress(run)}`.trim();
    this.state.className = `state state-${run.state}`;
    this.button.title = run.id;
    if (run.id === store.focus) this.button.setAttribute('aria-current', 'true');
    else this.button.removeAttribute('aria-current');
  }
}

export class RunList {
  constructor() {
    this.list = document.getElementById('run-list');
    this.filter = document.getElementById('run-filter');
    this.rows = new Map();
    this.filter.addEventListener('input', () => this.draw());
    document.getElementById('show-all').addEventListener('click', () => store.showOnly(this.filtered().map((run) => run.id)));
    document.getElementById('show-none').addEventListener('click', () => store.showOnly([]));
    if (matchMedia('(max-width: 800px)').matches) document.getElementById('runs-fold').open = false;
    store.addEventListener('runs', () => this.draw());
    store.addEventListener('chosen', () => this.draw());
  }

  filtered() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    return store.runs.filter((run) => fits(run, words));
  }

  draw() {
    const found = this.filtered();
    const rows = found.slice(0, kMostRows).map((run) => {
      if (!this.rows.has(run.id)) this.rows.set(run.id, new Row(run.id));
      const row = this.rows.get(run.id);
      row.update(run);
      return row.element;
    });
    const same = rows.length === this.list.children.length && rows.every((row, i) => row === this.list.children[i]);
    if (!same) this.list.replaceChildren(...rows);
    const live = store.runs.filter((run) => run.state === 'running').length;
    document.getElementById('run-count').textContent = `${store.runs.length}, ${live} running`;
    const more = document.getElementById('run-more');
    more.hidden = found.length > 0 && found.length <= kMostRows;
    more.textContent = store.runs.length === 0 ? 'There are no runs here yet: troupe train starts one.'
      : found.length === 0 ? 'No run matches the filter.' : `${found.length - kMostRows} more; the filter finds them.`;
  }
}
