// SPDX-License-Identifier: Apache-2.0
import { Track } from '../src/model';
import { Sum, busyTracks, runsOf, spread } from '../src/summary';
import { equal, test } from './harness';

const track = (kind: string, of: string, name: string): Track => ({ kind, of, name }) as Track;

test('lanes are as busy as their calls, else their threads, else their CPUs', () => {
  const calls = track('calls', 'thread', 'calls'), state = track('states', 'thread', 'state'), gil = track('states', 'thread', 'GIL'), cpu = track('states', 'cpu', 'threads');
  equal(busyTracks([state, gil, calls, cpu]).tracks, [calls]);
  equal([busyTracks([gil, state]).tracks, busyTracks([cpu]).tracks, busyTracks([]).tracks], [[state], [cpu], []]);
});

test('a pixel is as busy as the bins under it, whatever their borders', () => {
  const busy = Array.from({ length: 512 }, (_, i) => (i < 4 ? i : 0)), sums = new Map<number, Sum>([[0, { tracks: 3, unfinished: false, busy }]]);
  equal([...spread(sums, 1, 0, 8, 4)], [0, 1, 2, 3]); // bins of 2 ns
  equal([...spread(sums, 1, 0, 8, 2)], [0.5, 2.5]);
  equal([...spread(sums, 1, 1, 4, 2)], [0.5, 1.5]);
  equal([...spread(sums, 1, -4, 4, 2)], [0, 0]);
  equal([...spread(sums, 1, 6, 2, 4)], [3, 3, 3, 3]);
});

test('stretches are of pixels side by side', () => {
  equal(runsOf(new Float64Array([0, 1, 0.1, 0, 0, 2])), [[1, 3], [5, 6]]);
  equal(runsOf(new Float64Array([0, 0])), []);
});
