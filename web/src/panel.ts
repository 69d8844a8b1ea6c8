// SPDX-License-Identifier: Apache-2.0
// The interface of a panel. A panel requests data for the selected range, or else the visible range, and shows it until
// the next answer arrives. Ranges are in nanoseconds from the recording's origin.

import { Api } from './api';
import { Trace } from './model';
import { Notes } from './notes';
import { Base, Range, Store } from './store';
import { Timeline } from './timeline';

export { Base };
export interface Context {
  trace: Trace; store: Store; api: Api; timeline: Timeline; notes: Notes;
  /** Runs work for the visible panel and shows its progress. Aborts the work that the panel waited for before. */
  wait(work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  /** Reports the progress (0 to 1) of work that takes several requests, with a text. */
  tell(share: number, words: string): void;
}

export interface Panel {
  id: string; title: string; key: string;
  /** Makes the panel's element; called once. */
  make(context: Context): HTMLElement;
  /** Called when the panel is shown, and whenever its data may have changed. */
  update(context: Context, signal: AbortSignal): Promise<void>;
  /** Takes the keyboard, for a panel with keys of its own: called when the panel is opened, but not while the user steps from tab to tab. */
  focus?(): void;
  /** Whether to update the panel when the visible range changes; if false, only when the selection changes. */
  ofRange: boolean;
  /** Whether to show the panel's tab for this recording; the default is yes. */
  offered?(trace: Trace): boolean;
  /** Why the panel is empty, and what to record to fill it; null: it has data. */
  missing?(trace: Trace): string | null;
}

const RANGES_MOST = 4096, LENGTH_MOST = 12000; // limits of a request (src/serve/request.h) and of a line of HTTP

/** Ids as ranges, such as "3,7-9"; undefined if they do not fit into a request. */
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

/** Parameters for the selected range, or else the visible range. */
export function timeParams(context: Context): TimeParams {
  return timesOf(context.store.asked, context.timeline.lanes.tableShift());
}

/** Parameters for a range and the recorded threads of some lanes. */
export function baseParams(context: Context, base: Base): RangeParams {
  const threads = context.timeline.lanes.chosenTracks(base.only)?.map((track) => (track.of === 'thread' ? track.thread : null)).filter((id): id is number => id !== null);
  return { ...timesOf(base.range, context.timeline.lanes.tableShift(base.only)), threads: threads && idRanges(threads) };
}

/** Parameters for the selected or visible range and the chosen lanes. */
export function rangeParams(context: Context): RangeParams {
  return baseParams(context, { range: context.store.asked, only: context.store.view.only });
}

/** Makes the current range and lanes the baseline of comparisons, or removes the baseline. */
export function toggleBase({ store }: Context): void {
  store.setBase(store.view.base ? null : { range: { ...store.asked }, only: [...store.view.only] });
}

/** The two sides of a comparison: the current choice with the baseline; for aligned recordings, the chosen or second one with the first. */
export function sides({ store, timeline }: Context): { now: Base; before: Base } | null {
  const { base, only, aligned } = store.view, range = store.asked;
  if (base) return { now: { range, only }, before: base };
  if (!aligned) return null;
  const [first, second] = timeline.lanes.alignment.recordings.map((each, i) => (each ? timeline.lanes.groupsOf(i) : [])).filter((keys) => keys.length);
  const isFirst = !only.length || timeline.lanes.tableShift(only) === timeline.lanes.tableShift(first);
  return first && second ? { now: { range, only: isFirst ? second : only }, before: { range, only: first } } : null;
}

/** Selects and shows the baseline. */
export function showBase({ store }: Context): void {
  const { base } = store.view;
  if (!base) return;
  store.chooseOnly(base.only);
  store.select({ ...base.range });
  store.show(base.range.from, base.range.from + BigInt(Math.round(base.range.span)), 0.02);
}

type TrackParams = TimeParams & { tracks: string | undefined; own: number };

/** Parameters for a range and the tracks of some lanes; without lanes, all tracks except the rest of the machine. */
export function sideParams(context: Context, { range, only }: Base): TrackParams {
  const tracks = context.timeline.lanes.chosenTracks(only)?.map((track) => track.id);
  return { ...timesOf(range, context.timeline.lanes.tableShift(only)), tracks: tracks && idRanges(tracks), own: 1 };
}

/** Parameters for the selected or visible range and the tracks of the chosen lanes. */
export function trackParams(context: Context): TrackParams {
  return sideParams(context, { range: context.store.asked, only: context.store.view.only });
}
