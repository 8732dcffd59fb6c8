// A line chart on a canvas, for hundreds of lines. The pointer shows the nearest values; dragging zooms; a double click shows everything.
// On the keyboard, the arrows move the cursor, + and - zoom, and Escape shows everything.
import {duration, h, number, tick} from './format.js';
import {roundTicks, timeTicks} from './statistics.js';

const kMargin = {left: 56, right: 14, top: 12, bottom: 40};
const kBands = 12; // with more lines than this, bands hide more than they show
const kNamed = 8;  // lines in the box beside the cursor

export class Chart {
  /** `label` says what it shows; `height` in pixels. */
  constructor(label, height = 300) {
    this.lines = []; // {name, color, x, mean, minimum, maximum, band, interval}
    this.time = false;
    this.zoom = null; // [from, to]
    this.cursor = null;
    this.height = height;
    this.base = h('canvas', {'aria-hidden': 'true'});
    this.over = h('canvas', {'aria-hidden': 'true'});
    this.box = h('div', {class: 'chart-box', hidden: true, 'aria-hidden': 'true'});
    this.empty = h('p', {class: 'chart-empty muted'}, 'no values yet');
    this.spoken = h('div', {class: 'hidden', role: 'status'});
    this.element = h('div', {
      class: 'chart', tabindex: '0', role: 'application', 'aria-roledescription': 'chart', 'aria-label': label,
    }, this.base, this.over, this.empty, this.box, this.spoken);
    this.element.style.height = `${height}px`;
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  set(lines, {xName, time, label}) {
    this.lines = lines.filter((line) => line.x.length > 0);
    this.xName = xName;
    this.time = time;
    this.label = label;
    const one = this.lines.length === 1 ? 'line' : 'lines';
    this.element.setAttribute('aria-label', `${label} along ${xName}, ${this.lines.length} ${one}; the arrow keys read values`);
    this.draw();
  }

  listen() {
    const area = this.element;
    let from = null;
    area.addEventListener('pointerdown', (event) => {
      from = this.inside(event) ? event.offsetX : null;
    });
    area.addEventListener('pointermove', (event) => {
      this.drag = from !== null && Math.abs(event.offsetX - from) > 6 ? [from, event.offsetX] : null;
      this.moveTo(this.inside(event) ? this.toX(event.offsetX) : null, false);
    });
    area.addEventListener('pointerup', () => {
      if (this.drag) {
        const ends = this.drag.map((x) => this.toX(x)).sort((a, b) => a - b);
        this.zoom = ends;
        this.drag = null;
        this.draw();
      }
      from = null;
    });
    area.addEventListener('pointerleave', () => {
      from = null;
      this.drag = null;
      this.moveTo(null, false);
    });
    area.addEventListener('dblclick', () => this.reset());
    area.addEventListener('keydown', (event) => this.key(event));
    area.addEventListener('blur', () => this.moveTo(null, false));
  }

  inside(event) {
    return event.offsetX >= kMargin.left && event.offsetX <= this.width - kMargin.right && event.offsetY <= this.height - kMargin.bottom;
  }

  key(event) {
    if (!this.range) return;
    const [low, high] = this.range;
    const step = (high - low) / 50;
    const at = this.cursor ?? high;
    const keys = {
      ArrowLeft: () => this.moveTo(Math.max(low, this.cursor === null ? high : at - step), true),
      ArrowRight: () => this.moveTo(Math.min(high, this.cursor === null ? high : at + step), true),
      Home: () => this.moveTo(low, true),
      End: () => this.moveTo(high, true),
      Escape: () => this.reset(),
      '+': () => this.zoomBy(0.5, at),
      '-': () => this.zoomBy(2, at),
    };
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  }

  zoomBy(factor, at) {
    const [low, high] = this.range;
    const half = ((high - low) * factor) / 2;
    this.zoom = [at - half, at + half];
    this.draw();
  }

  reset() {
    this.zoom = null;
    this.cursor = null;
    this.draw();
  }

  moveTo(x, speak) {
    this.cursor = x;
    this.drawCursor(speak);
  }

  toX(pixel) {
    const [low, high] = this.range ?? [0, 1];
    return low + ((pixel - kMargin.left) / this.plotWidth) * (high - low);
  }

  /** The ranges of both axes. */
  fit() {
    let low = Infinity;
    let high = -Infinity;
    for (const line of this.lines) {
      low = Math.min(low, line.x[0]);
      high = Math.max(high, line.x[line.x.length - 1]);
    }
    if (this.zoom) [low, high] = [Math.max(low, this.zoom[0]), Math.min(high, this.zoom[1])];
    if (!(high > low)) high = low + 1;
    this.range = [low, high];
    let least = Infinity;
    let most = -Infinity;
    const bands = this.lines.length <= kBands;
    for (const {x, mean, minimum, maximum} of this.lines) {
      for (let i = 0; i < x.length; ++i) {
        if (x[i] < low || x[i] > high) continue;
        least = Math.min(least, bands ? Math.min(minimum[i], mean[i]) : mean[i]);
        most = Math.max(most, bands ? Math.max(maximum[i], mean[i]) : mean[i]);
      }
    }
    if (!Number.isFinite(least)) [least, most] = [0, 1];
    const space = most > least ? (most - least) * 0.06 : Math.max(1, Math.abs(most)) * 0.1;
    this.values = [least - space, most + space];
  }

  context(canvas) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = '12px system-ui, sans-serif';
    return context;
  }

