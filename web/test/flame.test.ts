// SPDX-License-Identifier: Apache-2.0
import { brushByKey } from '../src/panels/finder';
import { Box, boxBeside } from '../src/panels/flame';
import { Node, calleesOf, callersOf, changes, inverted } from '../src/panels/flame_tree';
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

// all 100 > main > f 60 > f 20; main > g 30 > f 5; and f alone 10
const TREE = [node(-1, -1, 0, 0, 110), node(0, 1, 1, 10, 100), node(1, 2, 3, 40, 60), node(2, 2, 1, 20, 20), node(1, 3, 1, 25, 30), node(4, 2, 1, 5, 5), node(0, 2, 1, 10, 10)];
TREE.forEach((each, i) => { if (each.parent >= 0) TREE[each.parent].children.push(i); });
const named = (nodes: Node[], of: number): number[][] => nodes[of].children.map((i) => [nodes[i].func, nodes[i].total]);

test('a sandwich has a function once, its recursion inside', () => {
  const above = callersOf(TREE, 2), below = calleesOf(TREE, 2);
  equal([above[0].total, below[0].total], [75, 75]);
  equal(named(above, 0), [[1, 60], [3, 5]]);
  equal(named(above, above[0].children[1]), [[1, 5]]);
  equal(named(below, 0), [[2, 20]]);
  equal([below[0].self, below[0].calls], [55, 5]);
});

test('a function that is not there has no callers and no callees', () => {
  equal([callersOf(TREE, 9), calleesOf(TREE, 9)].map((nodes) => [nodes.length, nodes[0].total]), [[1, 0], [1, 0]]);
});

test('changes are of shares, by path; what is new has changed by all of its share', () => {
  const base = [node(-1, -1, 0, 0, 50), node(0, 1, 1, 50, 50)];
  const by = changes(TREE, base);
  equal([by[0], by[1].toFixed(4), by[6].toFixed(4)], [0, (100 / 110 - 1).toFixed(4), (10 / 110).toFixed(4)]);
});

test('keys lead from frame to frame', () => {
  const at = (node: number, x: number, width: number, row: number): Box => ({ nodes: TREE, node, x, width, row });
  const boxes = [at(0, 0, 110, 0), at(1, 0, 100, 1), at(6, 100, 10, 1), at(2, 0, 60, 2), at(4, 60, 30, 2)];
  const go = (from: number, key: string): number | undefined => boxBeside(boxes, boxes[from], key)?.node;
  equal([go(0, 'ArrowDown'), go(1, 'ArrowDown'), go(3, 'ArrowRight'), go(4, 'ArrowLeft'), go(4, 'ArrowUp'), go(2, 'ArrowDown'), go(0, 'ArrowUp')], [1, 2, 4, 2, 1, undefined, undefined]);
});

test('keys choose bars of a histogram', () => {
  const bars: [number, number, number][] = [[1, 2, 5], [4, 8, 1], [8, 16, 3]];
  equal(brushByKey(bars, null, 'ArrowRight', false), [1, 1]);
  equal(brushByKey(bars, [1, 1], 'ArrowRight', false), [4, 7]);
  equal(brushByKey(bars, [4, 7], 'ArrowRight', true), [4, 15]);
  equal(brushByKey(bars, [8, 15], 'ArrowRight', false), [8, 15]);
  equal(brushByKey(bars, null, 'ArrowLeft', false), [8, 15]);
  equal(brushByKey([], null, 'ArrowLeft', false), null);
});
