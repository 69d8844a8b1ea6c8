// SPDX-License-Identifier: Apache-2.0
import { Call, Trace, Track } from '../src/model';
import { pathTrack, readSegment } from '../src/overlay';
import { sumPath } from '../src/panels/details';
import { equal, test } from './harness';

const track = (id: number, of: Track['of'], thread: number | null): Track => ({ id, of, thread } as Track);
const trace = { tracks: [track(0, 'cpu', null), track(1, 'thread', null), track(2, 'thread', 0), track(3, 'thread', 1)] } as unknown as Trace;

test('the path is of the selected thread, else of the first that was recorded', () => {
  equal(pathTrack(trace, { track: 3 } as Call), 3);
  equal(pathTrack(trace, { track: 1 } as Call), 1);
  equal(pathTrack(trace, { track: 0 } as Call), 2);
  equal(pathTrack(trace, null), 2);
  equal(pathTrack({ tracks: [] } as unknown as Trace, null), undefined);
});

test('a path is summed by thread, what it did and where', () => {
  const segment = (begin: string, end: string, kind: string, of: number, syscall: string | null) => readSegment([begin, end, kind, 0, of, 't', syscall, null, null, null, of, null]);
  const sums = sumPath([segment('0', '5', 'running', 1, null), segment('5', '9', 'timer', 2, 'nanosleep'), segment('9', '16', 'running', 1, null), segment('16', '17', 'running', 2, null)]);
  equal(sums.map((s) => [s.ns, s.count, String(s.segment.begin)]), [[12, 2, '9'], [4, 1, '5'], [1, 1, '16']]);
});
