// SPDX-License-Identifier: Apache-2.0
// The page's whole state: the range on the screen, the selection, the state of lanes. All changes go through here, and
// all views listen. The address bar contains the state, so that a link opens the same view.

import { Moves, followed } from './follow';
import { Call } from './model';

export interface Range { from: bigint; span: number } // nanoseconds

/** Restricted to these lanes and groups; none: all. */
export interface Base { range: Range; only: string[] }

export const GROUPINGS = ['process', 'thread', 'cpu', 'kind'] as const; // the first is usual
export type Grouping = typeof GROUPINGS[number];
export const WAYS = ['callees', 'callers', 'sandwich'] as const; // the first is usual
export type Way = typeof WAYS[number];

/** Small choices by name; a missing one has its default. */
export type Words = Record<string, string>;
const OF_IDS = ['focus', 'middle', 'syscall']; // picks that name functions and texts by ids, which a recording that grows may give anew

export interface View {
  range: Range;
  selected: Range | null; // of time
  call: { track: number; depth: number; at: bigint } | null;
  panel: string;
  filter: string; // of lanes
  group: Grouping;
  active: boolean; // only threads that ran in the range
  collapsed: string[];
  pinned: string[];
  deep: string[]; // shown to their full depth
  only: string[]; // lanes and groups that the tables are of; none: all
  order: string[]; // of lanes and groups that were moved
  func: number | null; // in the finder
  brush: [number, number] | null; // chosen durations of its calls, in nanoseconds
  events: string; // filter of the event table
  base: Base | null; // the base of comparisons
  path: boolean; // whether the selection's critical path is drawn
  way: Way; // of the flame graph
  aligned: boolean; // recordings are drawn side by side, each from its begin on (align.ts)
  scroll: number; // pixels of lanes above the screen
  picks: Words; // what panels have chosen: how a table is sorted, what fills the flame graph
  looks: Words; // the same, but no step to go back to: dark or light, the panels' height, the event that is looked at
}

/** The event that was chosen last: its time, and its number among the events of that time. */
export function eventOf({ looks }: Pick<View, 'looks'>): [bigint | null, number] {
  const found = /^(\d{1,19})\.(\d{1,6})$/.exec(looks.event ?? '');
  return found ? [BigInt(found[1]), Number(found[2])] : [null, 0];
}

export type Listener = (what: 'range' | 'selection' | 'lanes' | 'panel' | 'lit') => void;

const LEAST_SPAN = 20; // nanoseconds
const HISTORY = 200;

export class Store {
  view: View;
  whole: Range;
  detail: Call | null = null; // of view.call, once the server has said it
  lit: { func: number; min?: number; max?: number; calls?: Call[] } | null = null; // calls, of so many nanoseconds, that are lit up on the timeline
  cursor: bigint | null = null; // the time of the event that is chosen in a table
  private listeners: Listener[] = [];
  private past: string[] = [];
  private future: string[] = [];
  private settled = '';
  private readonly initial: string;
  private duration: bigint;
  private timer = 0;

  constructor(duration: bigint, panel: string, private alignment: { span: number }) {
    this.duration = duration;
    this.whole = { from: 0n, span: Math.max(Number(duration), LEAST_SPAN) };
    this.view = {
      range: { ...this.whole }, selected: null, call: null, panel, filter: '', group: 'process', active: false,
      collapsed: [], pinned: [], deep: [], only: [], order: [], func: null, brush: null, events: '', base: null, path: false,
      way: 'callees', aligned: false, scroll: 0, picks: {}, looks: {},
    };
    this.initial = this.settled = encode(this.view);
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  tell(what: Parameters<Listener>[0]): void {
    for (const listener of this.listeners) listener(what);
    this.settleLater();
  }

  private settleLater(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.settle(), 400);
  }

  setRange(from: bigint, span: number): void {
    const most = this.whole.span * 1.1;
    const wanted = Math.min(Math.max(span, LEAST_SPAN), most);
    const margin = BigInt(Math.round(wanted * 0.9));
    let begin = from;
    const last = BigInt(Math.round(this.whole.span)) - BigInt(Math.round(wanted)) + margin;
    if (begin > last) begin = last;
    if (begin < -margin) begin = -margin;
    if (wanted >= this.whole.span) begin = -BigInt(Math.round((wanted - this.whole.span) / 2));
    this.view.range = { from: begin, span: wanted };
    this.tell('range');
  }

