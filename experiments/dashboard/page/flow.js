// The data flow of a run: what flows between the actors, how fast, and which actors wait.
import {bytes, number, svg} from './format.js';

const kWide = {
  width: 1120, box: [195, 96],
  environment: [4, 120], replay: [318, 120], learner: [632, 120], evaluator: [921, 14], checkpointer: [921, 226], servers: [632, 246], data: [318, 120],
};
const kNarrow = {
  width: 350, box: [206, 92],
  environment: [4, 4], replay: [4, 184], learner: [4, 364], evaluator: [186, 550], checkpointer: [4, 550], servers: [140, 700], data: [4, 184],
};
const kEdge = 4; // empty space around the outer boxes
const kGap = 88; // between two boxes of the narrow drawing, one below the other
const kBeside = 13; // characters of a line beside the narrow drawing
const kThin = 160; // width of the two boxes that are side by side in the narrow drawing

/** "3,200 steps/s" */
function rate(value, unit) {
  return `${number(value)} ${unit}/s`;
}

/** Nodes and edges of a run as text and numbers. `before` is the previous live.json, from which missing rates are computed. */
export function describe(run, before) {
  const {live, plan, status} = run;
  const waits = live.waits.concat(live.shards.filter((shard) => shard.waiting).map((shard) => `replay ${shard.index}: ${shard.waiting}`));
  const waiting = (role) => [...new Set(waits)].filter((line) => line.startsWith(role)).map((line) => line.replace(/^[^:]*: /, ''))[0] ?? '';
  const seconds = before ? live.training_seconds - before.training_seconds : 0;
  const inserts = seconds > 0 ? (live.inserts - before.inserts) / seconds : NaN;
  const environments = status?.environments || plan.environment_actors;
  const many = (count, name) => `${count} ${name}${count === 1 ? '' : 's'}`;
  // Runs of older versions have no queue lengths in their live.json.
  const queue = (count, text) => (count === undefined ? '' : `${number(count)} ${text}`);
  const running = run.state === 'running';
  const nodes = [];
  const edges = [];
  const add = (id, title, ...lines) => nodes.push({id, title, lines: lines.filter(Boolean), waiting: running ? waiting(id) : ''});
  if (plan.plays) {
    add('environment', many(environments, 'environment actor'), rate(live.environment_steps_per_second, 'steps'),
      live.frames > 0 ? rate(live.frames_per_second, 'frames') : '', `${number(live.environment_steps)} steps in all`);
  }
  if (plan.on_data) {
    add('data', 'Data', rate(live.samples_per_second, 'rows'), `${number(live.samples)} rows in all`);
  } else {
    add('replay', many(plan.shards, 'replay shard'), `${number(live.replay_items)} items`, bytes(live.replay_bytes),
      live.replay_disk_bytes > 0 ? `${bytes(live.replay_disk_bytes)} on disk` : '');
  }
  add('learner', many(plan.replicas, 'learner'), rate(live.updates_per_second, 'updates'), `${number(live.updates)} in all`,
    plan.replicas > 1 ? plan.strategy : '');
  add('evaluator', 'Evaluator', run.summary?.result === null ? `no evaluation${running ? ' yet' : ''}` : `result ${number(run.summary?.result)}`);
  const last = run.checkpoints[run.checkpoints.length - 1];
  add('checkpointer', 'Checkpoints', last === undefined ? `none${running ? ' yet' : ''}` : `at ${number(last)} updates`, status?.checkpoint?.writing ? 'one is being written' : '');
  const servers = plan.strategy.includes('parameter_server');
  if (servers) add('servers', many(plan.parameter_servers, 'parameter server'), `staleness ${number(live.learner.staleness_mean)}`);
  const edge = (from, to, lines, active, blocked = '') => edges.push({from, to, lines: lines.filter(Boolean), active: running && active, blocked: running ? blocked : ''});
  if (plan.plays) {
    edge('environment', 'replay', ['trajectories', Number.isFinite(inserts) ? rate(inserts, 'inserts') : '', queue(live.insertions_in_flight, 'in flight'),
      live.waiting_insertions > 0 ? `${number(live.waiting_insertions)} of them wait` : ''], live.environment_steps_per_second > 0, waiting('environment'));
    edge('learner', 'environment', [`parameters, version ${number(live.parameter_version)}`, `lag ${number(live.parameter_lag)} updates`],
      live.updates_per_second > 0);
  }
  if (plan.on_data) {
    edge('data', 'learner', ['batches', rate(live.samples_per_second, 'rows')], live.samples_per_second > 0);
  } else {
    const ratio = live.inserts > 0 ? live.samples / live.inserts : NaN;
    edge('replay', 'learner', ['batches', rate(live.samples_per_second, 'samples'), `${number(ratio)} per insert`,
      plan.plays && plan.samples_per_insert > 0 ? `(limit ${number(status?.rate_limiter?.samples_per_insert ?? plan.samples_per_insert)})` : '',
      queue(live.ready_batches, `${live.ready_batches === 1 ? 'batch' : 'batches'} ready`),
      live.waiting_samples > 0 ? `${many(live.waiting_samples, 'request')} wait${live.waiting_samples === 1 ? 's' : ''}` : ''], live.samples_per_second > 0, waiting('learner'));
  }
  edge('learner', 'evaluator', ['parameters'], live.updates_per_second > 0);
  edge('learner', 'checkpointer', [''], false);
  if (servers) edge('learner', 'servers', ['gradients'], live.updates_per_second > 0);
  return {nodes, edges, waits: [...new Set(waits)]};
}

