// SPDX-License-Identifier: Apache-2.0
// The flame graph of the range: callees, callers, or both of one function; alone, or compared with another range.

import { ask } from '../api';
import { button, el } from '../dom';
import { label, place } from '../model';
import { palette } from '../palette';
import { Base, Context, Panel, baseParams, rangeParams, toggleBase } from '../panel';
import { hasCalls } from './functions';
import { CHARACTER, FONT, shorten } from '../shorten';
import { Way } from '../store';
import { count, counted, duration, share } from '../time';
import { isDark, sized } from '../timeline';
import { Node, build, calleesOf, callersOf, changes, inverted, totalsByPath } from './flame_tree';

export interface Box { nodes: Node[]; node: number; x: number; width: number; row: number }
interface Answer { nodes: number[][]; left_out: number }

const ROW = 18, LEAST_PIXELS = 0.7;
let way: Way = 'callees', recorded: Node[] = [], below: Node[] = [], above: Node[] = [], focus = 0, boxes: Box[] = [], leftOut = 0, rows = 1;
let middle = -1; // function of the sandwich
let base: Node[] | null = null, change: number[] = [], before = new Map<string, number>();
let canvas: HTMLCanvasElement, crumbs: HTMLElement, tip: HTMLElement, scroller: HTMLElement, current: Context, compare: HTMLButtonElement;
let keyed: Box | null = null; // the box that was reached by keys
const ways = new Map<Way, HTMLButtonElement>();

/** Makes the boxes of a tree from `top` on, downward or upward; returns the number of rows. */
function layoutTree(nodes: Node[], from: number, width: number, top: number, step: 1 | -1): number {
  let deepest = 0;
  const walk = (node: number, x: number, size: number, depth: number): void => {
    boxes.push({ nodes, node, x, width: size, row: top + step * depth });
    deepest = Math.max(deepest, depth);
    let at = x;
    for (const child of nodes[node].children) {
      const part = nodes[node].total ? nodes[child].total / nodes[node].total * size : 0;
      if (part >= LEAST_PIXELS) walk(child, at, part, depth + 1);
      at += part;
    }
  };
  if (nodes.length) walk(from, 0, width, 0);
  return deepest;
}

function layout(width: number): void {
  boxes = [];
  if (way !== 'sandwich') {
    rows = 1 + layoutTree(below, focus, width, 0, 1);
    return;
  }
  const high = layoutTree(above, 0, width, 0, -1);
  boxes.shift(); // the function itself comes with its callees
  rows = high + 1 + layoutTree(below, 0, width, 0, 1);
  for (const box of boxes) box.row += high;
}

function textOf(func: number): string {
  if (func < 0) return 'all';
  const known = current.api.funcs.get(func);
  return known ? label(known) : '\u2026';
}

function colourOf(box: Box): string {
  const node = box.nodes[box.node], colours = palette(isDark());
  if (base && box.nodes === recorded) return colours.change(change[box.node]);
  if (node.func < 0) return colours.rule;
  const func = current.api.funcs.get(node.func);
  return func ? colours.call(func.hue, func.id) : colours.grid;
}

function draw(): void {
  if (!below.length) return;
  drawBoxes();
  drawBar();
}

function drawBoxes(): void {
  const width = Math.max(canvas.clientWidth, 1);
  layout(width);
  const height = Math.max(rows * ROW + 4, 40), context = sized(canvas, width, height), colours = palette(isDark()), lit = current.store.view.func;
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = 'middle';
  for (const box of boxes) {
    const node = box.nodes[box.node], y = box.row * ROW, room = Math.floor((box.width - 8) / CHARACTER);
    context.globalAlpha = lit !== null && node.func !== lit && way !== 'sandwich' && !base ? 0.35 : 1;
    context.fillStyle = colourOf(box);
    context.fillRect(box.x, y, Math.max(box.width - 1, 0.6), ROW - 1);
    context.globalAlpha = 1;
    if (keyed && keyed.nodes === box.nodes && keyed.node === box.node) {
      context.strokeStyle = colours.ink;
      context.strokeRect(box.x + 0.5, y + 0.5, Math.max(box.width - 2, 1), ROW - 2);
    }
    if (room < 3) continue;
    context.fillStyle = node.func < 0 && !base ? colours.ink : colours.textOn;
    context.fillText(shorten(textOf(node.func), room), box.x + 4, y + ROW / 2);
  }
}

