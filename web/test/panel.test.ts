// SPDX-License-Identifier: Apache-2.0
import { Trace } from '../src/model';
import { idRanges } from '../src/panel';
import { fieldRows } from '../src/panels/details';
import { threadAt, trackName } from '../src/threads';
import { equal, test } from './harness';

test('ids are asked for as ranges', () => {
  equal(idRanges([9, 3, 7, 8, 7]), '3,7-9');
  equal(idRanges([]), '');
  equal(idRanges(Array.from({ length: 100000 }, (_, i) => i)), '0-99999');
  equal(idRanges(Array.from({ length: 5000 }, (_, i) => 2 * i)), undefined);
});

const TRACE = {
  processes: [{ pid: 5 }, { pid: 6 }],
  threads: [
    { process: 0, tid: 7, name: 'first', begin: 0n, until: 10n }, { process: 0, tid: 7, name: 'again', begin: 20n, until: 30n },
    { process: 1, tid: 7, name: 'other', begin: 0n, until: 30n },
  ],
  tracks: [{ of: 'thread', thread: 1, number: 99, threadName: '' }, { of: 'cpu', number: 3 }, { of: 'thread', thread: null, number: 8, threadName: '' }],
} as unknown as Trace;

test('a number that was given again means the thread that lives then', () => {
  equal([5n, 12n, 18n, 25n].map((at) => threadAt(TRACE, 7, at, 5)), [0, 0, 1, 1]);
  equal([threadAt(TRACE, 7, 5n, 6), threadAt(TRACE, 8, 5n), threadAt(TRACE, 7, 5n, 9)], [2, undefined, undefined]);
});

test('a track is named by its thread', () => {
  equal([0, 1, 2, 9].map((id) => trackName(TRACE, id)), ['again 7', 'CPU 3', '8', '']);
});

test('recorded arguments are rows, and no digit is lost', () => {
  equal(fieldRows('{"item":"a, \\"b\\": }","n":12345678901234567890,"deep":[{"x":1},2],"return":null}'),
    [['item', '"a, \\"b\\": }"'], ['n', '12345678901234567890'], ['deep', '[{"x":1},2]'], ['return', 'null']]);
  equal(fieldRows('{}'), []);
  equal(fieldRows(''), []);
  equal(fieldRows('{"cut":'), [['', '{"cut":']]);
  equal(fieldRows('no JSON'), [['', 'no JSON']]);
});