  /** Zooms by a factor; what is at `share` of the width stays there. */
  zoom(factor: number, share: number): void {
    const { from, span } = this.view.range;
    const next = Math.min(Math.max(span * factor, LEAST_SPAN), this.whole.span * 1.1);
    this.setRange(from + BigInt(Math.round((span - next) * share)), next);
  }

  pan(share: number): void {
    const { from, span } = this.view.range;
    this.setRange(from + BigInt(Math.round(span * share)), span);
  }

  /** Shows a range with some room at both sides. */
  show(from: bigint, until: bigint, room = 0.1): void {
    const span = Math.max(Number(until - from), LEAST_SPAN);
    this.setRange(from - BigInt(Math.round(span * room)), span * (1 + 2 * room));
  }

  select(range: Range | null): void {
    this.view.selected = range;
    this.tell('selection');
  }

  selectCall(call: Call | null): void {
    this.detail = call;
    this.view.call = call && { track: call.track, depth: call.depth, at: call.begin };
    this.tell('selection');
  }

  openPanel(panel: string): void {
    this.view.panel = panel;
    this.tell('panel');
  }

  setFunc(func: number | null): void {
    this.setFuncAlone(func);
    this.tell('selection');
  }

  private setFuncAlone(func: number | null): void {
    if (this.view.func !== func) this.view.brush = null;
    this.view.func = func;
    this.lit = func === null ? null : { func };
  }

  /** Highlights the function's calls of certain durations; calls that are known one by one get a line. */
  light(calls: Call[], min?: number, max?: number): void {
    if (this.view.func === null) return;
    this.lit = { func: this.view.func, min, max, calls };
    for (const listener of this.listeners) listener('lit');
  }

  setBrush(brush: View['brush']): void {
    this.view.brush = brush;
    this.tell('selection');
  }

  setWay(way: Way): void {
    this.view.way = way;
    this.tell('panel');
  }

  /** This is not a step in the history, but a link contains it. */
  setScroll(pixels: number): void {
    this.view.scroll = Math.round(pixels);
    this.settleLater();
  }

  /** Stores a panel's choice, which the panel draws itself. Empty: the default. */
  pick(name: string, value: string): void {
    this.view.picks = withWord(this.view.picks, name, value);
    this.settleLater();
  }

  /** The same, without a step in the history. */
  look(name: string, value: string): void {
    this.view.looks = withWord(this.view.looks, name, value);
    this.settleLater();
  }

  setCursor(at: bigint | null): void {
    this.cursor = at;
    for (const listener of this.listeners) listener('lit');
  }

  /** Recordings side by side, or all at their own times. */
  setAligned(aligned: boolean): void {
    this.view.aligned = aligned;
    this.view.selected = this.view.base = null;
    this.measure();
    this.setRange(0n, this.whole.span);
    this.tell('lanes');
    this.tell('selection');
  }

  private measure(): void {
    this.whole = { from: 0n, span: Math.max(this.view.aligned ? this.alignment.span : Number(this.duration), LEAST_SPAN) };
  }

  setEvents(filter: string): void {
    this.view.events = filter;
    this.tell('selection');
  }

  togglePath(): void {
    this.view.path = !this.view.path;
    this.tell('selection');
  }

  setBase(base: Base | null): void {
    this.view.base = base;
    this.tell('selection');
  }

  toggle(list: 'collapsed' | 'pinned' | 'deep', key: string): void {
    const at = this.view[list].indexOf(key);
    if (at < 0) this.view[list].push(key);
    else this.view[list].splice(at, 1);
    this.tell('lanes');
  }

  /** Restricts the tables to this lane; with `more`, to others too. A second time: to none. */
  choose(key: string, more: boolean): void {
    const { only } = this.view, isChosen = only.includes(key);
    if (more) this.view.only = isChosen ? only.filter((each) => each !== key) : [...only, key];
    else this.view.only = isChosen && only.length === 1 ? [] : [key];
    this.tell('lanes');
    this.tell('selection');
  }

