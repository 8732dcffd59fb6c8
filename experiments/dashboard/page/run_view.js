// One run: its data flow, use of time and memory, restarts and failures, pictures, and actions.
import {fileAddress, get, post, SeriesCache} from './api.js';
import {Chart} from './chart.js';
import {describe, drawFlow} from './flow.js';
import {bytes, columnName, duration, field, h, number, show, table} from './format.js';
import {LivePicture} from './live_picture.js';
import {fillRuns, runName, store} from './store.js';
import {ActorBars, roleBars} from './time_use.js';
import {TimelineStrip} from './timeline.js';

function card(title, ...children) {
  return h('article', {class: 'card'}, h('h3', {}, title), ...children);
}

function facts(pairs) {
  return h('dl', {class: 'facts'}, ...pairs.filter(([, value]) => value !== '').map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

/** Asks for confirmation of actions that cannot be undone. */
function confirmed(title, text, yes) {
  const dialog = document.getElementById('confirm');
  document.getElementById('confirm-title').textContent = title;
  document.getElementById('confirm-text').textContent = text;
  document.getElementById('confirm-yes').textContent = yes;
  dialog.returnValue = 'no';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), {once: true});
  });
}

export class RunView {
  constructor() {
    this.element = document.getElementById('view-run');
    this.run = h('select', {id: 'run-run', onchange: () => store.setFocus(this.run.value)});
    this.state = h('span', {class: 'state'});
    this.summary = h('div');
    this.flow = h('div', {class: 'flow-box'});
    this.waits = h('div', {class: 'waits'});
    this.time = h('div');
    this.actorTime = new ActorBars();
    this.memory = h('div');
    this.failures = h('div');
    this.processes = h('div');
    this.pictures = h('div', {class: 'pictures figures'});
    this.cache = new SeriesCache();
    this.lag = new Chart('Parameter lag', 200);
    this.timeline = new TimelineStrip();
    this.live = new LivePicture();
    this.makeActions();
    this.element.append(
      h('div', {class: 'tools'}, field('Run', this.run), this.state),
      card('Data flow', this.summary, this.flow, this.waits),
      this.actions,
      h('div', {class: 'cards'},
        card('How actors spend their time', this.time, this.actorTime.element), card('Memory', this.memory),
        this.lagCard = card('Parameter lag (updates)', this.lag.element), card('Restarts and failures', this.failures),
        this.liveCard = card('Live environment', this.live.element), this.pictureCard = card('Newest video and pictures', this.pictures)),
      this.timelineCard = card('Timeline of the learner’s steps', this.timeline.element),
      this.processCard = card('Processes', this.processes));
    const narrow = matchMedia('(max-width: 640px)');
    narrow.addEventListener('change', () => this.told && this.drawFlow());
    this.narrow = narrow;
  }

  makeActions() {
    this.done = h('p', {role: 'status', class: 'done'});
    this.why = h('p', {class: 'muted'});
    this.count = h('input', {id: 'scale-count', type: 'number', min: '0', max: '65536', value: '1'});
    this.updates = h('input', {id: 'timeline-updates', type: 'number', min: '1', max: '1000', value: '10'});
    this.ratio = h('input', {id: 'limit-ratio', type: 'number', min: '0', max: '1000000', step: 'any', value: '1'});
    this.buffer = h('input', {id: 'limit-buffer', type: 'number', min: '0', max: '1000000000', step: 'any', value: '0'});
    this.role = h('select', {id: 'restart-role'}, ...['environment', 'evaluator', 'learner', 'replay'].map((role) => new Option(role, role)), new Option('all roles', ''));
    const button = (text, action, kind) => h('button', {type: 'button', class: kind, onclick: () => this.act(action)}, text);
    this.controls = {
      scale: h('div', {class: 'action'}, h('label', {for: 'scale-count'}, 'Environment actors '), this.count,
        button('Scale', () => ['/api/scale', {role: 'environment', count: Number(this.count.value)}])),
      restart: h('div', {class: 'action'}, h('label', {for: 'restart-role'}, 'Restart the processes of '), this.role,
        button('Restart', () => ['/api/restart', {role: this.role.value, node: ''}])),
      checkpoint: h('div', {class: 'action'}, h('span', {}, 'While the run continues '), button('Write a checkpoint', () => ['/api/checkpoint', {}])),
      pause: h('div', {class: 'action'}, h('span', {}, 'Environments and learners '),
        button('Pause', () => ['/api/pause', {paused: true}]), button('Resume', () => ['/api/pause', {paused: false}])),
      timeline: h('div', {class: 'action'}, h('label', {for: 'timeline-updates'}, 'Updates to record '), this.updates,
        button('Record timeline', () => ['/api/timeline', {updates: Number(this.updates.value)}])),
      limit: h('div', {class: 'action'}, h('label', {for: 'limit-ratio'}, 'Samples per insert '), this.ratio,
        h('label', {for: 'limit-buffer'}, 'error buffer (0: automatic) '), this.buffer,
        button('Change the rate limiter', () => ['/api/limit', {samples_per_insert: Number(this.ratio.value), error_buffer: Number(this.buffer.value)}])),
      stop: h('div', {class: 'action'}, h('span', {}, 'Write a checkpoint and end '), button('Stop the run', async () => (
        await confirmed('Stop this run?', `${runName(store.byId.get(store.focus))} writes a checkpoint and ends. troupe resume continues it.`, 'Stop the run')
          ? ['/api/stop', {}] : null), 'danger')),
    };
    this.actions = card('Actions', this.why, ...Object.values(this.controls), this.done);
  }

