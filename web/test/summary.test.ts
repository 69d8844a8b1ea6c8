// SPDX-License-Identifier: Apache-2.0
import { Track } from '../src/model';
import { Sum, busyTracks, missingText, runsOf, spread } from '../src/summary';
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

test('of how many threads events are missing is said in words', () => {
  equal([1, 3, 2.998].map(missingText), ['events of 1 thread are missing here', 'events of 3 threads are missing here', 'events of 3 threads are missing here']);
  equal([0.25, 0.0001].map(missingText), ['events are missing here for 25.0% of one thread\u2019s time', 'events are missing here for <0.1% of one thread\u2019s time']);
  equal(missingText(2.4), 'events of 2.40 threads on average are missing here');
});