  draw() {
    this.width = this.element.clientWidth;
    if (this.width === 0) return;
    this.plotWidth = this.width - kMargin.left - kMargin.right;
    this.plotHeight = this.height - kMargin.top - kMargin.bottom;
    this.empty.hidden = this.lines.length > 0;
    const context = this.context(this.base);
    if (this.lines.length === 0) {
      this.range = null;
      this.context(this.over);
      return;
    }
    this.fit();
    const [low, high] = this.range;
    const [least, most] = this.values;
    this.px = (x) => kMargin.left + ((x - low) / (high - low)) * this.plotWidth;
    this.py = (y) => kMargin.top + (1 - (y - least) / (most - least)) * this.plotHeight;
    this.drawAxes(context);
    context.save();
    context.beginPath();
    context.rect(kMargin.left, kMargin.top - 4, this.plotWidth + 4, this.plotHeight + 8);
    context.clip();
    if (this.lines.length <= kBands) this.lines.forEach((line) => this.drawBand(context, line));
    context.lineJoin = 'round';
    context.lineWidth = this.lines.length > 40 ? 1 : 1.8;
    context.globalAlpha = this.lines.length > 40 ? 0.6 : 1;
    for (const line of this.lines) this.drawLine(context, line);
    context.restore();
    this.drawCursor(false);
  }

