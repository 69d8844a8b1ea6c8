// SPDX-License-Identifier: Apache-2.0
import { cutText, isTimed } from '../src/panels/functions';
import { aboutStretch, isSampled, stretchesText } from '../src/samples';
import { edgeWords } from '../src/tile';
import { equal, test } from './harness';

test('a track of samples has no calls', () => {
  equal([isSampled({ kind: 'calls', flags: 4 }), isSampled({ kind: 'calls', flags: 1 }), isSampled({ kind: 'states', flags: 4 })], [true, false, false]);
});

test('a stretch is of one sample at least', () => {
  const samples = { taken: 9, interval: 1000000 };
  equal([aboutStretch({ samples }, 3100000), aboutStretch({ samples }, 100)], ['a stretch of about 3 samples', 'a stretch of about 1 sample']);
  equal(stretchesText(2000, 1000).startsWith('2,000 stretches of samples in the range; the 1,000 longest are listed.'), true);
});

test('a call has words for edges that are not those of most calls', () => {
  equal([edgeWords(0), edgeWords(1 | 2), edgeWords(4 | 16), edgeWords(8)], ['', 'began before it was recorded, end not recorded', 'resumed after a yield, yields', 'ended by an exception']);
});

test('a function of which all runs were cut has no durations', () => {
  const row = (runs: number, cut: number): number[] => [0, 1, 5, 5, 0, 0, 0, 0, 0, runs, 0, cut, 0];
  equal([isTimed(row(2, 1)), isTimed(row(1, 1)), cutText(0), cutText(1)], [true, false, '', 'without 1 run whose begin or end was not recorded, or is not in the range']);
});
