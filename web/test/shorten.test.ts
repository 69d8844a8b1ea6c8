// SPDX-License-Identifier: Apache-2.0
import { shortenMiddle } from '../src/shorten';
import { equal, test } from './harness';

const short = (text: string, width: number): string => shortenMiddle(text, width, (part) => [...part].length);

test('a name that is too long keeps its begin and its end', () => {
  equal(short('oven', 4), 'oven');
  equal(short('the state of the oven 1', 11), 'the s\u2026ven 1');
  equal(short('the state of the oven 2', 11), 'the s\u2026ven 2');
  equal(short('the oven of the state', 10), 'the\u2026state'); // no blank beside the dots
});

test('a name is not cut within a letter, and keeps something however narrow its place is', () => {
  equal(short('\u{1f525}'.repeat(9), 5), `${'\u{1f525}'.repeat(2)}\u2026${'\u{1f525}'.repeat(2)}`);
  equal(short('the state', 1), 't\u2026e');
});
