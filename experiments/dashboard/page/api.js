// Requests to the server (experiments/dashboard/api.hpp).

async function checked(response) {
  if (response.ok) return response;
  let text = `${response.status} ${response.statusText}`;
  try {
    text = (await response.json()).error ?? text;
  } catch { /* no JSON: the status has to suffice */ }
  throw new Error(text);
}

export async function get(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  return (await checked(await fetch(query ? `${path}?${query}` : path))).json();
}

/** A live picture: {jpeg: Blob, told: {observed, agent_steps, environments}}. */
export async function getPicture(parameters) {
  const response = await checked(await fetch(`/api/picture?${new URLSearchParams(parameters)}`));
  return {jpeg: await response.blob(), told: JSON.parse(response.headers.get('X-Troupe-Picture'))};
}

async function posted(path, body) {
  // Pages of other sites cannot send this header.
  const headers = {'Content-Type': 'application/json', 'X-Troupe': 'dashboard'};
  return checked(await fetch(path, {method: 'POST', headers, body: JSON.stringify(body)}));
}

export async function post(path, body) {
  return (await posted(path, body)).json();
}

export function fileAddress(id, path) {
  return `/api/file?${new URLSearchParams({id, path})}`;
}

/** Curves of many runs; the server sends only the changed ones again. */
export class SeriesCache {
  constructor() {
    this.key = '';
    this.columns = new Set();
    this.runs = new Map(); // id -> {version, read, x, mean, minimum, maximum}
  }

  /** Returns whether a curve changed. */
  async refresh(ids, x, y, points) {
    const key = `${x} ${y} ${points}`;
    if (key !== this.key) {
      this.key = key;
      this.runs = new Map();
    }
    if (ids.length === 0) return false;
    const known = this.runs;
    const wanted = ids.map((id) => ({id, version: known.get(id)?.version ?? 0}));
    const response = await posted('/api/series', {x, y, points, runs: wanted});
    const bytes = await response.arrayBuffer();
    const length = new DataView(bytes).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
    const numbers = new Float32Array(bytes, 4 + length);
    for (const column of head.columns) this.columns.add(column);
    for (const run of head.runs) {
      const part = (i) => numbers.subarray(run.offset + i * run.points, run.offset + (i + 1) * run.points);
      known.set(run.id, {...run, x: part(0), mean: part(1), minimum: part(2), maximum: part(3)});
    }
    return head.runs.length > 0 && known === this.runs;
  }

  /** How much of these runs' files has been read, from 0 to 1. */
  read(ids) {
    const parts = ids.map((id) => this.runs.get(id)?.read ?? 0);
    return parts.length === 0 ? 1 : parts.reduce((a, b) => a + b, 0) / parts.length;
  }
}
