// SPDX-License-Identifier: Apache-2.0
// Times and durations in nanoseconds. A time is a bigint from the recording's origin, because a double would lose
// precision after 104 days. A duration within the visible range is a number.

const UNITS: [string, number, number][] = [['us', 1e3, 999950], ['ms', 1e6, 999950000], ['s', 1e9, 600e9], ['min', 60e9, 5400e9], ['h', 3600e9, 360000e9], ['d', 86400e9, Infinity]]; // unit, its length in ns, and the ns from which the next unit is used

/** A duration as in krait's tables (src/base/fmt.c): "1.234 ms", "27.30 min", "2.50 h", "116.00 d". */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (Math.round(size) < 1000) return `${Math.round(ns)} ns`;
  const [unit, scale] = UNITS.find(([, , below]) => size < below) ?? UNITS[UNITS.length - 1];
  return `${scale > 60e9 ? (ns / scale).toFixed(2) : digits(ns / scale)} ${unit}`;
}

function digits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3);
}

/** A time with all its digits, as option --from accepts it: "12.345678901 s". */
export function moment(ns: bigint): string {
  const sign = ns < 0n ? '-' : '';
  const size = ns < 0n ? -ns : ns;
  return `${sign}${size / 1000000000n}.${String(size % 1000000000n).padStart(9, '0')} s`;
}

/** The same without a unit: "12.345678901". */
export function seconds(ns: bigint): string {
  return moment(ns).replace(' s', '');
}

export function count(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** A number with its noun: "1 call", "2,000 calls". */
export function counted(n: number, noun: string, many = `${noun}s`): string {
  return `${count(n)} ${n === 1 ? noun : many}`;
}

export function share(part: number, whole: number): string {
  if (!whole || !part) return whole ? '0%' : '';
  const percent = 100 * part / whole;
  return percent < 0.05 ? '<0.1%' : `${percent.toFixed(1)}%`;
}

const SECOND = 1e9, MINUTE = 60e9, HOUR = 3600e9, DAY = 86400e9;
const CLOCK_STEPS = [...[1, 2, 5, 10, 20, 30].map((n) => n * SECOND), ...[1, 2, 5, 10, 20, 30].map((n) => n * MINUTE), ...[1, 2, 3, 6, 12].map((n) => n * HOUR)];

/** The least number of the form 1, 2 or 5 times a power of ten that is not less than `least`. */
function roundUp(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const step of [1, 2, 5]) {
    if (step * power >= least) return step * power;
  }
  return 10 * power;
}

/** The least tick step that gives at most `most` ticks in `span` ns: round numbers below 10 s, then divisions of minutes, hours and days. */
export function tickStep(span: number, most: number): number {
  const least = Math.max(span / Math.max(most, 1), 1);
  if (least <= SECOND) return roundUp(least);
  return CLOCK_STEPS.find((step) => step >= least) ?? DAY * roundUp(Math.max(least / DAY, 1));
}

/**
 * Ticks of a logarithmic axis: powers of ten up to 10 s, then 1 m, 10 m, 1 h, 10 h, and days. `apart` is the least distance
 * of two ticks in powers of ten; if it is small, there are also ticks at 2 and 5 times these.
 */
export function logTicks(low: number, high: number, apart = 1): number[] {
  const powers = [...Array.from({ length: 11 }, (_, i) => 10 ** i), MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, ...Array.from({ length: 6 }, (_, i) => DAY * 10 ** i)];
  const between = apart < 0.3 ? [1, 2, 5] : [1], all = powers.flatMap((ns) => between.map((n) => ns * n));
  return all.filter((ns, i) => ns >= low * 0.999 && ns <= high * 1.001 && (i + 1 === all.length || ns < all[i + 1]));
}

/** The label of a tick of a logarithmic axis. */
export function logLabel(ns: number): string {
  const [unit, scale] = [['d', DAY], ['h', HOUR], ['m', MINUTE], ['s', SECOND], ['ms', 1e6], ['us', 1e3], ['ns', 1]].find((each) => ns >= (each[1] as number) * 0.999) ?? ['ns', 1];
  return `${Math.round(ns / (scale as number))} ${unit}`;
}

const CLOCK: [string, bigint][] = [['d', 86400n], ['h', 3600n], ['m', 60n], ['s', 1n]];

/** A time from the greatest unit down to the unit of the step, with the step's digits of a second: "5m 20s", "2h 46m", "115d 06h". */
function clockLabel(ns: bigint, step: number): string {
  const places = step >= SECOND ? 0 : Math.round(9 - Math.floor(Math.log10(step) + 1e-9)), parts: string[] = [];
  let rest = ns / 1000000000n;
  for (const [unit, size] of CLOCK) {
    const value = rest / size, isFirst = !parts.length;
    rest %= size;
    if (isFirst && !value) continue;
    const fraction = unit === 's' && places ? `.${String(ns % 1000000000n).padStart(9, '0').slice(0, places)}` : '';
    parts.push(`${String(value).padStart(isFirst ? 1 : 2, '0')}${fraction}${unit}`);
    if (Number(size) * SECOND <= step && step % (Number(size) * SECOND) === 0) break;
  }
  return parts.join(' ');
}

/** A time in days, hours, minutes and seconds, such as "10d 02h 20m 00s"; '' below a minute. */
export function clock(ns: bigint): string {
  return ns >= 60000000000n ? clockLabel(ns, SECOND) : '';
}

/** A time for option --from, and in days and hours to read: "872400.000000000 s (10d 02h 20m 00s)". */
export function momentText(ns: bigint): string {
  const words = clock(ns);
  return words ? `${moment(ns)} (${words})` : moment(ns);
}

/** The label of a tick, with as many digits as the step has (like src/view/ticks.c). */
export function tickLabel(ns: bigint, step: number): string {
  if (ns >= 60000000000n) return clockLabel(ns, step);
  const [unit, scale] = step >= 1e9 || ns >= 1000000000n ? ['s', 1e9] : step >= 1e6 || ns >= 1000000n ? ['ms', 1e6]
    : step >= 1e3 || ns >= 1000n ? ['us', 1e3] : ['ns', 1] as [string, number];
  const whole = ns / BigInt(scale);
  const places = Math.max(0, Math.round(Math.log10(scale as number) - Math.floor(Math.log10(step) + 1e-9)));
  if (!places || scale === 1) return `${whole} ${unit}`;
  const rest = String(ns % BigInt(scale)).padStart(String(scale).length - 1, '0').slice(0, places);
  return `${whole}.${rest} ${unit}`;
}

/** The ticks in a range, at most about `most` of them. */
export function timeTicks(from: bigint, span: number, most: number): { step: number; at: bigint[] } {
  const step = Math.max(tickStep(span, most), 1), size = BigInt(step), at: bigint[] = [];
  const first = from <= 0n ? 0n : (from + size - 1n) / size * size;
  for (let tick = first, end = from + BigInt(Math.round(span)); tick <= end; tick += size) at.push(tick);
  return { step, at };
}

/** Draws the labels of ticks; leaves out labels that would overlap the previous one or the `taken` pixels, or end after `end` (pixels). */
export function tickLabels(context: Pick<CanvasRenderingContext2D, 'measureText' | 'fillText'>, ticks: [number, string][], y: number, end = Infinity, taken: [number, number] = [0, 0]): void {
  let free = -Infinity;
  for (const [x, text] of ticks) {
    const behind = x + context.measureText(text).width;
    if (x < free || behind > end || (x < taken[1] && behind > taken[0])) continue;
    context.fillText(text, x, y);
    free = behind + 8;
  }
}
