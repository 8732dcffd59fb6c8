// How actors spend their time: bars, divided into the stages that the actors measured.
import {h, show} from './format.js';

const kRoles = {environment: 'Environment actors', learner: 'Learners', replay: 'Replay shards', evaluator: 'Evaluator'};

/** {'learner.update': 3} -> Map {'learner' -> [['update', 3]]}, the longest stage first. */
function stagesByRole(seconds) {
  const roles = new Map();
  for (const [name, value] of Object.entries(seconds)) {
    const dot = name.indexOf('.');
    if (dot < 0 || !(value > 0)) continue;
    const role = name.slice(0, dot);
    if (!roles.has(role)) roles.set(role, []);
    roles.get(role).push([name.slice(dot + 1).replaceAll('_', ' '), value]);
  }
  for (const stages of roles.values()) stages.sort((a, b) => b[1] - a[1]);
  return roles;
}

/** `color` gives the number of a stage's color. */
function bar(title, stages, color) {
  const all = stages.reduce((sum, stage) => sum + stage[1], 0);
  return h('div', {class: 'stages'}, h('h4', {}, title),
    h('div', {class: 'bar', 'aria-hidden': 'true'}, ...stages.map(([name, seconds]) => {
      const part = h('span', {class: `series-${color(name)}`});
      part.style.width = `${Math.round((1000 * seconds) / all) / 10}%`;
      return part;
    })),
    h('ul', {class: 'legend'}, ...stages.map(([name, seconds]) => h('li', {},
      h('span', {class: `swatch series-${color(name)}`}), `${name} ${share(seconds / all)}`))));
}

function share(part) {
  return part < 0.005 ? 'below 1 %' : `${Math.round(100 * part)} %`;
}

/** The color of each stage of a role, which is the same for all actors of the role. */
function colorsOf(stages) {
  const names = stages.map(([name]) => name);
  return (name) => Math.max(0, names.indexOf(name)) % 10;
}

/** A bar for each role. */
export function roleBars(live) {
  const roles = stagesByRole(live?.seconds ?? {});
  if (roles.size === 0) return h('p', {class: 'muted'}, 'No actor has measured its stages yet.');
  return h('div', {}, ...[...roles].map(([role, stages]) => bar(kRoles[role] ?? role, stages, colorsOf(stages))));
}

/** A bar for each actor with its host; drawn only while it is unfolded, because there may be many. */
export class ActorBars {
  constructor() {
    this.title = h('summary');
    this.bars = h('div', {class: 'actor-times', tabindex: '0', role: 'region', 'aria-label': 'Time of each actor'});
    this.element = h('details', {ontoggle: () => this.draw()}, this.title, this.bars);
  }

  set(told) {
    this.told = told;
    const actors = told.live?.actors ?? []; // runs of older versions have none
    this.element.hidden = actors.length === 0;
    this.title.textContent = `Each actor (${actors.length})`;
    this.draw();
  }

  draw() {
    if (!this.element.open || this.element.hidden) return;
    const {live, status} = this.told;
    const roles = stagesByRole(live.seconds);
    const hosts = new Map((status?.processes ?? []).map((one) => [`${one.role} ${one.index}`, one.node || 'the head’s host']));
    const drawn = live.actors.flatMap(({role, index, seconds}) => {
      const name = `${role} ${index}`;
      const title = hosts.has(name) ? `${name} on ${hosts.get(name)}` : name;
      return [...stagesByRole(seconds)].map(([part, stages]) => bar(title, stages, colorsOf(roles.get(part) ?? stages)));
    });
    const more = live.actors_left_out > 0 ? [h('p', {class: 'muted'}, `Left out: ${live.actors_left_out} more actors; those with the lowest numbers are shown.`)] : [];
    show(this.bars, ...drawn, ...more);
  }
}
