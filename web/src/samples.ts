// SPDX-License-Identifier: Apache-2.0
// Recordings of samples: what looks like a call is a stretch of successive samples of a thread that have the same stack. It may be
// several calls, and how long they took is not known.

import { Trace, Track } from './model';
import { count, counted, duration } from './time';

const SAMPLED = 4; // KRAIT_TRACK_SAMPLED

/** Whether the calls of a track are stretches of samples. */
export function isSampled(track: Pick<Track, 'kind' | 'flags'>): boolean {
  return track.kind === 'calls' && (track.flags & SAMPLED) !== 0;
}

/** "a stretch of about 12 samples". The server counts them exactly, for one stretch at a time. */
export function aboutStretch(trace: Pick<Trace, 'samples'>, ns: number): string {
  const n = trace.samples ? Math.max(Math.round(ns / Math.max(trace.samples.interval, 1)), 1) : 0;
  return n ? `a stretch of about ${counted(n, 'sample')}` : 'a stretch of samples';
}

/** What the panel of a selected stretch says of it, with the number of its samples. */
export function stretchFact(samples: number, ns: number): string {
  return `${counted(samples, 'sample')} in a row, ${duration(ns)} from the first of them to the next sample without it. They may be of several calls: samples do not tell how long a call took`;
}

/** How many stretches of a function there are. */
export function stretchesText(matched: number, listed: number): string {
  const rest = listed < matched ? `; the ${count(listed)} longest are listed` : '';
  return `${counted(matched, 'stretch', 'stretches')} of samples in the range${rest}. A stretch is successive samples of a thread that have the function. It may be several calls: samples do not tell how often the function was called, or how long a call took.`;
}