  async act(action) {
    const id = store.focus;
    const asked = await action();
    if (!asked) return;
    this.done.textContent = 'asking the run …';
    this.done.classList.remove('problem');
    try {
      this.done.textContent = (await post(asked[0], {id, ...asked[1]})).done;
    } catch (error) {
      this.done.textContent = error.message;
      this.done.classList.add('problem');
    }
    this.refresh();
  }

  async refresh() {
    fillRuns(this.run, {value: store.focus});
    if (!store.focus) return false;
    const told = await get('/api/run', {id: store.focus});
    if (told.id !== store.focus) return true;
    if (this.told?.id !== told.id) {
      this.before = null;
      this.done.textContent = '';
      this.count.value = told.plan?.environment_actors ?? 1;
      this.ratio.value = told.status?.rate_limiter?.samples_per_insert ?? told.plan?.samples_per_insert ?? 1;
    } else if (this.told.live && told.live && this.told.live.time !== told.live.time) {
      this.before = this.told.live;
    }
    this.told = told;
    told.summary = store.byId.get(told.id);
    this.draw();
    const column = this.lagColumn();
    this.lagCard.firstChild.textContent = column === 'parameter_lag' ? 'Parameter lag (updates)' : 'Updates per second';
    await this.cache.refresh([told.id], 'training_seconds', column, 300);
    this.redraw();
    await this.timeline.refresh(told.id, told.timelines);
    return false;
  }

  draw() {
    const {told} = this;
    this.state.textContent = told.state;
    this.state.className = `state state-${told.state}`;
    this.drawFlow();
    show(this.time, roleBars(told.live));
    this.actorTime.set(told);
    show(this.memory, this.memoryFacts());
    show(this.failures, ...this.failureParts());
    this.drawPictures();
    const {status} = told;
    this.processCard.hidden = !status?.processes?.length;
    if (status?.processes?.length) {
      show(this.processes, table('Processes', ['process', 'node', 'id', 'state', 'for', 'restarts'], status.processes.map((one) => [
        `${one.role}/${one.index}`, one.node || '(the head’s)', one.process ? String(one.process) : '–', one.state, duration(one.seconds),
        `${one.restarts} of ${status.restarts_allowed}`])));
    }
    this.why.textContent = told.actions.length > 0 ? '' : told.state === 'running' ? told.why_no_actions : 'The run is over.';
    this.why.hidden = this.why.textContent === '';
    this.done.hidden = told.actions.length === 0 && this.done.textContent === '';
    const watchable = told.actions.includes('picture');
    this.liveCard.hidden = !watchable;
    this.live.set(watchable ? told.id : '');
    this.timelineCard.hidden = told.timelines.length === 0 && !told.actions.includes('timeline');
    for (const [name, control] of Object.entries(this.controls)) control.hidden = !told.actions.includes(name);
  }

  drawFlow() {
    const {told} = this;
    const {live, plan, summary} = told;
    const end = summary?.target > 0 ? Math.min(1, (plan?.plays ? summary.environment_steps : summary.updates) / summary.target) : 0;
    show(this.summary, facts([
      ['task', summary?.task ?? ''], ['agent', summary?.agent ?? ''],
      ['training time', duration(live?.training_seconds ?? summary?.training_seconds)],
      ['progress', end > 0 ? `${Math.floor(100 * end)} % of ${number(summary.target)}` : ''],
      ['return', plan?.plays === false ? '' : number(live?.episode_return)], ['result', number(summary?.result)],
      ['phase', told.status?.phase ?? ''],
      ['samples per insert', told.status?.rate_limiter ? `${number(told.status.rate_limiter.samples_per_insert)}${told.status.rate_limiter.changed ? ', changed' : ''}` : '']]));
    if (!live || !plan) {
      show(this.flow, h('p', {class: 'muted'}, told.state === 'running' ? 'The run has not reported yet.' : 'This run has no live.json: it was written by an older version, or ended before its first report.'));
      show(this.waits);
      return;
    }
    const flow = describe(told, this.before);
    this.flow.replaceChildren(drawFlow(flow, this.narrow.matches));
    show(this.waits, ...(told.state === 'running' && flow.waits.length > 0
      ? [h('h4', {}, 'Waiting'), h('ul', {}, ...flow.waits.slice(0, 20).map((line) => h('li', {}, line)))] : []));
  }

