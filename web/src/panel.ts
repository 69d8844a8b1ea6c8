// SPDX-License-Identifier: Apache-2.0
// What a panel is. Each asks for the range that is selected, or on the screen, and shows it until the next answer is there.

import { Api } from './api';
import { Trace } from './model';
import { Notes } from './notes';
import { Base, Range, Store } from './store';
import { Timeline } from './timeline';

export { Base };
export interface Context {
  trace: Trace; store: Store; api: Api; timeline: Timeline; notes: Notes;
  /** What the shown panel waits for instead of what it waited for before: with progress, until it is done or cancelled. */
  wait(work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  /** How far that is, where several answers make it up. */
  tell(share: number, words: string): void;
}

export interface Panel {
  id: string; title: string; key: string;
  /** Its element, made once. */
  make(context: Context): HTMLElement;
  /** Called when it is shown, and whenever what it shows may have changed. */
  update(context: Context, signal: AbortSignal): Promise<void>;
  /** Whether it follows the range; else it is updated for selections alone. */
  ofRange: boolean;
  /** Whether the recording can have something for it; without this it can. */
  offered?(trace: Trace): boolean;
  /** Why it has nothing to show, and what to record; null: it has. */
  missing?(trace: Trace): string | null;
}

const RANGES_MOST = 4096, LENGTH_MOST = 12000; // of a request: src/serve/request.h, and a line of HTTP

/** "3,7-9"; undefined where a request cannot hold them. */
export function idRanges(ids: number[]): string | undefined {
  const sorted = [...new Set(ids)].sort((a, b) => a - b), ranges: [number, number][] = [];
  for (const id of sorted) {
    const last = ranges[ranges.length - 1];
    if (last && id === last[1] + 1) last[1] = id;
    else ranges.push([id, id]);
  }
  const text = ranges.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(',');
  return ranges.length <= RANGES_MOST && text.length <= LENGTH_MOST ? text : undefined;
}

type TimeParams = { from: bigint; until: bigint };
type RangeParams = TimeParams & { threads: string | undefined };

function timesOf({ from, span }: Range, shift: bigint): TimeParams {
  const begin = from + shift;
  return { from: begin < 0n ? 0n : begin, until: begin + BigInt(Math.round(span)) };
}

/** The selected range, or what is on the screen. */
export function timeParams(context: Context): TimeParams {
  return timesOf(context.store.asked, context.timeline.lanes.tableShift());
}

/** Of the threads of some lanes that recorded themselves. */
export function baseParams(context: Context, base: Base): RangeParams {
  const threads = context.timeline.lanes.chosenTracks(base.only)?.map((track) => track.thread).filter((id): id is number => id !== null);
  return { ...timesOf(base.range, context.timeline.lanes.tableShift(base.only)), threads: threads && idRanges(threads) };
}

/** The selected range, or what is on the screen, of the chosen lanes. */
export function rangeParams(context: Context): RangeParams {
  return baseParams(context, { range: context.store.asked, only: context.store.view.only });
}

/** What is chosen now is what later choices are compared with; again: nothing is. */
export function toggleBase({ store }: Context): void {
  store.setBase(store.view.base ? null : { range: { ...store.asked }, only: [...store.view.only] });
}

/** What is compared: now, and before. Of recordings side by side the second, or the chosen one, with the first. */
export function sides({ store, timeline }: Context): { now: Base; before: Base } | null {
  const { base, only, aligned } = store.view, range = store.asked;
  if (base) return { now: { range, only }, before: base };
  if (!aligned) return null;
  const [first, second] = timeline.lanes.alignment.recordings.map((each, i) => (each ? timeline.lanes.groupsOf(i) : [])).filter((keys) => keys.length);
  const isFirst = !only.length || timeline.lanes.tableShift(only) === timeline.lanes.tableShift(first);
  return first && second ? { now: { range, only: isFirst ? second : only }, before: { range, only: first } } : null;
}

/** Goes back to what others are compared with. */
export function showBase({ store }: Context): void {
  const { base } = store.view;
  if (!base) return;
  store.chooseOnly(base.only);
  store.select({ ...base.range });
  store.show(base.range.from, base.range.from + BigInt(Math.round(base.range.span)), 0.02);
}

type TrackParams = TimeParams & { tracks: string | undefined; own: number };

/** Of the tracks of some lanes; where none are meant, of all but the rest of the machine. */
export function sideParams(context: Context, { range, only }: Base): TrackParams {
  const tracks = context.timeline.lanes.chosenTracks(only)?.map((track) => track.id);
  return { ...timesOf(range, context.timeline.lanes.tableShift(only)), tracks: tracks && idRanges(tracks), own: 1 };
}

/** The selected range, or what is on the screen, of the tracks of the chosen lanes. */
export function trackParams(context: Context): TrackParams {
  return sideParams(context, { range: context.store.asked, only: context.store.view.only });
}
