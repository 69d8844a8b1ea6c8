// SPDX-License-Identifier: Apache-2.0
// How long calls or intervals took, as bars on a logarithmic axis.

import { palette } from '../palette';
import { duration } from '../time';
import { isDark, sized } from '../timeline';

export type Bar = [number, number, number]; // from, until, how many

export const HEIGHT = 132;
const FOOT = 18;

export interface Scale { low: number; high: number; x: (ns: number, width: number) => number; ns: (x: number, width: number) => number }

/** Where a duration stands. */
export function scaleOf(bars: Bar[]): Scale {
  const low = Math.log2(Math.max(bars[0]?.[0] ?? 1, 1)), high = Math.max(Math.log2(Math.max(bars[bars.length - 1]?.[1] ?? 2, 2)), low + 1);
  return { low, high, x: (ns, width) => (Math.log2(Math.max(ns, 1)) - low) / (high - low) * width, ns: (x, width) => 2 ** (low + x / width * (high - low)) };
}

export function drawHistogram(canvas: HTMLCanvasElement, bars: Bar[], brush: [number, number] | null = null, tall = HEIGHT): void {
  const width = Math.max(canvas.clientWidth, 1), context = sized(canvas, width, tall), colours = palette(isDark()), { x, low, high } = scaleOf(bars);
  context.clearRect(0, 0, width, tall);
  const most = Math.max(...bars.map((bar) => bar[2]), 1);
  for (const [begin, end, n] of bars) {
    const left = x(begin, width), right = Math.max(x(end, width), left + 2);
    const height = Math.max(Math.log2(1 + n) / Math.log2(1 + most) * (tall - FOOT - 6), 2);
    const inside = !brush || (begin < brush[1] && end > brush[0]);
    context.fillStyle = inside ? colours.accent : colours.rule;
    context.fillRect(left, tall - FOOT - height, Math.max(right - left - 1, 1), height);
  }
  context.fillStyle = colours.quiet;
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  for (let power = Math.ceil(low / 3.3219 - 0.001); power * 3.3219 <= high + 0.001; power++) {
    const at = x(10 ** power, width);
    context.fillRect(at, tall - FOOT, 1, 4);
    context.fillText(duration(10 ** power).replace(/\.0+ /, ' '), Math.min(at + 3, width - 44), tall - 7);
  }
}