/** The ends of an edge: the midpoints of the sides that face each other. */
function ends(layout, from, to) {
  const [width, height] = layout.box;
  const [ax, ay] = layout[from];
  const [bx, by] = layout[to];
  if (Math.abs(bx - ax) >= width) {
    return bx > ax ? [ax + width, ay + height / 2, bx, by + height / 2] : [ax, ay + height / 2, bx + width, by + height / 2];
  }
  const x = (Math.max(ax, bx) + Math.min(ax, bx) + width) / 2;
  return by > ay ? [x, ay + height, x, by] : [x, ay, x, by + height];
}

function drawEdge(layout, edge, narrow) {
  let [x1, y1, x2, y2] = ends(layout, edge.from, edge.to);
  const kind = `flow-edge${edge.active ? ' active' : ''}${edge.blocked ? ' blocked' : ''}`;
  const text = (x, y, anchor) => edge.lines.map((line, i) => svg('text', {x, y: y + i * 14, 'text-anchor': anchor, class: 'flow-label'}, line));
  if (edge.from === 'learner' && edge.to === 'environment') { // back to the environments, around replay
    const [width, height] = layout.box;
    const [ex, ey] = layout.environment;
    const [lx, ly] = layout.learner;
    const path = narrow ? `M ${lx + width} ${ly + height / 2} H ${lx + width + 40} V ${ey + height / 2} H ${ex + width + 4}`
      : `M ${lx + width / 2} ${ly} V 66 H ${ex + width / 2} V ${ey - 4}`;
    const label = narrow ? text(lx + width + 46, (ly + ey + height) / 2, 'start') : text((ex + lx + width) / 2, 38, 'middle');
    return [svg('path', {d: path, class: kind, 'marker-end': 'url(#arrow)'}), ...(narrow ? wrapped(label) : label)];
  }
  const level = Math.abs(y1 - y2) < 2;
  const shift = 4;
  const path = level || x1 === x2 ? `M ${x1} ${y1} L ${x2 - (level ? shift : 0)} ${y2 - (level ? 0 : Math.sign(y2 - y1) * shift)}`
    : `M ${x1} ${y1} H ${(x1 + x2) / 2} V ${y2} H ${x2 - shift}`;
  const label = narrow ? text(Math.max(x1, x2) + 8, y2 - kGap / 2 - (edge.lines.length - 1) * 7 + 4, 'start')
    : level ? text((x1 + x2) / 2, y1 - 10 - (Math.min(2, edge.lines.length) - 1) * 14, 'middle') : text(x1 + 8, (y1 + y2) / 2 + 4, 'start');
  if (!narrow && level) label.slice(2).forEach((line, i) => line.setAttribute('y', y1 + 20 + i * 14));
  const far = edge.to === 'evaluator' || edge.to === 'checkpointer';
  return [svg('path', {d: path, class: kind, 'marker-end': 'url(#arrow)'}), ...(far ? [] : label)];
}

/** Wraps labels beside the narrow drawing. */
function wrapped(labels) {
  const first = labels[0];
  const lines = labels.flatMap((label) => label.textContent.match(new RegExp(`\\S{${kBeside},}|\\S.{0,${kBeside - 1}}(?=\\s|$)`, 'g')));
  return lines.map((line, i) => svg('text', {x: first.getAttribute('x'), y: Number(first.getAttribute('y')) + i * 14 - lines.length * 7, class: 'flow-label'}, line));
}

export function drawFlow({nodes, edges}, narrow) {
  const layout = narrow ? kNarrow : kWide;
  const [boxWidth, boxHeight] = layout.box;
  const places = nodes.map((node) => layout[node.id]);
  const [left, top] = [0, 1].map((i) => Math.min(...places.map((place) => place[i])) - kEdge);
  const width = layout.width - left;
  const height = Math.max(...places.map(([, y]) => y)) + boxHeight + kEdge - top;
  const words = [...nodes.map((node) => `${node.title}: ${[...node.lines, node.waiting].filter(Boolean).join(', ')}`),
    ...edges.filter((edge) => edge.lines.length > 0).map((edge) => `From ${edge.from} to ${edge.to}: ${edge.lines.join(', ')}`)].join('. ');
  const picture = svg('svg', {viewBox: `${left} ${top} ${width} ${height}`, role: 'img', 'aria-label': `Data flow. ${words}`, class: 'flow'});
  picture.style.maxWidth = `${width}px`; // texts are not enlarged
  const marker = svg('marker', {id: 'arrow', viewBox: '0 0 8 8', refX: 4, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: 'userSpaceOnUse', orient: 'auto'},
    svg('path', {d: 'M 0 0 L 8 4 L 0 8 z', class: 'flow-arrow'}));
  picture.append(svg('defs', {}, marker));
  for (const edge of edges) picture.append(...drawEdge(layout, edge, narrow));
  for (const node of nodes) {
    const [x, y] = layout[node.id];
    const thin = narrow && (node.id === 'evaluator' || node.id === 'checkpointer') ? kThin : boxWidth;
    const group = svg('g', {class: `flow-node${node.waiting ? ' waiting' : ''}`},
      svg('rect', {x, y, width: thin, height: boxHeight, rx: 8}),
      svg('text', {x: x + 12, y: y + 23, class: 'flow-title'}, node.title),
      ...node.lines.map((line, i) => svg('text', {x: x + 12, y: y + 43 + i * 17, class: 'flow-line'}, line)));
    if (node.waiting) group.append(svg('title', {}, node.waiting), svg('circle', {cx: x + thin - 14, cy: y + boxHeight - 14, r: 5, class: 'flow-wait'}));
    picture.append(group);
  }
  return picture;
}
