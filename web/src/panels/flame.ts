// SPDX-License-Identifier: Apache-2.0
// The flame graph of the range: icicle, callers of one function, or what it calls.

import { ask } from '../api';
import { button, el } from '../dom';
import { label, place } from '../model';
import { FONT, shorten } from '../paint';
import { palette } from '../palette';
import { Context, Panel, rangeParams } from '../panel';
import { count, counted, duration, share } from '../time';
import { isDark, sized } from '../timeline';

interface Node { parent: number; func: number; calls: number; self: number; total: number; children: number[] }
interface Box { node: number; x: number; width: number; depth: number }

const ROW = 18;
type Way = 'callees' | 'callers';
let way: Way = 'callees', nodes: Node[] = [], roots: Node[] = [], focus = 0, boxes: Box[] = [], leftOut = 0;
let canvas: HTMLCanvasElement, crumbs: HTMLElement, tip: HTMLElement, scroller: HTMLElement, current: Context;

function build(rows: number[][]): Node[] {
  const made = rows.map(([parent, func, calls, self, total]): Node => ({ parent, func, calls, self, total, children: [] }));
  made.forEach((node, i) => { if (node.parent >= 0) made[node.parent].children.push(i); });
  for (const node of made) node.children.sort((a, b) => made[b].total - made[a].total);
  return made;
}

/** The same time seen from the innermost functions: who called them, and who called those. */
export function inverted(from: Node[]): Node[] {
  const made: Node[] = [{ parent: -1, func: -1, calls: 0, self: 0, total: 0, children: [] }], index = new Map<string, number>();
  for (const node of from) {
    if (node.self <= 0 || node.func < 0) continue;
    let at = 0;
    made[0].total += node.self;
    for (let up: Node | undefined = node, calls = node.calls; up && up.func >= 0; up = from[up.parent], calls = 0) {
      const key = `${at}/${up.func}`;
      let next = index.get(key);
      if (next === undefined) {
        next = made.length;
        index.set(key, next);
        made.push({ parent: at, func: up.func, calls: 0, self: 0, total: 0, children: [] });
        made[at].children.push(next);
      }
      made[next].total += node.self;
      made[next].calls += calls;
      at = next;
    }
  }
  for (const node of made) {
    node.children.sort((a, b) => made[b].total - made[a].total);
    node.self = node.total - node.children.reduce((sum, child) => sum + made[child].total, 0);
  }
  return made;
}

function layout(width: number): number {
  boxes = [];
  let deepest = 0;
  const chain: number[] = [];
  for (let up = focus; up >= 0; up = nodes[up].parent) chain.unshift(up);
  chain.slice(0, -1).forEach((node, depth) => boxes.push({ node, x: 0, width, depth }));
  const walk = (node: number, x: number, size: number, depth: number): void => {
    boxes.push({ node, x, width: size, depth });
    deepest = Math.max(deepest, depth);
    let at = x;
    for (const child of nodes[node].children) {
      const part = nodes[node].total ? nodes[child].total / nodes[node].total * size : 0;
      if (part >= 0.7) walk(child, at, part, depth + 1);
      at += part;
    }
  };
  if (nodes.length) walk(focus, 0, width, chain.length - 1);
  return (deepest + 1) * ROW + 4;
}

function textOf(node: Node): string {
  if (node.func < 0) return 'all';
  const func = current.api.funcs.get(node.func);
  return func ? label(func) : '\u2026';
}

function draw(): void {
  if (!nodes.length) return;
  const width = Math.max(canvas.clientWidth, 1), height = layout(width), context = sized(canvas, width, Math.max(height, 40)), colours = palette(isDark());
  const lit = current.store.view.func;
  context.clearRect(0, 0, width, Math.max(height, 40));
  context.font = FONT;
  context.textBaseline = 'middle';
  for (const box of boxes) {
    const node = nodes[box.node], func = node.func < 0 ? undefined : current.api.funcs.get(node.func), y = box.depth * ROW;
    context.globalAlpha = lit !== null && node.func !== lit ? 0.35 : 1;
    context.fillStyle = node.func < 0 ? colours.rule : func ? colours.call(func.hue, func.id) : colours.grid;
    context.fillRect(box.x, y, Math.max(box.width - 1, 0.6), ROW - 1);
    context.globalAlpha = 1;
    const room = Math.floor((box.width - 8) / 6.62), text = textOf(node);
    if (room < 3) continue;
    context.fillStyle = node.func < 0 ? colours.ink : colours.textOn;
    context.fillText(shorten(text, room), box.x + 4, y + ROW / 2);
  }
  crumbs.replaceChildren(el('span', { class: 'quiet' }, `${duration(nodes[focus]?.total ?? 0)}${leftOut ? `; ${count(leftOut)} small frames are left out` : ''}`));
}

function boxAt(event: MouseEvent): Box | undefined {
  const depth = Math.floor(event.offsetY / ROW);
  return boxes.find((box) => box.depth === depth && event.offsetX >= box.x && event.offsetX < box.x + box.width);
}

function hover(event: MouseEvent): void {
  const box = boxAt(event), node = box && nodes[box.node];
  tip.hidden = !node;
  if (!node) return;
  const func = node.func < 0 ? undefined : current.api.funcs.get(node.func), all = nodes[0].total;
  tip.replaceChildren(el('div', { class: 'first' }, textOf(node)), el('div', {}, `${duration(node.total)}, ${share(node.total, all)}; self ${duration(node.self)}; ${counted(node.calls, 'call')}`),
    el('div', {}, func ? place(func) : ''));
  const area = scroller.parentElement as HTMLElement, bounds = area.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX - bounds.left + 12, bounds.width - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.min(event.clientY - bounds.top + 16, bounds.height - tip.offsetHeight - 4)}px`;
}

function choose(next: Way): void {
  way = next;
  nodes = way === 'callers' ? inverted(roots) : roots;
  focus = 0;
  draw();
}

export const flame: Panel = {
  id: 'flame', title: 'Flame graph', key: '4', ofRange: true,
  make(context) {
    current = context;
    canvas = el('canvas', { class: 'flame', role: 'img', 'aria-label': 'Flame graph; the table of functions has its numbers' });
    crumbs = el('span');
    tip = el('div', { class: 'tip', hidden: '' });
    const bar = el('div', { class: 'note bar-row' }, button('Callees', 'From the outermost function inward', () => choose('callees')),
      button('Callers', 'From the functions that take time outward', () => choose('callers')), button('All', 'The whole again', () => { focus = 0; draw(); }), crumbs);
    scroller = el('div', { class: 'flame-scroll' }, canvas);
    canvas.addEventListener('mousemove', hover);
    canvas.addEventListener('mouseleave', () => { tip.hidden = true; });
    canvas.addEventListener('click', (event) => {
      const box = boxAt(event);
      if (!box) return;
      focus = box.node;
      draw();
    });
    canvas.addEventListener('dblclick', (event) => {
      const box = boxAt(event), func = box && nodes[box.node].func;
      if (func !== undefined && func >= 0) { context.store.setFunc(func); context.store.openPanel('finder'); }
    });
    new ResizeObserver(() => draw()).observe(canvas);
    return el('div', { class: 'fill relative' }, bar, scroller, tip);
  },
  async update(context, signal) {
    const answer = await ask<{ nodes: number[][]; left_out: number }>('flame', rangeParams(context), signal);
    roots = build(answer.nodes);
    leftOut = answer.left_out;
    nodes = way === 'callers' ? inverted(roots) : roots;
    focus = 0;
    draw();
  },
};

/** Names have come. */
export function redrawFlame(): void {
  if (canvas?.isConnected) draw();
}
