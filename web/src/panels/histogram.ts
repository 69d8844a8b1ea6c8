// SPDX-License-Identifier: Apache-2.0
// A histogram of durations of calls or intervals. The x axis (duration) and the y axis (number) are logarithmic.

import { palette } from '../palette';
import { count, logLabel, logTicks, tickLabels } from '../time';
import { isDark, sized } from '../timeline';

export type Bar = [number, number, number]; // from, until (ns), number

export const HEIGHT = 132, LEFT = 58; // pixels; LEFT is the width of the labels of the y axis
const FOOT = 18, TOP = 8, BETWEEN = 22;

export interface Scale { low: number; high: number; x: (ns: number, width: number) => number; ns: (x: number, width: number) => number }

/** The x scale, in both directions. */
export function scaleOf(bars: Bar[]): Scale {
  const low = Math.log2(Math.max(bars[0]?.[0] ?? 1, 1)), high = Math.max(Math.log2(Math.max(bars[bars.length - 1]?.[1] ?? 2, 2)), low + 1);
  return { low, high, x: (ns, width) => (Math.log2(Math.max(ns, 1)) - low) / (high - low) * width, ns: (x, width) => 2 ** (low + x / width * (high - low)) };
}

/** The ticks of the y axis: the greatest number, and the powers of ten below it that fit. */
export function countTicks(most: number, height: number): number[] {
  const y = (n: number): number => Math.log2(1 + n) / Math.log2(1 + most) * height, ticks = [most];
  for (let n = 10 ** Math.floor(Math.log10(most)); n >= 1; n /= 10) {
    if (y(ticks[ticks.length - 1]) - y(n) >= BETWEEN) ticks.push(n);
  }
  return ticks;
}

export function drawHistogram(canvas: HTMLCanvasElement, bars: Bar[], brush: [number, number] | null = null, tall = HEIGHT): void {
  const all = Math.max(canvas.clientWidth, 1), width = Math.max(all - LEFT, 1), context = sized(canvas, all, tall), colours = palette(isDark()), scale = scaleOf(bars), x = (ns: number): number => LEFT + scale.x(ns, width);
  context.clearRect(0, 0, all, tall);
  if (!bars.length) return;
  const most = Math.max(...bars.map((bar) => bar[2]), 1), high = tall - FOOT - TOP, y = (n: number): number => tall - FOOT - Math.log2(1 + n) / Math.log2(1 + most) * high;
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  for (const n of countTicks(most, high)) {
    context.fillStyle = colours.rule;
    context.fillRect(LEFT, Math.round(y(n)), width, 1);
    context.fillStyle = colours.quiet;
    context.fillText(count(n), LEFT - 6, y(n));
  }
  for (const [begin, end, n] of bars) {
    const left = x(begin), right = Math.max(x(end), left + 2), height = Math.max(tall - FOOT - y(n), 2), inside = !brush || (begin < brush[1] && end > brush[0]);
    context.fillStyle = inside ? colours.accent : colours.rule;
    context.fillRect(left, tall - FOOT - height, Math.max(right - left - 1, 1), height);
  }
  context.fillStyle = colours.quiet;
  context.fillRect(LEFT, tall - FOOT, width, 1);
  context.textAlign = 'left';
  const ticks = logTicks(2 ** scale.low, 2 ** scale.high, 70 / width * (scale.high - scale.low) / Math.log2(10));
  for (const ns of ticks) context.fillRect(x(ns), tall - FOOT, 1, 4);
  tickLabels(context, ticks.map((ns) => [x(ns) + 3, logLabel(ns)]), tall - 7, all);
}