  chooseAll(): void {
    this.chooseOnly([]);
  }

  chooseOnly(keys: string[]): void {
    this.view.only = [...keys];
    this.tell('lanes');
    this.tell('selection');
  }

  /** Puts these lanes, all of one level, into this order. */
  arrange(keys: string[]): void {
    this.view.order = [...this.view.order.filter((key) => !keys.includes(key)), ...keys];
    this.tell('lanes');
  }

  nextGrouping(): void {
    this.view.group = GROUPINGS[(GROUPINGS.indexOf(this.view.group) + 1) % GROUPINGS.length];
    this.tell('lanes');
  }

  /** The range of the tables: the selected one, or the range on the screen. */
  get asked(): Range {
    return this.view.selected ?? this.view.range;
  }

  /** The recording is longer now, and its parts may have other numbers. This is not a step in the history. */
  grow(duration: bigint, moves: Moves, func: number | null): void {
    const { view } = this, before = this.whole.span, track = view.call && moves.track(view.call.track);
    this.settle();
    this.duration = duration;
    this.measure();
    view.range = followed(view.range, before, this.whole.span);
    if (view.call) view.call = track === undefined ? null : { ...view.call, track: track as number };
    this.detail = null; // a call that had not ended may have
    this.setFuncAlone(func);
    for (const [, list] of LISTS) view[list] = view[list].map(moves.key);
    if (view.base) view.base.only = view.base.only.map(moves.key);
    if (!moves.same) for (const name of OF_IDS) view.picks = withWord(view.picks, name, '');
    this.settled = encode(view);
    this.write(false);
    for (const what of ['lanes', 'range', 'selection'] as const) for (const listener of this.listeners) listener(what);
  }

  /** Goes back, or forward again, through the history. */
  step(back: boolean): void {
    this.settle();
    const [from, to] = back ? [this.past, this.future] : [this.future, this.past];
    const view = from.pop();
    if (!view) return;
    to.push(this.settled);
    this.restore(view);
    this.settled = view;
    this.write(true);
  }

  /** Applies a link or an entry of the browser's history; an empty one restores the first view. */
  open(text: string): void {
    this.settle();
    this.restore(text || this.initial);
    const now = encode(this.view);
    if (now === this.settled) return;
    this.past.push(this.settled);
    this.future = [];
    this.settled = now;
  }

  /** Whether the last change is not in the history and the address bar yet. */
  get settling(): boolean {
    return this.timer !== 0;
  }

  private settle(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    const now = encode(this.view);
    if (now === this.settled) return;
    const isStep = stepOf(now) !== stepOf(this.settled);
    if (isStep) {
      this.past.push(this.settled);
      if (this.past.length > HISTORY) this.past.shift();
      this.future = [];
    }
    this.settled = now;
    this.write(isStep);
  }

  /** Each step is an entry in the browser's history, so that its Back goes through them too. */
  private write(isStep: boolean): void {
    if (isStep) history.pushState(null, '', '#' + this.settled);
    else history.replaceState(null, '', '#' + this.settled);
  }

  restore(text: string): void {
    const view = decode(text, this.view);
    if (!view) return;
    this.view = view;
    this.measure();
    this.detail = null;
    this.lit = view.func === null ? null : { func: view.func };
    for (const what of ['lanes', 'range', 'selection', 'panel'] as const) {
      for (const listener of this.listeners) listener(what);
    }
  }
}

const LISTS = [['x', 'collapsed'], ['t', 'pinned'], ['d', 'deep'], ['o', 'only'], ['q', 'order']] as const;

/** The part of a link that is a step in the history. */
function stepOf(view: string): string {
  return view.replace(/;[yl]=[^;]*/g, '');
}

function withWord(words: Words, name: string, value: string): Words {
  const { [name]: _, ...others } = words;
  return value ? { ...others, [name]: value } : others;
}

function wordsText(words: Words): string {
  return Object.entries(words).map((entry) => entry.map(encodeURIComponent).join(':')).join(',');
}

