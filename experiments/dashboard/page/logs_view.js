// The logs of the focused run.
import {get} from './api.js';
import {field, h} from './format.js';
import {fillRuns, store} from './store.js';

export class LogsView {
  constructor() {
    this.element = document.getElementById('view-logs');
    const again = () => this.refresh();
    this.run = h('select', {id: 'log-run', onchange: () => store.setFocus(this.run.value)});
    this.contains = h('input', {id: 'log-contains', type: 'search', autocomplete: 'off', oninput: again});
    this.who = h('input', {id: 'log-who', type: 'search', placeholder: 'head, environment/3', autocomplete: 'off', oninput: again});
    this.problems = h('input', {id: 'log-problems', type: 'checkbox', onchange: again});
    this.follow = h('input', {id: 'log-follow', type: 'checkbox', checked: true});
    this.note = h('p', {class: 'muted', role: 'status'});
    this.lines = h('div', {class: 'log', tabindex: '0', role: 'log', 'aria-label': 'Log lines', 'aria-live': 'off'});
    this.element.append(
      h('div', {class: 'tools'},
        field('Run', this.run), field('Contains', this.contains), field('From', this.who),
        h('label', {class: 'check'}, this.problems, ' warnings and errors only'),
        h('label', {class: 'check'}, this.follow, ' follow')),
      this.note, this.lines);
  }

  async refresh() {
    fillRuns(this.run, {value: store.focus});
    if (!store.focus) return false;
    const asked = {id: store.focus, contains: this.contains.value, who: this.who.value, problems: this.problems.checked ? '1' : ''};
    const told = await get('/api/logs', asked);
    const text = JSON.stringify(told);
    if (text === this.shown) return false;
    this.shown = text;
    this.note.textContent = told.lines.length === told.most ? `the newest ${told.most} lines` : `${told.lines.length} ${told.lines.length === 1 ? 'line' : 'lines'}`;
    this.lines.replaceChildren(...told.lines.map((line) => h('div', {class: line.level ? `line line-${line.level}` : 'line'},
      h('span', {class: 'muted'}, `${line.time.replace('T', ' ').replace('Z', '')} `),
      h('span', {class: 'who'}, `${line.who} `), line.text)));
    if (this.follow.checked) this.lines.scrollTop = this.lines.scrollHeight;
    return false;
  }
}