  memoryFacts() {
    const {live, plan, status} = this.told;
    if (!live) return h('p', {class: 'muted'}, 'unknown');
    const each = live.replay_items > 0 ? live.replay_bytes / live.replay_items : NaN;
    return facts([
      ['replay', plan?.on_data ? '' : `${bytes(live.replay_bytes)} of ${bytes(plan?.capacity_bytes)}`],
      ['items', plan?.on_data ? '' : `${number(live.replay_items)} of ${number(plan?.capacity_items)}`],
      ['bytes per item', plan?.on_data ? '' : bytes(each)],
      ['replay on disk', live.replay_disk_bytes > 0 ? bytes(live.replay_disk_bytes) : ''],
      ['failed copies', live.failed_copies > 0 ? number(live.failed_copies) : ''],
      ['failed spills', live.replay_failed_spills > 0 ? number(live.replay_failed_spills) : ''],
      [status ? 'the head’s process' : 'the process', bytes(live.process_bytes)],
      ['staleness', live.learner.staleness_mean === undefined || live.learner.staleness_mean === null ? ''
        : `${number(live.learner.staleness_mean)} on average, ${number(live.learner.staleness_max)} at most`],
      ['dropped gradients', live.learner.dropped_gradients > 0 ? number(live.learner.dropped_gradients) : '']]);
  }

  failureParts() {
    const {status, first_problem: first} = this.told;
    const parts = [];
    if (status?.processes?.length) {
      const restarts = status.processes.reduce((sum, one) => sum + one.starts - 1, 0);
      parts.push(facts([['restarts', String(restarts)], ['of the head', String(status.head?.restarts ?? 0)], ['allowed', `${status.restarts_allowed} of each process in ${number(status.restart_minutes)} min`]]));
    }
    if (first.text) {
      parts.push(h('h4', {}, 'First warning or error'), h('p', {class: 'quote'}, `${first.time.replace('T', ' ').replace('Z', '')} ${first.text}`));
    } else {
      parts.push(h('p', {class: 'muted'}, 'No warning and no error in the log.'));
    }
    if (status?.failures?.length) {
      parts.push(h('h4', {}, 'Last failures'), h('ul', {}, ...status.failures.slice(-5).map((one) => h('li', {}, one.text))));
    }
    return parts;
  }

  /** Without pictures, the card is shown only while the run may still make a video. */
  drawPictures() {
    const {videos, pictures, id, plan, state} = this.told;
    const parts = [];
    const add = (shown, text) => parts.push(h('figure', {}, shown, h('figcaption', {class: 'muted'}, text)));
    if (videos.length > 0) {
      const steps = videos[0].path.match(/(\d+)\.mp4$/)?.[1];
      add(h('video', {src: fileAddress(id, videos[0].path), controls: true, loop: true, muted: true, playsinline: true, preload: 'metadata', 'aria-label': 'The newest video of an evaluation'}),
        steps ? `after ${number(Number(steps))} steps` : videos[0].path);
    }
    for (const picture of pictures.slice(0, 2)) add(h('img', {src: fileAddress(id, picture.path), alt: `Samples, ${picture.path}`}), `after ${number(Number(picture.path.match(/(\d+)\.\w+$/)?.[1]))} updates`);
    this.pictureCard.hidden = parts.length === 0 && (state !== 'running' || plan?.on_data === true);
    if (parts.length === 0) parts.push(h('p', {class: 'muted'}, 'None yet; a video is drawn at the end of the run.'));
    show(this.pictures, ...parts);
  }

  lagColumn() {
    return this.told.plan?.plays ? 'parameter_lag' : 'updates_per_second';
  }

  /** Draws the chart, with the colors of the theme. */
  redraw() {
    if (!this.told) return;
    const {id} = this.told;
    const name = columnName(this.lagColumn());
    const curve = this.cache.runs.get(id);
    this.lag.set(curve ? [{...curve, name, color: store.color(id)}] : [], {xName: 'training time', time: true, label: name});
  }
}