/** The path from the root to the frame that fills the width; a click on a step goes back to it. */
function drawBar(): void {
  for (const [key, made] of ways) made.setAttribute('aria-pressed', String(key === way));
  compare.setAttribute('aria-pressed', String(!!base));
  compare.textContent = base ? 'End comparison' : 'Compare';
  const chain: number[] = [];
  for (let up = way === 'sandwich' ? -1 : focus; up >= 0; up = below[up].parent) chain.unshift(up);
  const made: (HTMLElement | string)[] = [el('span', { class: 'quiet' }, duration(below[focus]?.total ?? 0) + (leftOut ? `; ${count(leftOut)} small frames are left out` : ''))];
  if (way === 'sandwich') made.push(el('span', {}, `${textOf(middle)}: callers above, callees below`));
  else if (focus > 0) chain.forEach((node, i) => made.push(i ? '\u203a' : '', button(textOf(below[node].func), 'Fill the width with it', () => fill(node), 'link crumb')));
  if (base) made.push(el('span', { class: 'quiet' }, 'orange: a larger share than in the range before; blue: a smaller one'));
  crumbs.replaceChildren(...made);
}

function boxAt(event: MouseEvent): Box | undefined {
  const row = Math.floor(event.offsetY / ROW);
  return boxes.find((box) => box.row === row && event.offsetX >= box.x && event.offsetX < box.x + box.width);
}

function pathOf(nodes: Node[], at: number): string {
  let path = '';
  for (let up = at; nodes[up].parent >= 0; up = nodes[up].parent) path = `/${nodes[up].func}${path}`;
  return path;
}

function hover(event: MouseEvent): void {
  const box = boxAt(event), area = (scroller.parentElement as HTMLElement).getBoundingClientRect();
  tell(box, event.clientX - area.left + 12, event.clientY - area.top + 16);
}

