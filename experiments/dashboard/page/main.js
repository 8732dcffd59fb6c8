// Chooses the view that is shown, and refreshes it.
import {CompareView} from './compare_view.js';
import {ConfigView} from './config_view.js';
import {CurvesView} from './curves_view.js';
import {LogsView} from './logs_view.js';
import {RunList} from './run_list.js';
import {RunView} from './run_view.js';
import {store} from './store.js';

const kPeriod = 2000;   // milliseconds between refreshes
const kSoon = 30;       // while files are being read
const kAway = 15000;    // while the page is hidden

function applyTheme(theme) {
  if (theme === 'system') document.documentElement.removeAttribute('data-theme');
  else document.documentElement.setAttribute('data-theme', theme);
}

class Page {
  constructor() {
    new RunList();
    this.views = {
      curves: new CurvesView(), run: new RunView(), compare: new CompareView(), config: new ConfigView(), logs: new LogsView(),
    };
    this.connection = document.getElementById('connection');
    this.problem = document.getElementById('problem');
    window.addEventListener('hashchange', () => this.open());
    document.addEventListener('visibilitychange', () => !document.hidden && this.soon());
    store.addEventListener('chosen', () => this.soon());
    this.theme();
    this.open();
  }

  theme() {
    const select = document.getElementById('theme');
    select.value = localStorage.getItem('theme') ?? 'system';
    applyTheme(select.value);
    const redraw = () => [this.views.curves, this.views.run].forEach((view) => view.redraw()); // canvases do not follow the style sheet
    select.addEventListener('change', () => {
      localStorage.setItem('theme', select.value);
      applyTheme(select.value);
      redraw();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  }

  open() {
    const wanted = location.hash.slice(1);
    if (wanted === 'main') return;
    this.name = this.views[wanted] ? wanted : 'curves';
    for (const [name, view] of Object.entries(this.views)) view.element.hidden = name !== this.name;
    for (const link of document.querySelectorAll('nav a')) {
      if (link.hash === `#${this.name}`) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    this.soon();
  }

  soon() {
    clearTimeout(this.timer);
    if (this.busy) this.again = true;
    else this.refresh();
  }

  /** Runs one refresh at a time. The next is timed from its end, so that a slow server gets fewer requests. */
  async refresh() {
    this.busy = true;
    let wait = kPeriod;
    try {
      await store.refresh();
      document.getElementById('folder').textContent = store.folder;
      const more = await this.views[this.name].refresh();
      wait = more || store.pending ? kSoon : kPeriod;
      this.told('live', '');
    } catch (error) {
      const gone = error instanceof TypeError; // fetch got no answer
      this.told(gone ? 'not connected' : 'error', gone ? '' : error.message);
    }
    this.busy = false;
    if (this.again) wait = 0;
    this.again = false;
    this.timer = setTimeout(() => this.refresh(), document.hidden ? kAway : wait);
  }

  told(state, problem) {
    if (this.connection.textContent !== state) this.connection.textContent = state;
    this.connection.className = `connection connection-${state === 'live' ? 'live' : 'lost'}`;
    this.problem.hidden = problem === '';
    if (this.problem.textContent !== problem) this.problem.textContent = problem;
  }
}

new Page();
