// SPDX-License-Identifier: Apache-2.0
import { inverted } from '../src/panels/flame';
import { equal, test } from './harness';

const node = (parent: number, func: number, calls: number, self: number, total: number): { parent: number; func: number; calls: number; self: number; total: number; children: number[] } =>
  ({ parent, func, calls, self, total, children: [] });

test('callers of each function add up to its self time, recursion included', () => {
  // main 10: f 60 (self 40, f 20 inside), g 30: f 5
  const tree = inverted([node(-1, -1, 0, 0, 100), node(0, 1, 1, 10, 100), node(1, 2, 3, 40, 60), node(2, 2, 1, 20, 20), node(1, 3, 1, 25, 30), node(4, 2, 1, 5, 5)]);
  const top = (func: number): number => tree[0].children.find((i) => tree[i].func === func) as number;
  equal(tree[0].total, 100);
  equal([1, 2, 3].map((func) => tree[top(func)].total), [10, 65, 25]);
  equal(tree[top(2)].children.map((i) => [tree[i].func, tree[i].total]).sort(), [[1, 40], [2, 20], [3, 5]]);
  equal(tree[top(2)].calls, 5);
});
