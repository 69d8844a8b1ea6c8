// SPDX-License-Identifier: Apache-2.0
// What a panel is. Each asks for the range that is selected, or on the screen, and shows it until the next answer is there.

import { Api } from './api';
import { Trace } from './model';
import { Notes } from './notes';
import { Store } from './store';
import { Timeline } from './timeline';

export interface Context { trace: Trace; store: Store; api: Api; timeline: Timeline; notes: Notes }

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

/** The selected range, or what is on the screen. */
export function timeParams(context: Context): { from: bigint; until: bigint } {
  const { from, span } = context.store.asked, begin = from < 0n ? 0n : from;
  return { from: begin, until: from + BigInt(Math.round(span)) };
}

/** The same, of the threads of the chosen lanes that recorded themselves. */
export function rangeParams(context: Context): { from: bigint; until: bigint; threads: string | undefined } {
  const threads = context.timeline.lanes.chosenTracks()?.map((track) => track.thread).filter((id): id is number => id !== null);
  return { ...timeParams(context), threads: threads && idRanges(threads) };
}

/** The same, of the tracks of the chosen lanes; where none is chosen, of all but the rest of the machine. */
export function trackParams(context: Context): { from: bigint; until: bigint; tracks: string | undefined; own: number } {
  const tracks = context.timeline.lanes.chosenTracks()?.map((track) => track.id);
  return { ...timeParams(context), tracks: tracks && idRanges(tracks), own: 1 };
}
