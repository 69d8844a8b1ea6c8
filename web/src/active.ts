// SPDX-License-Identifier: Apache-2.0
// Which tracks have something to show in a range of time: what is empty can be hidden.

import { Trace, Track } from './model';

function threadOf(track: Track): string {
  return `${track.pid}.${track.number}`;
}

/** Of `found`, ranges of tracks as the server has them. A thread is there as a whole or not at all: where the kernel was recorded if it ran, else if it lived or something else happened on it. */
export function activeOf(trace: Pick<Trace, 'tracks' | 'threads'>, found: [number, number][], begin: bigint, until: bigint): Set<number> {
  const active = new Set<number>(), threads = new Set<string>(), isState = (track: Track): boolean => track.kind === 'states' && track.name === 'state';
  const known = trace.tracks.some((track) => track.of === 'thread' && isState(track));
  for (const [first, last] of found) {
    for (let id = first; id <= last; id++) {
      const track = trace.tracks[id];
      if (track.of !== 'thread') {
        if (track.of !== 'cpu' || track.kind !== 'counter') active.add(id); // a frequency alone is no activity
      } else if (!known || isState(track)) threads.add(threadOf(track));
    }
  }
  for (const track of trace.tracks) {
    const thread = track.of === 'thread' && !known && track.thread !== null ? trace.threads[track.thread] : null;
    if (track.of === 'thread' && ((thread && thread.begin < until && thread.until >= begin) || threads.has(threadOf(track)))) active.add(track.id);
  }
  return active;
}
