// SPDX-License-Identifier: Apache-2.0
// Single states and system calls: found through tiles, whose slices come with their whole extent.

import { tileLength } from './api';
import { Call, Trace, Track } from './model';
import { threadAt } from './threads';
import { BINS, Slice, Tile } from './tile';

export type Fetch = (track: number, level: number, index: number) => Promise<Tile>;
const LEVELS = 48, LEVEL_STEP = 3;

function toCall(track: number, tile: Tile, slice: Slice): Call {
  const begin = tile.index * BigInt(tileLength(tile.level));
  return { track, func: slice.name, depth: slice.depth, begin: begin + BigInt(slice.begin), end: begin + BigInt(slice.end), begins: 0, ends: 0, value: slice.value };
}

async function tileAt(fetch: Fetch, track: number, level: number, at: bigint): Promise<Tile> {
  return fetch(track, level, Number(at / BigInt(tileLength(level))));
}

/** The entry that is open at a moment, at a depth, or else at the greatest depth. */
export async function spanAt(fetch: Fetch, track: number, at: bigint, depth?: number): Promise<Call | null> {
  if (at < 0n) return null;
  const tile = await tileAt(fetch, track, 0, at), inside = Number(at % BigInt(BINS));
  const open = tile.slices.filter((s) => s.begin <= inside && s.end > inside && (depth === undefined || s.depth === depth));
  return open.length ? toCall(track, tile, open.reduce((a, b) => (b.depth > a.depth ? b : a))) : null;
}

/** The earliest place of a tile, from `at` on, at which an entry begins or is folded; relative to the tile. */
function nextPlace(tile: Tile, at: number, depth: number): { at: number; slice: Slice | null } | null {
  let best: { at: number; slice: Slice | null } | null = null;
  for (const slice of tile.slices) if (slice.depth === depth && slice.begin >= at && (!best || slice.begin < best.at)) best = { at: slice.begin, slice };
  const row = tile.rows.find((r) => r.depth === depth), length = 2 ** tile.level;
  for (let bin = Math.ceil(at / length); row && bin < BINS; bin++) {
    if (!row.bins[3 * bin + 1]) continue;
    return best && best.at < bin * length ? best : { at: bin * length, slice: null };
  }
  return best;
}

/** The same from the end: the last slice that has ended by `at`, or the end of the last folded bin before it. */
function lastPlace(tile: Tile, at: number, depth: number): { at: number; slice: Slice | null } | null {
  let best: { at: number; slice: Slice | null } | null = null;
  for (const slice of tile.slices) if (slice.depth === depth && slice.end <= at && slice.end > 0 && (!best || slice.end > best.at)) best = { at: slice.end, slice };
  const row = tile.rows.find((r) => r.depth === depth), length = 2 ** tile.level;
  for (let bin = Math.floor(at / length) - 1; row && bin >= 0; bin--) {
    if (!row.bins[3 * bin + 1]) continue;
    return best && best.at > (bin + 1) * length ? best : { at: (bin + 1) * length, slice: null };
  }
  return best;
}

/** The next entry that begins at `at` or later, or the last that has ended by then. Looks through wider and wider tiles, then through narrower ones to the entry. */
export async function spanNext(fetch: Fetch, trace: Trace, call: Call, forward: boolean): Promise<Call | null> {
  let at = forward ? call.end : call.begin - 1n;
  const near = await spanAt(fetch, call.track, at, call.depth);
  if (near) return near;
  if (!forward) at += 1n;
  for (let level = 0; level < LEVELS && at > 0n && at < trace.duration;) {
    const tile = await tileAt(fetch, call.track, level, forward ? at : at - 1n), begin = tile.index * BigInt(tileLength(level));
    const place = (forward ? nextPlace : lastPlace)(tile, Number(at - begin), call.depth);
    if (place?.slice) return toCall(call.track, tile, place.slice);
    if (place && level > 0) {
      at = begin + BigInt(place.at);
      level = 0;
    } else if (tileLength(level) > Number(trace.duration)) return null;
    else level += LEVEL_STEP;
  }
  return null;
}

/** A thread's track of a kind; the thread is the one that has the id at that moment. */
export function trackOf(trace: Trace, tid: number, kind: string, at: bigint, machine = 0): number | undefined {
  const own = threadAt(trace, tid, at), isIt = (t: Track): boolean => (t.thread !== null ? t.thread === own : t.number === tid);
  return trace.tracks.find((t) => t.of === 'thread' && t.kind === kind && t.machine === machine && isIt(t))?.id;
}

/** What the thread's CPU did at a moment. */
export async function cpuOf(fetch: Fetch, trace: Trace, tid: number, at: bigint, machine = 0): Promise<Call | null> {
  for (const track of trace.tracks) {
    if (track.of !== 'cpu' || track.kind !== 'states' || track.machine !== machine) continue;
    const found = await spanAt(fetch, track.id, at);
    if (found?.value === tid) return found;
  }
  return null;
}

/** What a thread did at a moment: its innermost call, or its state. */
export async function doneBy(fetch: Fetch, trace: Trace, tid: number, at: bigint, machine = 0): Promise<Call | null> {
  for (const kind of ['calls', 'states']) {
    const track = trackOf(trace, tid, kind, at, machine), found = track === undefined ? null : await spanAt(fetch, track, at);
    if (found) return found;
  }
  return null;
}
