// SPDX-License-Identifier: Apache-2.0
// A moment of a recording as cells: each row is a depth, each cell a call. Before the open call are the calls that its
// caller made earlier.

import { CUT, RESUMED, UNWOUND, YIELDS } from './tile';

/** A call, in nanoseconds from the begin of the played range. */
export interface Played { func: number; depth: number; begin: number; end: number; hue: number; flags: number }

export type Life = 'runs' | 'returned' | 'raised' | 'suspended' | 'unknown';
export interface Cell { call: Played; life: Life; resumed: boolean; weight: number; x: number; width: number }
export interface Row { cells: Cell[]; open: Cell | null; before: number } // before: older siblings that have no cell

const MOST = 24; // cells of a row
const OPEN_LEAST = 0.3; // smallest share of a row for the open call

/** The state of a call at that moment. A generator waits until it continues, in a later cell. */
function lifeOf(call: Played, at: number, later: Played[]): Life {
  if (call.end > at) return 'runs';
  if (call.flags & CUT) return 'unknown';
  if (call.flags & YIELDS) return later.some((each) => each.func === call.func && each.flags & RESUMED) ? 'returned' : 'suspended';
  return call.flags & UNWOUND ? 'raised' : 'returned';
}

/** Keeps short calls visible beside long ones: a thousand times the time makes a cell about three times as wide. */
function weigh(call: Played, at: number): number {
  return Math.log2(2 + Math.max(Math.min(call.end, at) - call.begin, 0) / 100);
}

function placed(cells: Cell[]): Cell[] {
  const sum = cells.reduce((all, cell) => all + cell.weight, 0), open = cells.find((cell) => cell.life === 'runs');
  if (open && open.weight < OPEN_LEAST * sum) open.weight = OPEN_LEAST / (1 - OPEN_LEAST) * (sum - open.weight);
  const whole = cells.reduce((all, cell) => all + cell.weight, 0);
  let x = 0;
  for (const cell of cells) {
    cell.x = x;
    cell.width = cell.weight / whole;
    x += cell.width;
  }
  return cells;
}

/** The rows at a moment, the outermost first. Calls of one thread, ordered by begin. */
export function rowsAt(calls: Played[], at: number): Row[] {
  const rows: Row[] = [];
  let since = -Infinity;
  for (let depth = 0; ; depth++) {
    const begun = calls.filter((call) => call.depth === depth && call.begin <= at && call.begin >= since);
    if (!begun.length) return rows;
    const shown = begun.slice(-MOST);
    const cells = placed(shown.map((call, i) => ({
      call, life: lifeOf(call, at, shown.slice(i + 1)), resumed: (call.flags & RESUMED) !== 0, weight: weigh(call, at), x: 0, width: 0,
    })));
    const open = cells.find((cell) => cell.life === 'runs') ?? null;
    rows.push({ cells, open, before: begun.length - shown.length });
    if (!open) return rows;
    since = open.call.begin;
  }
}

/** The next or previous moment at which a call begins or ends. */
export function stepFrom(threads: Played[][], at: number, forward: boolean): number | null {
  let best: number | null = null;
  for (const calls of threads) {
    for (const call of calls) {
      for (const time of [call.begin, call.end]) {
        if (forward ? time > at && (best === null || time < best) : time < at && (best === null || time > best)) best = time;
      }
    }
  }
  return best;
}

export interface Ray { angle: number; length: number; age: number; call: Played } // angle in turns from the top, others from 0 to 1

/** The calls that ended within one turn of the clock: a ray at the time of the end, as long as the logarithm of the duration. */
export function raysAt(threads: Played[][], at: number, turn: number): Ray[] {
  const rays: Ray[] = [];
  const top = Math.log2(2 + turn / 100);
  for (const calls of threads) {
    for (const call of calls) {
      if (call.end > at || call.end <= at - turn) continue;
      const ns = call.end - call.begin;
      rays.push({ angle: call.end / turn % 1, length: Math.min(Math.log2(2 + ns / 100) / top, 1), age: (at - call.end) / turn, call });
    }
  }
  return rays;
}

/** Nanoseconds of the recording for each second of playing. The first one plays the whole range in ten seconds. */
export const SPEEDS: [string, number][] = [
  ['range in 10 s', 0], ['real time', 1e9], ['1/10', 1e8], ['1/100', 1e7], ['1/1,000', 1e6], ['1/10,000', 1e5], ['1/100,000', 1e4], ['1/1,000,000', 1e3],
];
