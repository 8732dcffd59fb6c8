// Formats numbers and times, and builds elements.

/** "12,300", "1.23 M", "0.0012"; "–" for anything but a number. */
export function number(value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1e9) return trimmed(value / 1e9) + ' G';
  if (size >= 1e6) return trimmed(value / 1e6) + ' M';
  if (size >= 1e3) return Math.round(value).toLocaleString('en-US');
  if (size >= 100 || Number.isInteger(value)) return String(Math.round(value * 10) / 10);
  if (size >= 0.01) return String(Number(value.toPrecision(3)));
  return value.toPrecision(2);
}

function trimmed(value) {
  return String(Number(value.toPrecision(3)));
}

/** Label for a tick of an axis: "20 k". */
export function tick(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return trimmed(value / 1e9) + 'G';
  if (size >= 1e6) return trimmed(value / 1e6) + 'M';
  if (size >= 1e3) return trimmed(value / 1e3) + 'k';
  return String(Number(value.toPrecision(4)));
}

export function bytes(value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; value >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}

/** "0.25 s", "42 s", "3 min", "2 h 05 min". */
export function duration(seconds) {
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return '–';
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/** The name of a column of metrics.csv as the page shows it. */
export function columnName(column) {
  const known = {
    headline: 'result (evaluation)',
    evaluation_return: 'evaluation return',
    episode_return: 'training episode return',
    environment_steps: 'environment steps',
    frames: 'rendered frames',
    updates: 'updates',
    training_seconds: 'training time',
    processor_seconds: 'processor time',
    environment_steps_per_second: 'environment steps per second',
    updates_per_second: 'updates per second',
    frames_per_second: 'frames per second',
    parameter_lag: 'parameter lag (updates)',
  };
  return known[column] ?? column.replaceAll('_', ' ');
}

/** h('p', {class: 'muted', onclick: f}, 'text', element) */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Like h(), for SVG. */
export function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value !== undefined && value !== null) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** A control and its label, kept on one line. */
export function field(label, control) {
  return h('span', {class: 'field'}, h('label', {for: control.id}, label), control);
}

/** A table that scrolls sideways independently and can be reached by keyboard. */
export function table(caption, head, rows) {
  return h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
    h('table', {},
      h('caption', {class: 'hidden'}, caption),
      h('thead', {}, h('tr', {}, ...head.map((text) => h('th', {scope: 'col'}, text)))),
      h('tbody', {}, ...rows.map((row) => h('tr', {}, ...row.map((cell) => h('td', {}, cell)))))));
}

/** Replaces the content of an element unless it is unchanged, so that focus and selection are kept. */
export function show(element, ...children) {
  const made = h('div', {}, ...children);
  if (element.shown !== undefined && element.shown === made.innerHTML) return;
  element.shown = made.innerHTML;
  element.replaceChildren(...made.childNodes);
}
