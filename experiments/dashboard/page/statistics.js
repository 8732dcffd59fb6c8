// Arithmetic on curves. A curve is {x, mean, minimum, maximum}: arrays of equal length, x ascending.

/** An exponential moving average with bias correction (like Adam's moments). */
export function smoothed(values, weight) {
  if (weight <= 0) return values;
  const out = new Float32Array(values.length);
  let average = 0;
  let rest = 1;
  for (let i = 0; i < values.length; ++i) {
    average = weight * average + (1 - weight) * values[i];
    rest *= weight;
    out[i] = average / (1 - rest);
  }
  return out;
}

/** The value of a curve at `at`, interpolated; NaN outside of it. */
export function interpolated(x, y, at) {
  const n = x.length;
  if (n === 0 || at < x[0] || at > x[n - 1]) return NaN;
  let low = 0;
  let high = n - 1;
  while (low < high) { // the last point that is not beyond `at`
    const middle = (low + high + 1) >> 1;
    if (x[middle] <= at) low = middle;
    else high = middle - 1;
  }
  if (low === n - 1 || x[low + 1] === x[low]) return y[low];
  const part = (at - x[low]) / (x[low + 1] - x[low]);
  return y[low] + part * (y[low + 1] - y[low]);
}

const kStudent = [NaN, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042];

/** Half the width of the 95 % confidence interval of a mean (Student's t); 0 for a single value. */
export function halfInterval(values) {
  const n = values.length;
  if (n < 2) return 0;
  const mean = values.reduce((a, b) => a + b, 0) / n;
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / (n - 1);
  return (kStudent[n - 1] ?? 1.96) * Math.sqrt(variance / n);
}

/** The mean of curves and its confidence interval, where all of them have values. */
export function meanCurve(curves, points = 300) {
  const full = curves.filter((curve) => curve.x.length > 0);
  if (full.length === 0) return {x: [], mean: [], minimum: [], maximum: []};
  const begin = Math.max(...full.map((curve) => curve.x[0]));
  const end = Math.min(...full.map((curve) => curve.x[curve.x.length - 1]));
  const out = {x: [], mean: [], minimum: [], maximum: []};
  if (end < begin) return out;
  const count = end > begin ? points : 1;
  for (let i = 0; i < count; ++i) {
    const at = count === 1 ? begin : begin + ((end - begin) * i) / (count - 1);
    const values = full.map((curve) => interpolated(curve.x, curve.mean, at)).filter(Number.isFinite);
    if (values.length === 0) continue;
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const half = halfInterval(values);
    out.x.push(at);
    out.mean.push(mean);
    out.minimum.push(mean - half);
    out.maximum.push(mean + half);
  }
  return out;
}

/** Round numbers within [low, high], about `count` of them. */
export function roundTicks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; ++i) ticks.push(i * step);
  return ticks;
}

const kTimes = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** Likewise for seconds; values of a minute and more are round in minutes and hours. */
export function timeTicks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (rough < 1) return roundTicks(low, high, count);
  const step = kTimes.find((time) => time >= rough) ?? Math.ceil(rough / 86400) * 86400;
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high; ++i) ticks.push(i * step);
  return ticks;
}
