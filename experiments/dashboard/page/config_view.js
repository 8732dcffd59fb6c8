// The resolved configuration of the focused run, and its differences from another run's.
import {get} from './api.js';
import {field, h, show, table} from './format.js';
import {fillRuns, runName, store} from './store.js';

export class ConfigView {
  constructor() {
    this.element = document.getElementById('view-config');
    this.run = h('select', {id: 'config-run', onchange: () => store.setFocus(this.run.value)});
    this.other = h('select', {id: 'config-other', onchange: () => this.refresh()});
    this.differences = h('div', {'aria-live': 'polite'});
    this.text = h('pre', {class: 'config', tabindex: '0', 'aria-label': 'Configuration'});
    this.element.append(
      h('div', {class: 'tools'},
        field('Run', this.run), field('Compared with', this.other)),
      h('article', {class: 'card'}, h('h3', {}, 'Differences'), this.differences),
      h('article', {class: 'card'}, h('h3', {}, 'Configuration'), this.text));
  }

  async refresh() {
    fillRuns(this.run, {value: store.focus});
    fillRuns(this.other, {none: 'no other run', value: this.other.value});
    if (!store.focus) return false;
    const told = await get('/api/config', {id: store.focus, other: this.other.value});
    if (this.text.textContent !== told.text) this.text.textContent = told.text;
    show(this.differences, this.difference(told));
    return false;
  }

  difference(told) {
    if (!told.other) return h('p', {class: 'muted'}, 'Choose another run to see the keys in which they differ.');
    if (told.differences.length === 0) return h('p', {}, 'All keys are equal.');
    const name = (id) => runName(store.byId.get(id));
    const cell = (text) => text === '' ? h('span', {class: 'muted'}, 'empty') : text;
    return table('Keys that differ', ['key', name(told.other), name(told.id)],
      told.differences.map(({key, before, after}) => [h('code', {}, key), cell(before), cell(after)]));
  }
}
