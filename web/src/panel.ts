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
}

/** The selected range, or what is on the screen. */
export function timeParams(context: Context): { from: bigint; until: bigint } {
  const { from, span } = context.store.asked, begin = from < 0n ? 0n : from;
  return { from: begin, until: from + BigInt(Math.round(span)) };
}

/** The same, of the chosen lanes. */
export function rangeParams(context: Context): { from: bigint; until: bigint; threads: string | undefined } {
  return { ...timeParams(context), threads: context.timeline.lanes.chosenThreads()?.join(',') };
}
