// SPDX-License-Identifier: Apache-2.0
import { differences, joinMoved, signed } from '../src/panels/compare';
import { equal, test } from './harness';

const row = (func: number, calls: number, self: number): number[] => [func, calls, self, 2 * self, 0, self / calls, 0, 0, 0, calls, 0, 0, 0];

test('a function has what it was in both, and nothing where it is missing', () => {
  const found = differences({ self: 100, rows: [row(1, 2, 60), row(2, 1, 40)] }, { self: 50, rows: [row(1, 1, 10), row(3, 4, 40)] });
  const none = { calls: 0, self: 0, total: 0, mean: 0, share: 0 };
  equal(found, [
    { func: 1, now: { calls: 2, self: 60, total: 120, mean: 30, share: 0.6 }, before: { calls: 1, self: 10, total: 20, mean: 10, share: 0.2 } },
    { func: 2, now: { calls: 1, self: 40, total: 80, mean: 40, share: 0.4 }, before: none },
    { func: 3, now: none, before: { calls: 4, self: 40, total: 80, mean: 10, share: 0.8 } },
  ]);
});

test('a mean of calls that were all cut is not known', () => {
  const cut = row(1, 2, 60);
  cut[11] = 2;
  equal(differences({ self: 100, rows: [cut] }, { self: 100, rows: [] })[0].now.mean, 0);
});

test('a change has its sign', () => {
  equal([5, -5, 0].map((n) => signed(n, String)), ['+5', '\u22125', '0']);
});

test('a function that has moved is compared with itself', () => {
  const found = differences({ self: 100, rows: [row(1, 2, 60), row(2, 1, 40)] }, { self: 50, rows: [row(3, 1, 10), row(4, 4, 40)] });
  const rows = joinMoved(found, (func) => (func === 1 || func === 3 ? 'app.main' : String(func)));
  equal(rows.map((each) => [each.func, each.now.self, each.before.self]), [[1, 60, 10], [2, 40, 0], [4, 0, 40]]);
});