/** The text beside a box. */
function tell(box: Box | undefined, x: number, y: number): void {
  const node = box && box.nodes[box.node];
  tip.hidden = !node;
  if (!box || !node) return;
  const func = node.func < 0 ? undefined : current.api.funcs.get(node.func), all = recorded[0].total;
  const own = box.nodes === above ? '' : `self ${duration(node.self)}; `;
  const lines = [textOf(node.func), `${duration(node.total)}, ${share(node.total, all)}; ${own}${current.trace.samples ? 'estimates by samples' : counted(node.calls, 'call')}`, func ? place(func) : ''];
  if (base && box.nodes === recorded) {
    const was = before.get(pathOf(recorded, box.node)) ?? 0;
    lines.push(`before: ${duration(was)}, ${share(was, base[0].total)}`);
  }
  tip.replaceChildren(...lines.filter((line) => line).map((line, i) => el('div', { class: i ? '' : 'first' }, line)));
  const bounds = (scroller.parentElement as HTMLElement).getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x, bounds.width - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.min(y, bounds.height - tip.offsetHeight - 4)}px`;
}

/** The box that a key goes to: beside, or in the next row below or above. */
export function boxBeside(list: Box[], from: Box, key: string): Box | undefined {
  const row = (at: number): Box[] => list.filter((box) => box.row === at).sort((a, b) => a.x - b.x), own = row(from.row), at = own.indexOf(from);
  if (key === 'ArrowRight') return own[at + 1];
  if (key === 'ArrowLeft') return own[at - 1];
  const covers = (box: Box): boolean => box.x <= from.x + 0.5 && box.x + box.width > from.x + 0.5;
  return key === 'ArrowDown' ? row(from.row + 1).find((box) => box.x >= from.x - 0.5 && box.x < from.x + from.width) ?? row(from.row + 1).find(covers) : row(from.row - 1).find(covers);
}

function keyDown(event: KeyboardEvent): void {
  const here = boxes.find((box) => box.nodes === keyed?.nodes && box.node === keyed.node) ?? null;
  if (event.key === 'Enter' && here) press(here);
  else if (/^Arrow/.test(event.key)) keyed = (here ? boxBeside(boxes, here, event.key) : boxes[0]) ?? here;
  else return;
  event.preventDefault();
  event.stopPropagation();
  draw();
  const shown = boxes.find((box) => box.nodes === keyed?.nodes && box.node === keyed.node);
  if (!shown) return;
  scroller.scrollTop = Math.max(Math.min(scroller.scrollTop, shown.row * ROW), (shown.row + 1) * ROW - scroller.clientHeight);
  tell(shown, shown.x + 24, shown.row * ROW - scroller.scrollTop + scroller.offsetTop + ROW + 4);
}

/** The node of the same path in another tree, or its nearest ancestor that exists. */
function follow(path: string, nodes: Node[]): number {
  let at = 0;
  for (const func of path.split('/').slice(1)) {
    const next = nodes[at].children.find((child) => nodes[child].func === Number(func));
    if (next === undefined) break;
    at = next;
  }
  return at;
}

function show(path = ''): void {
  above = way === 'sandwich' ? callersOf(recorded, middle) : [];
  below = way === 'callers' ? inverted(recorded) : way === 'sandwich' ? calleesOf(recorded, middle) : recorded;
  focus = way === 'sandwich' ? 0 : follow(path, below);
  draw();
}

/** The function of a sandwich: the one that fills the width, is highlighted, or has the most self time. */
function chooseMiddle(): number {
  const focused = way === 'sandwich' ? -1 : below[focus]?.func ?? -1;
  if (focused >= 0) return focused;
  const lit = current.store.view.func;
  if (lit !== null && recorded.some((node) => node.func === lit)) return lit;
  const tops = inverted(recorded);
  return tops[tops[0].children[0]]?.func ?? -1;
}

function choose(next: Way): void {
  turn(next);
  current.store.pick('middle', way === 'sandwich' ? String(middle) : '');
  current.store.pick('focus', '');
  current.store.setWay(next);
  show();
}

/** Makes a frame as wide as the whole picture. */
function fill(node: number): void {
  focus = node;
  current.store.pick('focus', pathOf(below, node));
  draw();
}

function turn(next: Way): void {
  if (next === 'sandwich' && recorded.length) middle = chooseMiddle();
  way = next;
}

function press(box: Box): void {
  const func = box.nodes[box.node].func;
  if (way !== 'sandwich') {
    fill(box.node);
  } else if (func >= 0) {
    middle = func;
    current.store.pick('middle', String(func));
    show();
  }
}

async function loadBase(of: Base | null, signal: AbortSignal): Promise<void> {
  base = of && build((await ask<Answer>('flame', baseParams(current, of), signal)).nodes);
  before = base ? totalsByPath(base) : new Map();
  change = base ? changes(recorded, base) : [];
}

export const flame: Panel = {
  id: 'flame', title: 'Flame graph', key: '4', ofRange: true, offered: hasCalls,
  make(context) {
    current = context;
    canvas = el('canvas', { class: 'flame', role: 'img', tabindex: '0', 'aria-label': 'Flame graph; the arrow keys go from frame to frame, Enter fills the width with one; the table of functions has its numbers' });
    canvas.addEventListener('keydown', keyDown);
    canvas.addEventListener('blur', () => {
      keyed = null;
      tip.hidden = true;
      if (below.length) drawBoxes(); // the path stays: the user may be clicking it
    });
    crumbs = el('span', { class: 'crumbs' });
    tip = el('div', { class: 'tip', role: 'status', hidden: '' });
    ways.set('callees', button('Callees', 'From the outermost function inward', () => choose('callees')));
    ways.set('callers', button('Callers', 'From the functions that take time outward', () => choose('callers')));
    ways.set('sandwich', button('Sandwich', 'Callers and callees of one function', () => choose('sandwich')));
    compare = button('Compare', 'Compare the ranges and lanes that you choose from now on with these', () => toggleBase(current));
    const bar = el('div', { class: 'note bar-row' }, el('span', { class: 'switch', role: 'group', 'aria-label': 'Direction' }, ...ways.values()), compare, crumbs);
    scroller = el('div', { class: 'flame-scroll' }, canvas);
    canvas.addEventListener('mousemove', hover);
    canvas.addEventListener('mouseleave', () => { tip.hidden = true; });
    canvas.addEventListener('click', (event) => {
      const box = boxAt(event);
      if (box) press(box);
    });
    canvas.addEventListener('dblclick', (event) => {
      const box = boxAt(event), func = box && box.nodes[box.node].func;
      if (func !== undefined && func >= 0) { context.store.setFunc(func); context.store.openPanel('finder'); }
    });
    new ResizeObserver(() => draw()).observe(canvas);
    return el('div', { class: 'fill relative' }, bar, scroller, tip);
  },
  async update(context, signal) {
    const answer = await ask<Answer>('flame', rangeParams(context), signal);
    recorded = build(answer.nodes);
    leftOut = answer.left_out;
    await loadBase(context.store.view.base, signal);
    const { way: wanted, picks } = context.store.view;
    if (way !== wanted) turn(wanted);
    if (way === 'sandwich' && picks.middle) middle = Number(picks.middle);
    show(picks.focus);
  },
};

/** Names have arrived. */
export function redrawFlame(): void {
  if (canvas?.isConnected) draw();
}