  drawAxes(context) {
    const style = getComputedStyle(this.element);
    const grid = style.getPropertyValue('--line');
    context.fillStyle = style.getPropertyValue('--muted');
    context.strokeStyle = grid;
    context.lineWidth = 1;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const value of roundTicks(...this.values, Math.max(3, this.plotHeight / 50))) {
      const y = Math.round(this.py(value)) + 0.5;
      context.beginPath();
      context.moveTo(kMargin.left, y);
      context.lineTo(kMargin.left + this.plotWidth, y);
      context.stroke();
      context.fillText(tick(value), kMargin.left - 8, y);
    }
    context.textBaseline = 'top';
    context.textAlign = 'center';
    const base = kMargin.top + this.plotHeight;
    const ticks = this.time ? timeTicks(...this.range, this.plotWidth / 85) : roundTicks(...this.range, this.plotWidth / 60);
    for (const value of ticks) {
      const text = this.time ? duration(value) : tick(value);
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(this.px(value), this.width - half - 1), base + 7);
    }
    context.fillText(this.xName, kMargin.left + this.plotWidth / 2, base + 23);
  }

  drawBand(context, {x, minimum, maximum, color, band}) {
    if (band === false || x.length < 2) return;
    context.beginPath();
    for (let i = 0; i < x.length; ++i) context.lineTo(this.px(x[i]), this.py(maximum[i]));
    for (let i = x.length - 1; i >= 0; --i) context.lineTo(this.px(x[i]), this.py(minimum[i]));
    context.closePath();
    context.globalAlpha = 0.16;
    context.fillStyle = color;
    context.fill();
    context.globalAlpha = 1;
  }

  drawLine(context, {x, mean, color}) {
    context.strokeStyle = color;
    context.beginPath();
    for (let i = 0; i < x.length; ++i) context.lineTo(this.px(x[i]), this.py(mean[i]));
    context.stroke();
    if (x.length <= 2) { // too short to be visible as a line
      context.fillStyle = color;
      for (let i = 0; i < x.length; ++i) {
        context.beginPath();
        context.arc(this.px(x[i]), this.py(mean[i]), 3, 0, 7);
        context.fill();
      }
    }
  }

  /** The points nearest to the cursor, one per line, in descending order of value. */
  nearest() {
    const reach = ((this.range[1] - this.range[0]) / this.plotWidth) * 40;
    return this.lines.map((line) => {
      let low = 0;
      let high = line.x.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (line.x[middle] < this.cursor) low = middle + 1;
        else high = middle;
      }
      if (low > 0 && this.cursor - line.x[low - 1] < line.x[low] - this.cursor) --low;
      const near = low < line.x.length && (Math.abs(line.x[low] - this.cursor) <= reach || (line.x[0] <= this.cursor && line.x[line.x.length - 1] >= this.cursor));
      const half = line.interval ? ` ± ${number(line.maximum[low] - line.mean[low])}` : '';
      return near ? {line, x: line.x[low], y: line.mean[low], text: number(line.mean[low]) + half} : null;
    }).filter(Boolean).sort((a, b) => b.y - a.y);
  }

  drawCursor(speak) {
    const context = this.context(this.over);
    this.box.hidden = true;
    if (this.cursor === null || !this.range) return;
    const style = getComputedStyle(this.element);
    if (this.drag) {
      context.fillStyle = style.getPropertyValue('--accent');
      context.globalAlpha = 0.15;
      context.fillRect(this.drag[0], kMargin.top, this.drag[1] - this.drag[0], this.plotHeight);
      context.globalAlpha = 1;
    }
    const x = this.px(this.cursor);
    context.strokeStyle = style.getPropertyValue('--muted');
    context.beginPath();
    context.moveTo(x, kMargin.top);
    context.lineTo(x, kMargin.top + this.plotHeight);
    context.stroke();
    const near = this.nearest();
    for (const point of near) {
      context.fillStyle = point.line.color;
      context.beginPath();
      context.arc(this.px(point.x), this.py(point.y), near.length > 40 ? 2 : 3.5, 0, 7);
      context.fill();
    }
    this.showBox(near, x);
    if (speak) {
      const at = this.time ? duration(this.cursor) : number(this.cursor);
      const values = near.slice(0, kNamed).map((point) => `${point.line.name} ${point.text}`).join(', ');
      this.spoken.textContent = `${at}: ${values || 'no values'}`;
    }
  }

  showBox(near, x) {
    if (near.length === 0) return;
    const rows = near.slice(0, kNamed).map((point) => {
      const swatch = h('span', {class: 'swatch'});
      swatch.style.background = point.line.color;
      return h('div', {}, swatch, h('b', {}, point.text), ` ${point.line.name}`);
    });
    const more = near.length > kNamed ? [h('div', {class: 'muted'}, `and ${near.length - kNamed} more`)] : [];
    const at = this.time ? duration(this.cursor) : `${number(this.cursor)} ${this.xName}`;
    this.box.replaceChildren(h('div', {class: 'muted'}, at), ...rows, ...more);
    this.box.hidden = false;
    const left = x > this.width / 2 ? x - this.box.offsetWidth - 12 : x + 12;
    this.box.style.left = `${Math.max(0, Math.min(left, this.width - this.box.offsetWidth))}px`;
  }
}
