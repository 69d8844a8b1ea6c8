// SPDX-License-Identifier: Apache-2.0
// Which tracks have entries in a range of time, so that the page can hide empty lanes.

import { Trace, Track, isThreadState } from './model';

/** By track: a number that all tracks of a thread share; -1 for other tracks. */
function threadNumbers(tracks: Track[]): Int32Array {
  const found = new Map<string, Map<number, number>>(), numbers = new Int32Array(tracks.length).fill(-1);
  let count = 0;
  tracks.forEach((track, i) => {
    if (track.of !== 'thread') return;
    const process = `${track.machine}.${track.pid}`, ofProcess = found.get(process) ?? new Map<number, number>();
    found.set(process, ofProcess);
    const number = ofProcess.get(track.number) ?? count++;
    ofProcess.set(track.number, number);
    numbers[i] = number;
  });
  return numbers;
}

const kept = new WeakMap<Track[], Int32Array>(); // there may be 100,000 tracks

function threadNumbersOf(tracks: Track[]): Int32Array {
  const numbers = kept.get(tracks) ?? threadNumbers(tracks);
  kept.set(tracks, numbers);
  return numbers;
}

/** Of `found`, ranges of tracks as the server has them. A thread is there as a whole or not at all: where the kernel was recorded if it ran, else if it lived or something else happened on it. */
export function activeOf(trace: Pick<Trace, 'tracks' | 'threads'>, found: [number, number][], begin: bigint, until: bigint): Set<number> {
  const active = new Set<number>(), { tracks } = trace, numbers = threadNumbersOf(tracks), threads = new Uint8Array(tracks.length);
  const known = tracks.some((track) => isThreadState(track));
  for (const [first, last] of found) {
    for (let id = first; id <= last; id++) {
      const track = tracks[id];
      if (track.of !== 'thread') {
        if (track.of !== 'cpu' || track.kind !== 'counter') active.add(id); // a frequency alone is no activity
      } else if (!known || isThreadState(track)) threads[numbers[id]] = 1;
    }
  }
  tracks.forEach((track, i) => {
    const thread = track.of === 'thread' && !known && track.thread !== null ? trace.threads[track.thread] : null;
    if (track.of === 'thread' && ((thread && thread.begin < until && thread.until >= begin) || threads[numbers[i]])) active.add(track.id);
  });
  return active;
}