function readWords(text: string): Words {
  return Object.fromEntries(text.split(',').map((entry) => entry.split(':').map(decodeURIComponent)).filter((entry) => entry.length === 2));
}

/** key=value, with semicolons between. */
export function encode(view: View): string {
  const parts = [`r=${view.range.from},${view.range.span}`, `p=${view.panel}`];
  if (view.selected) parts.push(`s=${view.selected.from},${view.selected.span}`);
  if (view.events) parts.push(`e=${encodeURIComponent(view.events)}`);
  if (view.base) parts.push(`b=${[view.base.range.from, view.base.range.span, ...view.base.only.map(encodeURIComponent)].join(',')}`);
  if (view.call) parts.push(`c=${view.call.track},${view.call.depth},${view.call.at}`);
  if (view.filter) parts.push(`f=${encodeURIComponent(view.filter)}`);
  if (view.group !== 'process') parts.push(`g=${view.group}`);
  if (view.active) parts.push('a=1');
  if (view.path) parts.push('k=1');
  if (view.func !== null) parts.push(`n=${view.func}`);
  if (view.brush) parts.push(`u=${view.brush.join(',')}`);
  if (view.way !== 'callees') parts.push(`w=${view.way}`);
  if (view.aligned) parts.push('z=1');
  if (view.scroll > 0) parts.push(`y=${view.scroll}`);
  for (const [key, words] of [['j', view.picks], ['l', view.looks]] as const) if (Object.keys(words).length) parts.push(`${key}=${wordsText(words)}`);
  for (const [key, list] of LISTS) if (view[list].length) parts.push(`${key}=${view[list].map(encodeURIComponent).join(',')}`);
  return parts.join(';');
}

function readNumbers(text: string, most: number): number[] {
  const numbers = text.split(',').map(Number);
  if (numbers.length !== most || !numbers.every((n) => isFinite(n) && n >= 0)) throw new Error(text);
  return numbers;
}

function readRange(text: string): Range {
  const [from, span] = text.split(',');
  const range = { from: BigInt(from), span: Number(span) };
  if (!(range.span > 0) || !isFinite(range.span)) throw new Error(text);
  return range;
}

/** Applies a link to a view; null if the link is invalid. */
export function decode(text: string, base: View): View | null {
  try {
    const view: View = { ...base, selected: null, call: null, filter: '', group: 'process', active: false, func: null, brush: null, events: '', base: null, path: false, way: 'callees', aligned: false, scroll: 0, picks: {}, collapsed: [], pinned: [], deep: [], only: [], order: [] };
    for (const part of text.split(';')) {
      const [key, value] = [part.slice(0, 1), part.slice(2)];
      if (key === 'r') view.range = readRange(value);
      if (key === 'e') view.events = decodeURIComponent(value);
      if (key === 'b') view.base = { range: readRange(value), only: value.split(',').slice(2).map(decodeURIComponent) };
      if (key === 's') view.selected = readRange(value);
      if (key === 'p') view.panel = value;
      if (key === 'f') view.filter = decodeURIComponent(value);
      if (key === 'g') view.group = GROUPINGS.find((each) => each === value) ?? 'process';
      if (key === 'a') view.active = value === '1';
      if (key === 'k') view.path = value === '1';
      if (key === 'n') view.func = Number(value);
      if (key === 'u') view.brush = readNumbers(value, 2) as [number, number];
      if (key === 'w') view.way = WAYS.find((each) => each === value) ?? 'callees';
      if (key === 'z') view.aligned = value === '1';
      if (key === 'y') [view.scroll] = readNumbers(value, 1);
      if (key === 'j') view.picks = readWords(value);
      if (key === 'l') view.looks = readWords(value);
      const list = LISTS.find(([letter]) => letter === key);
      if (list) view[list[1]] = value.split(',').map(decodeURIComponent);
      if (key === 'c') {
        const [track, depth, at] = value.split(',');
        view.call = { track: Number(track), depth: Number(depth), at: BigInt(at) };
      }
    }
    return view;
  } catch {
    return null;
  }
}
