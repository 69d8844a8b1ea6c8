// SPDX-License-Identifier: Apache-2.0
// Moments and durations. A moment is a bigint, nanoseconds from the recording's origin: a double would lose
// nanoseconds after 104 days. What is relative to the range on the screen is a number.

const UNITS: [string, number][] = [['s', 1e9], ['ms', 1e6], ['us', 1e3]];

/** "1.234 ms": four digits, as krait's tables have them. */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  for (const [unit, scale] of UNITS) {
    if (size >= scale * 0.9999995) return `${digits(ns / scale)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

function digits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3);
}

/** "12.345678901 s", every digit, as --from takes it. */
export function moment(ns: bigint): string {
  const sign = ns < 0n ? '-' : '';
  const size = ns < 0n ? -ns : ns;
  return `${sign}${size / 1000000000n}.${String(size % 1000000000n).padStart(9, '0')} s`;
}

/** "12.345678901", as options take it. */
export function seconds(ns: bigint): string {
  return moment(ns).replace(' s', '');
}

export function count(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** "1 call", "2,000 calls". */
export function counted(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? '' : 's'}`;
}

export function share(part: number, whole: number): string {
  if (!whole || !part) return whole ? '0%' : '';
  const percent = 100 * part / whole;
  return percent < 0.05 ? '<0.1%' : `${percent.toFixed(1)}%`;
}

/** A step of 1, 2 or 5 times a power of ten: the least with at most `most` of them in `span`. */
export function tickStep(span: number, most: number): number {
  const least = Math.max(span / Math.max(most, 1), 1);
  const power = 10 ** Math.floor(Math.log10(least));
  for (const step of [1, 2, 5]) {
    if (step * power >= least) return step * power;
  }
  return 10 * power;
}

/** What stands at a tick: as many digits as its step has. */
export function tickLabel(ns: bigint, step: number): string {
  const [unit, scale] = step >= 1e9 || ns >= 1000000000n ? ['s', 1e9] : step >= 1e6 || ns >= 1000000n ? ['ms', 1e6]
    : step >= 1e3 || ns >= 1000n ? ['us', 1e3] : ['ns', 1] as [string, number];
  const whole = ns / BigInt(scale);
  const places = Math.max(0, Math.round(Math.log10(scale as number) - Math.floor(Math.log10(step) + 1e-9)));
  if (!places || scale === 1) return `${whole} ${unit}`;
  const rest = String(ns % BigInt(scale)).padStart(String(scale).length - 1, '0').slice(0, places);
  return `${whole}.${rest} ${unit}`;
}
