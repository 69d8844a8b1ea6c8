// SPDX-License-Identifier: Apache-2.0
import { barsOf, limitsOf } from '../src/panels/intervals';
import { equal, test } from './harness';

test('a histogram has the sums of all columns, shortest first', () => {
  equal(barsOf([{ bucket: 16, count: 2 }, { bucket: 3, count: 1 }, { bucket: 16, count: 5 }], 8), [[3, 4, 1], [16, 18, 7]]);
  equal(barsOf([], 8), []);
});

test('a signal that stays the same has a height', () => {
  equal(limitsOf([[0, 1, 5, 5, 5]]), [5, 6]);
  equal(limitsOf([[0, 2, -1, 5, 3], [4, 1, -3, -3, -3]]), [-3, 5]);
  equal(limitsOf([]), [0, 1]);
});
