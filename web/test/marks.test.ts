// SPDX-License-Identifier: Apache-2.0
import { LEVELS, Placed, roomOf, shortText } from '../src/marks';
import { palette } from '../src/palette';
import { CatEvent } from '../src/said';
import { equal, test } from './harness';

const at = (x: number, count = 1): Placed => ({ track: 1, x, top: 0, count, level: 2, from: BigInt(x), until: BigInt(x + 1) });
const event = (name: string, payload: NonNullable<CatEvent['payload']>): CatEvent => ({ time_ns: '0', event: name, payload });

test('a mark has a text if the next one is far enough', () => {
  const room = (...xs: number[]): [number, number][] => roomOf(xs.map((x) => at(x)), 300).map(({ mark, room: characters }) => [mark.x, characters]);
  equal(room(100), [[100, 29]]);
  equal(room(200, 100), [[100, 12], [200, 13]]);
  equal(room(100, 150, 290), [[150, 18]]);
  equal(room(-5, 320), []);
  equal(roomOf([at(10, 2), at(200)], 300).map(({ mark }) => mark.x), [200]); // of two marks it would be the text of one
});

test('what a mark says is one line', () => {
  equal(shortText(event('log:record', { level: 40, logger: { value: 7, label: 'shop' }, message: 'failed\nhere' })), 'ERROR shop: failed');
  equal(shortText(event('user:mark', { text: 'order', fields: '{"size":2}' })), 'order');
  equal(shortText(event('warning:shown', { category: { value: 3, label: 'UserWarning' }, message: 'soon' })), 'UserWarning: soon');
  equal(shortText(event('exception:uncaught', { type: 'ValueError', exception: 'ValueError: no\n  File "x"' })), 'ValueError: no');
  equal(shortText(event('work:submit', { id: 7 })), 'work:submit');
});

test('levels have colours of their own', () => {
  for (const dark of [false, true]) equal(new Set(LEVELS.map((_, level) => palette(dark).mark(level))).size, LEVELS.length);
});
