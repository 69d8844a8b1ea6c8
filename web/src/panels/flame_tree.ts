// SPDX-License-Identifier: Apache-2.0
// Call trees for the flame graph: as recorded, inverted, and the two halves of a sandwich.

export interface Node { parent: number; func: number; calls: number; self: number; total: number; children: number[] }

const root = (func: number): Node => ({ parent: -1, func, calls: 0, self: 0, total: 0, children: [] });

/** From the rows of api/flame: parents come before their children. */
export function build(rows: number[][]): Node[] {
  const made = rows.map(([parent, func, calls, self, total]): Node => ({ parent, func, calls, self, total, children: [] }));
  made.forEach((node, i) => { if (node.parent >= 0) made[node.parent].children.push(i); });
  return leftHeavy(made);
}

function leftHeavy(nodes: Node[]): Node[] {
  for (const node of nodes) node.children.sort((a, b) => nodes[b].total - nodes[a].total);
  return nodes;
}

/** A tree that grows by paths; children are found by parent and function. */
class Growing {
  private index = new Map<string, number>();
  readonly nodes: Node[];

  constructor(func: number) {
    this.nodes = [root(func)];
  }

  child(parent: number, func: number): number {
    const key = `${parent}/${func}`, known = this.index.get(key);
    if (known !== undefined) return known;
    const made = this.nodes.length;
    this.index.set(key, made);
    this.nodes.push({ ...root(func), parent });
    this.nodes[parent].children.push(made);
    return made;
  }

  add(node: number, total: number, calls: number): void {
    this.nodes[node].total += total;
    this.nodes[node].calls += calls;
  }

  /** The time that no child has is the node's self time. */
  finish(): Node[] {
    for (const node of this.nodes) node.self = Math.max(node.total - node.children.reduce((sum, child) => sum + this.nodes[child].total, 0), 0);
    return leftHeavy(this.nodes);
  }
}

/** The same time from the innermost functions outward: their callers, and the callers of these. */
export function inverted(from: Node[]): Node[] {
  const made = new Growing(-1);
  for (const node of from) {
    if (node.self <= 0 || node.func < 0) continue;
    let at = 0;
    made.add(0, node.self, 0);
    for (let up: Node | undefined = node, calls = node.calls; up && up.func >= 0; up = from[up.parent], calls = 0) {
      at = made.child(at, up.func);
      made.add(at, node.self, calls);
    }
  }
  return made.finish();
}

/** The nodes of a function that are not inside another call of it: their totals add up without counting twice. */
function outermost(from: Node[], func: number): Node[] {
  return from.filter((node) => {
    if (node.func !== func) return false;
    for (let up = from[node.parent]; up; up = from[up.parent]) if (up.func === func) return false;
    return true;
  });
}

/** The callers of a function, nearest first; the root is the function. */
export function callersOf(from: Node[], func: number): Node[] {
  const made = new Growing(func);
  for (const node of outermost(from, func)) {
    let at = 0;
    made.add(0, node.total, node.calls);
    for (let up = from[node.parent]; up && up.func >= 0; up = from[up.parent]) {
      at = made.child(at, up.func);
      made.add(at, node.total, node.calls);
    }
  }
  return made.finish();
}

/** The callees of a function, wherever it was called from; the root is the function. */
export function calleesOf(from: Node[], func: number): Node[] {
  const made = new Growing(func), todo: [number, number][] = [];
  const take = (node: Node, at: number): void => {
    made.add(at, node.total, node.calls);
    for (const child of node.children) todo.push([child, at]);
  };
  for (const node of outermost(from, func)) take(node, 0);
  for (let next = todo.pop(); next; next = todo.pop()) take(from[next[0]], made.child(next[1], from[next[0]].func));
  return made.finish();
}

/** Total time by path, to compare another tree with. */
export function totalsByPath(nodes: Node[]): Map<string, number> {
  const totals = new Map<string, number>(), paths: string[] = [];
  nodes.forEach((node, i) => {
    paths[i] = node.parent < 0 ? '' : `${paths[node.parent]}/${node.func}`;
    totals.set(paths[i], node.total);
  });
  return totals;
}

/** For each node, the difference between its share and that of its path in `base`: -1 to 1. */
export function changes(nodes: Node[], base: Node[]): number[] {
  const before = totalsByPath(base), all = nodes[0]?.total || 1, allBefore = base[0]?.total || 1, paths: string[] = [];
  return nodes.map((node, i) => {
    paths[i] = node.parent < 0 ? '' : `${paths[node.parent]}/${node.func}`;
    return node.total / all - (before.get(paths[i]) ?? 0) / allBefore;
  });
}
