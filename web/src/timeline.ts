// SPDX-License-Identifier: Apache-2.0
// The timeline: the lanes, the axis above them, their names on the left, and mouse and keyboard input.

import { Alignment } from './align';
import { Api, ask, readCall, tileLength } from './api';
import { button, el } from './dom';
import { dropLines, momentsOf } from './drops';
import { Lane, Lanes, MOST_ROWS, Part } from './lanes';
import { MarkTexts } from './marks';
import { Call, Trace, Track, isBlaming, isLosses, label, place, returned, stateWords } from './model';
import { Notes } from './notes';
import { Said } from './said';
import { Overlay, askWakeups } from './overlay';
import { Frame, Painter, levelOf, shifted } from './paint';
import { Palette, palette } from './palette';
import { NameColumn } from './names';
import { quantities } from './quantity';
import { Range, Store } from './store';
import { aboutStretch, isSampled } from './samples';
import { BINS, Slice, edgeWords } from './tile';
import { cut } from './shorten';
import { cpuOf, doneBy, spanAt, spanNext } from './spans';
import { tiesOf } from './tasks';
import { count, counted, duration, moment, share, tickLabel, tickLabels, timeTicks } from './time';

const WINDOW = 1000000n; // ns: length of the first window of a search for wakeups
const AXIS = 26, TICK_PIXELS = 110, CLICK_PIXELS = 4, MORE = 18; // pixels; MORE: height of the link to deeper rows
const MARK_PIXELS = 5, MARKS_TOLD = 4, REST = 100; // greatest distance from the pointer to a mark; most marks in a tooltip; ms for which the pointer rests

const UNDRAWN = `The timeline draws calls down to depth ${MOST_ROWS}. The flame graph, krait report --tree and the details of a call show deeper ones; \u2193 goes to them.`;

/** The object under the pointer. */
interface Hit { lane: Lane; part: Part; depth: number; slice: Slice | null; begin: bigint; bin: { level: number; tile: number; bin: number; busy: number } | null }

export class Timeline {
  readonly element: HTMLElement;
  readonly lanes: Lanes;
  readonly column: NameColumn;
  readonly overlay: Overlay;
  readonly said: Said;
  private canvas = el('canvas', { class: 'lanes', role: 'img', 'aria-label': 'Timeline. The panels below show the same data as tables.' });
  private axis = el('canvas', { class: 'axis', 'aria-hidden': 'true' });
  private names = el('div', { class: 'names', role: 'tree', 'aria-label': 'Lanes' });
  private spacer = el('div', { class: 'spacer' });
  private scroller: HTMLDivElement;
  private tip = el('div', { class: 'tip', role: 'tooltip', hidden: '' });
  private rest = el('div', { class: 'arrows-rest', role: 'status' });
  readonly markTexts: MarkTexts;
  private painter: Painter;
  private wanted = false;
  private drag: { x: number; y: number; at: bigint; mode: 'select' | 'pan'; from: bigint; scroll: number; moved: boolean } | null = null;
  private tipAsk: AbortController | null = null;
  private dark: boolean;

  constructor(private trace: Trace, private store: Store, private api: Api, private notes: Notes, alignment: Alignment) {
    this.said = new Said(trace, api);
    this.lanes = new Lanes(trace, store, alignment);
    this.column = new NameColumn(this.lanes, store, () => this.draw());
    this.markTexts = new MarkTexts(this.said, () => this.draw());
    this.painter = new Painter(trace, store, api, this.lanes, this.markTexts);
    this.overlay = new Overlay(trace, store, this.lanes, () => this.draw());
    this.dark = isDark();
    const sticky = el('div', { class: 'sticky' }, this.names, this.canvas);
    this.scroller = el('div', { class: 'scroller', tabindex: '0', 'aria-label': 'Timeline' }, sticky, this.spacer);
    this.element = el('section', { class: 'timeline', 'aria-label': 'Timeline' }, this.axis, this.scroller, this.column.edge, this.rest, this.tip);
    this.column.apply();
    this.listen();
  }

  get width(): number {
    return Math.max(this.canvas.clientWidth, 1);
  }

  private listen(): void {
    this.scroller.addEventListener('scroll', () => {
      this.hideTip();
      if (!this.restoring) this.store.setScroll(this.scroller.scrollTop);
      this.draw();
    });
    for (const kind of ['wheel', 'pointerdown']) this.scroller.addEventListener(kind, () => { this.kept = null; }, { passive: true });
    this.names.addEventListener('pointerdown', (event) => this.pressName(event));
    this.names.addEventListener('keydown', (event) => this.keyOnName(event));
    this.names.addEventListener('focusin', (event) => { this.focusKey = (event.target as HTMLElement).closest<HTMLElement>('.lane')?.dataset.key ?? this.focusKey; });
    this.names.addEventListener('pointermove', (event) => this.moveName(event));
    this.names.addEventListener('pointerup', (event) => this.releaseName(event));
    this.canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    this.axis.addEventListener('pointermove', (event) => this.dropTip(event));
    this.axis.addEventListener('pointerleave', () => this.hideTip());
    this.axis.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener('pointerdown', (event) => this.press(event));
    this.canvas.addEventListener('pointermove', (event) => this.move(event));
    this.canvas.addEventListener('pointerup', (event) => this.release(event));
    this.canvas.addEventListener('pointerleave', () => this.hideTip());
    this.canvas.addEventListener('dblclick', (event) => this.zoomTo(event));
    this.store.listen((what) => {
      if (what === 'range') {
        this.api.forgetWaiting();
        this.hideTip(); // the object under the pointer has moved
      }
      if (what === 'lanes') this.relayout();
      if (what === 'range' || what === 'selection') this.overlay.later();
      this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
  }

  relayout(): void {
    this.lanes.layout();
    this.column.apply();
    this.draw();
  }

  /** Draws the timeline in the next animation frame. */
  draw(): void {
    if (this.wanted) return;
    this.wanted = true;
    requestAnimationFrame(() => {
      this.wanted = false;
      this.paint();
    });
  }

  private frame(): Frame {
    const { from, span } = this.store.view.range;
    return { width: this.width, height: this.scroller.clientHeight, scroll: this.scroller.scrollTop, from, span };
  }

  private paint(): void {
    this.dark = isDark();
    const colours = palette(this.dark), frame = this.frame();
    this.spacer.style.height = `${Math.max(this.lanes.height - frame.height, 0)}px`;
    this.restoreScroll();
    const context = sized(this.canvas, frame.width, frame.height);
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, frame.width, frame.height);
    this.grid(context, frame, colours);
    this.painter.paint(context, frame, colours);
    this.painter.lines(context, frame, colours);
    if (this.lanes.stale) {
      this.lanes.layout();
      if (this.kept) this.scrollTo(this.kept);
      this.draw();
    }
    this.drawSelection(context, frame, colours);
    this.overlay.draw(context, frame, colours);
    const { restText } = this.overlay;
    if (this.rest.textContent !== restText) this.rest.textContent = restText;
    this.drawAxis(colours);
    this.drawNames(frame);
    this.element.classList.toggle('loading', this.painter.missing);
  }

  /** Whether everything requested is on the screen; tests wait for this. */
  get settled(): boolean {
    return !this.wanted && !this.painter.missing && !this.api.busy && !this.overlay.busy;
  }

  private restoring = true; // the lanes above do not have their final heights yet

  /** Scrolls to the position in the link, again and again while lanes grow as their tiles arrive. */
  private restoreScroll(): void {
    const { scroll } = this.store.view;
    if (!this.restoring) return;
    if (Math.abs(this.scroller.scrollTop - scroll) > 1) this.scroller.scrollTop = scroll;
    if (Math.abs(this.scroller.scrollTop - scroll) <= 1 || !this.painter.missing) this.restoring = false;
  }

  private ticks(frame: Frame): { step: number; at: bigint[] } {
    return timeTicks(frame.from, frame.span, frame.width / TICK_PIXELS);
  }

  private grid(context: CanvasRenderingContext2D, frame: Frame, colours: Palette): void {
    context.fillStyle = colours.grid;
    for (const tick of this.ticks(frame).at) context.fillRect(Math.round(this.painter.x(tick, frame)), 0, 1, frame.height);
  }

  private drawAxis(colours: Palette): void {
    const frame = this.frame(), context = sized(this.axis, frame.width, AXIS), { step, at } = this.ticks(frame);
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, frame.width, AXIS);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    for (const tick of at) {
      const x = Math.round(this.painter.x(tick, frame));
      context.fillStyle = colours.rule;
      context.fillRect(x, AXIS - 6, 1, 6);
    }
    const taken = this.drawSpan(context, frame, colours); // draws over what is below, so it goes first
    context.fillStyle = colours.quiet;
    tickLabels(context, at.map((tick) => [Math.round(this.painter.x(tick, frame)) + 4, tickLabel(tick, step)]), AXIS / 2, frame.width, taken);
    this.drawNotes(context, frame, colours);
    this.drawDrops(context, frame, AXIS, colours);
  }

  /** Draws the selected range on the axis, with its duration. Returns the place of the text in pixels, where no tick can have its label. */
  private drawSpan(context: CanvasRenderingContext2D, frame: Frame, colours: Palette): [number, number] | undefined {
    const { selected } = this.store.view;
    if (!selected) return undefined;
    const left = this.painter.x(selected.from, frame), width = selected.span / frame.span * frame.width, text = duration(selected.span);
    context.fillStyle = colours.select;
    context.fillRect(left, 0, width, AXIS);
    context.fillStyle = colours.accent;
    context.fillRect(left, AXIS - 2, width, 2);
    const half = context.measureText(text).width / 2, middle = Math.min(Math.max(left + width / 2, half + 6), frame.width - half - 6);
    context.fillText(text, middle - half, AXIS / 2);
    return [middle - half - 4, middle + half + 4];
  }

  /** Draws a flag on the axis for each note, with its text if it fits before the next note. */
  private drawNotes(context: CanvasRenderingContext2D, frame: Frame, colours: Palette): void {
    if (this.store.view.aligned) return; // notes have times of the unaligned recordings
    this.notes.list.forEach((note, i) => {
      const next = this.notes.list[i + 1], x = Math.round(this.painter.x(note.range.from, frame)), width = note.range.span / frame.span * frame.width;
      if (x > frame.width || x + width < 0) return;
      context.fillStyle = colours.note;
      context.fillRect(x, 0, Math.max(width, 1), 3);
      context.fillRect(x, 0, 1, AXIS);
      context.beginPath();
      context.moveTo(x, 3);
      context.lineTo(x + 8, 7);
      context.lineTo(x, 11);
      context.fill();
      const room = (next ? this.painter.x(next.range.from, frame) : frame.width) - x - 14, text = cut(note.text, Math.floor(room / 6));
      if (!note.text || room < 24) return;
      context.fillStyle = colours.ground;
      context.fillRect(x + 9, 3, context.measureText(text).width + 6, AXIS - 8);
      context.fillStyle = colours.note;
      context.fillText(text, x + 12, AXIS / 2);
    });
  }

  /** Draws a dashed line at each time from which on less, or something else, was recorded. */
  private drawDrops(context: CanvasRenderingContext2D, frame: Frame, height: number, colours: Palette): void {
    if (this.store.view.aligned) return;
    context.fillStyle = colours.lost;
    for (const at of momentsOf(this.trace)) {
      const x = Math.round(this.painter.x(at, frame));
      for (let y = 0; x >= 0 && x <= frame.width && y < height; y += 8) context.fillRect(x, y, 1, 3);
    }
  }

  /** Shows what --max-overhead dropped, or krait ctl set changed, at the pointer. */
  private dropTip(event: PointerEvent): void {
    const frame = this.frame(), isNear = (at: bigint): boolean => !this.store.view.aligned && Math.abs(this.painter.x(at, frame) - event.offsetX) < 5;
    const lines = dropLines(this.trace, isNear, (id) => this.api.funcs.get(id));
    if (!lines.length) {
      this.hideTip();
      return;
    }
    this.fillTip(lines);
    this.placeTip(event);
  }

  private drawSelection(context: CanvasRenderingContext2D, frame: Frame, colours: Palette): void {
    const { selected } = this.store.view, call = this.store.detail;
    const begin = this.painter.x(0n, frame), end = this.painter.x(BigInt(Math.round(this.store.whole.span)), frame);
    context.fillStyle = colours.grid;
    if (begin > 0) context.fillRect(0, 0, begin, frame.height);
    if (end < frame.width) context.fillRect(end, 0, frame.width - end, frame.height);
    this.drawDrops(context, frame, frame.height, colours);
    context.fillStyle = colours.note;
    for (const { range } of this.store.view.aligned ? [] : this.notes.list) context.fillRect(Math.round(this.painter.x(range.from, frame)), 0, 1, frame.height);
    if (selected) {
      const left = this.painter.x(selected.from, frame), width = selected.span / frame.span * frame.width;
      context.fillStyle = colours.select;
      context.fillRect(left, 0, width, frame.height);
      context.fillStyle = colours.accent;
      context.fillRect(left, 0, 1, frame.height);
      context.fillRect(left + width, 0, 1, frame.height);
    }
    if (this.store.cursor !== null) {
      context.fillStyle = colours.path;
      context.fillRect(Math.round(this.painter.x(this.store.cursor - this.lanes.tableShift(), frame)), 0, 1, frame.height);
    }
    const at = call && this.lanes.of(call.track);
    if (!call || !at) return;
    const own = shifted(frame, at.lane.shift), left = Math.max(this.painter.x(call.begin, own), -4), right = Math.min(this.painter.x(call.end, own), frame.width + 4);
    const { rows, rowHeight } = at.part, top = at.lane.top + at.part.top + Math.min(call.depth, rows) * rowHeight - frame.scroll, width = Math.max(right - left - 1, 2);
    context.strokeStyle = context.fillStyle = colours.accent;
    context.lineWidth = 2;
    if (call.depth < rows) context.strokeRect(left, top, width, rowHeight - 1);
    else if (right > 0 && left < frame.width) context.fillRect(left, top - 1, width, 3); // below the rows that are drawn
  }

  private drawNames(frame: Frame): void {
    const made: HTMLElement[] = [];
    for (const lane of this.lanes.lanes) {
      const top = lane.top - frame.scroll;
      if (top > frame.height || top + lane.height < 0) continue;
      made.push(this.nameOf(lane, top));
    }
    const active = document.activeElement as HTMLElement | null;
    if (active && this.names.contains(active)) this.focusOn = active.classList[0];
    this.names.replaceChildren(...made);
    const row = this.focusOn && made.find((each) => each.dataset.key === this.focusKey);
    if (row && (document.activeElement === document.body || document.activeElement === null)) (row.querySelector<HTMLElement>(`.${this.focusOn}`) ?? row).focus({ preventScroll: true });
  }

  // Tab reaches one lane name and its buttons: the name that had the focus last (ARIA tree pattern).
  private focusKey = '';
  private focusOn = ''; // class of the focused element in that name; it gets the focus again after a redraw

  /** Handles keys on a lane's name: the keys of the ARIA tree pattern, Space to pin, Alt with arrows to move. */
  private keyOnName(event: KeyboardEvent): void {
    const { lanes } = this.lanes, at = lanes.findIndex((lane) => lane.key === this.focusKey), lane = lanes[at], ctrl = event.ctrlKey || event.metaKey;
    if (!lane || !(event.target as HTMLElement).classList.contains('lane')) return;
    const move = (to: number): void => this.focusName(lanes[Math.min(Math.max(to, 0), lanes.length - 1)]);
    const fold = (closed: boolean): void => {
      if (lane.collapsed !== closed) this.store.toggle('collapsed', lane.key);
      else if (closed && lane.level) move(lanes.findIndex((each) => each.key === lane.group));
      else if (!closed && !lane.level) move(at + 1);
    };
    const does: Record<string, () => void> = {
      ArrowDown: () => (event.altKey ? this.lanes.move(lane.key, 1) : move(at + 1)), ArrowUp: () => (event.altKey ? this.lanes.move(lane.key, -1) : move(at - 1)),
      ArrowLeft: () => fold(true), ArrowRight: () => fold(false), Home: () => move(0), End: () => move(lanes.length - 1),
      Enter: () => this.store.choose(lane.key, ctrl || event.shiftKey), ' ': () => { if (lane.level) this.store.toggle('pinned', lane.key); },
    };
    if (!(event.key in does) || (ctrl && event.key !== 'Enter')) return;
    event.preventDefault();
    event.stopPropagation();
    does[event.key]();
    const now = this.lanes.lanes.find((each) => each.key === lane.key);
    if (this.focusKey === lane.key && now) this.focusName(now); // it may have moved
  }

  private focusName(lane: Lane | undefined): void {
    if (!lane) return;
    const { scroller } = this, last = lane.top + Math.min(lane.height, scroller.clientHeight);
    this.focusKey = lane.key;
    this.focusOn = 'lane';
    if (lane.top < scroller.scrollTop) scroller.scrollTop = lane.top;
    else if (last > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = last - scroller.clientHeight;
    if (this.names.contains(document.activeElement)) (document.activeElement as HTMLElement).blur(); // drawNames() moves the focus to the name
    this.draw();
  }

  private nameOf(lane: Lane, top: number): HTMLElement {
    const toggle = button(lane.collapsed ? '\u25b8' : '\u25be', lane.collapsed ? 'Expand' : 'Collapse', () => {
      this.store.toggle('collapsed', lane.key);
    }, 'fold');
    toggle.setAttribute('aria-expanded', String(!lane.collapsed));
    toggle.setAttribute('aria-label', `${lane.collapsed ? 'Expand' : 'Collapse'} ${lane.title}`);
    const isChosen = this.store.view.only.includes(lane.key), moves = this.moving?.moved && this.moving.key === lane.key;
    const title = this.column.shown(lane);
    const row = el('div', { class: `lane${lane.level ? '' : ' head'}${isChosen ? ' chosen' : ''}${moves ? ' moves' : ''}`, role: 'treeitem', 'aria-level': String(lane.level + 1), 'aria-selected': String(isChosen),
      'aria-label': `${lane.title} ${lane.hint}`.trim(), title: `${lane.title} ${lane.hint}\nclick: show only this lane in the tables; drag: move it`,
      'aria-keyshortcuts': 'Enter Space Alt+ArrowUp Alt+ArrowDown' },
      toggle, el('span', { class: title !== lane.title ? 'title short' : 'title' }, title), el('span', { class: 'hint' }, lane.hint));
    if (lane.level) {
      const pin = button('\u25c6', lane.pinned ? 'Unpin' : 'Pin to the top', () => this.store.toggle('pinned', lane.key), lane.pinned ? 'pin on' : 'pin');
      pin.setAttribute('aria-pressed', String(lane.pinned));
      row.append(pin);
    }
    if (lane.hidden > 0 || this.store.view.deep.includes(lane.key)) {
      const text = lane.hidden > 0 ? `${count(lane.hidden + lane.undrawn)} deeper` : 'fewer', all = lane.undrawn ? `Show calls up to depth ${MOST_ROWS}` : 'Show calls of any depth';
      const more = button(text, lane.hidden > 0 ? all : 'Show fewer rows', () => this.store.toggle('deep', lane.key), 'link more');
      const deep = lane.parts.find((part) => part.rows > 1);
      const place = (made: HTMLElement, lines: number): void => { if (deep) Object.assign(made.style, { top: `${deep.top + deep.rows * deep.rowHeight - lines * MORE}px`, bottom: 'auto' }); };
      place(more, 1);
      row.append(more);
      if (lane.undrawn && !lane.hidden) {
        const rest = el('span', { class: 'more undrawn', title: UNDRAWN }, `${count(lane.undrawn)} deeper not drawn`);
        place(rest, 2);
        row.append(rest);
      }
    }
    row.append(...this.column.parts(lane));
    row.dataset.key = lane.key;
    row.setAttribute('aria-expanded', String(!lane.collapsed));
    const isCurrent = lane.key === (this.focusKey || this.lanes.lanes[0]?.key);
    for (const each of [row, ...row.querySelectorAll('button')]) each.tabIndex = isCurrent ? 0 : -1;
    row.style.top = `${top}px`;
    row.style.height = `${lane.height}px`;
    return row;
  }

  // ---- names: a click chooses a lane, dragging moves it ----

  private moving: { key: string; y: number; moved: boolean } | null = null;

  private keyAt(event: PointerEvent): string | undefined {
    const y = event.clientY - this.names.getBoundingClientRect().top + this.scroller.scrollTop;
    return this.lanes.at(y)?.key;
  }

  private pressName(event: PointerEvent): void {
    const key = this.keyAt(event);
    if (event.button !== 0 || !key || (event.target as HTMLElement).closest('button')) return;
    this.moving = { key, y: event.clientY, moved: false };
    this.names.setPointerCapture(event.pointerId);
    event.preventDefault();
  }

  private moveName(event: PointerEvent): void {
    const { moving } = this, over = this.keyAt(event);
    if (!moving) return;
    moving.moved ||= Math.abs(event.clientY - moving.y) > CLICK_PIXELS;
    if (moving.moved && over && over !== moving.key) this.lanes.move(moving.key, over);
  }

  private releaseName(event: PointerEvent): void {
    const { moving } = this;
    this.moving = null;
    if (moving && !moving.moved) this.store.choose(moving.key, event.ctrlKey || event.metaKey || event.shiftKey);
    this.draw();
  }

  /** Chooses the lane of the selected call, or all lanes if some are chosen. */
  chooseLane(): void {
    const at = this.store.detail && this.lanes.of(this.store.detail.track), { only } = this.store.view;
    if (only.length) this.store.chooseAll();
    else if (at) this.store.choose(at.lane.key, false);
  }

  /** Moves the chosen lane, or else the lane of the selected call, by `step` places. */
  moveLane(step: number): void {
    const key = this.store.view.only[0] ?? (this.store.detail && this.lanes.of(this.store.detail.track)?.lane.key);
    if (key) this.lanes.move(key, step);
  }

  // ---- mouse and wheel ----

  private timeAt(x: number): bigint {
    const { from, span } = this.store.view.range;
    return from + BigInt(Math.round(x / this.width * span));
  }

  private wheel(event: WheelEvent): void {
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    if (event.ctrlKey || event.metaKey || event.currentTarget === this.axis) {
      event.preventDefault();
      this.store.zoom(Math.exp(event.deltaY * unit * 0.0022), event.offsetX / this.width);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.store.pan((event.deltaX || event.deltaY) * unit / this.width);
    }
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0 && event.button !== 1) return;
    const mode = event.shiftKey || event.button === 1 ? 'pan' : 'select';
    this.drag = { x: event.offsetX, y: event.offsetY, at: this.timeAt(event.offsetX), mode, from: this.store.view.range.from, scroll: this.scroller.scrollTop, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
    this.scroller.focus({ preventScroll: true });
    event.preventDefault();
  }

  private move(event: PointerEvent): void {
    const drag = this.drag;
    if (!drag) {
      this.showTip(event);
      return;
    }
    drag.moved ||= Math.abs(event.offsetX - drag.x) > CLICK_PIXELS || (drag.mode === 'pan' && Math.abs(event.offsetY - drag.y) > CLICK_PIXELS);
    if (!drag.moved) return;
    this.hideTip();
    if (drag.mode === 'pan') {
      this.store.setRange(drag.from - BigInt(Math.round((event.offsetX - drag.x) / this.width * this.store.view.range.span)), this.store.view.range.span);
      this.scroller.scrollTop = drag.scroll - (event.offsetY - drag.y);
      return;
    }
    const now = this.timeAt(event.offsetX), [low, high] = now < drag.at ? [now, drag.at] : [drag.at, now];
    this.store.select({ from: low, span: Math.max(Number(high - low), 1) });
  }

  private release(event: PointerEvent): void {
    const drag = this.drag;
    this.drag = null;
    if (!drag || drag.moved || drag.mode === 'pan') return;
    const hit = this.hit(event.offsetX, event.offsetY);
    if (hit?.slice) {
      this.store.selectCall(this.callOf(hit));
      this.store.openPanel('details');
    } else {
      this.store.selectCall(null);
      this.store.select(null);
    }
  }

  private callOf(hit: Hit): Call {
    const slice = hit.slice as Slice;
    return { track: hit.part.track.id, func: slice.name, depth: slice.depth, begin: hit.begin + BigInt(slice.begin), end: hit.begin + BigInt(slice.end), begins: 0, ends: 0, value: slice.value };
  }

  private zoomTo(event: MouseEvent): void {
    const hit = this.hit(event.offsetX, event.offsetY);
    if (hit?.slice) this.showCall(this.callOf(hit));
    else this.store.zoom(0.25, event.offsetX / this.width);
  }

  /** The range of a call in time on the screen. */
  rangeOf(call: Call): Range {
    const shift = this.lanes.shiftOf(this.trace.tracks[call.track]);
    return { from: call.begin - shift, span: Math.max(Number(call.end - call.begin), 1) };
  }

  showCall(call: Call): void {
    const { from } = this.rangeOf(call);
    this.store.show(from, from + call.end - call.begin);
  }

  private hit(x: number, y: number): Hit | null {
    const lane = this.lanes.at(y + this.scroller.scrollTop);
    const inside = lane ? y + this.scroller.scrollTop - lane.top : 0;
    const part = lane?.parts.find((p) => inside >= p.top && inside < p.top + p.rowHeight * p.rows + 1);
    if (!lane || !part) return null;
    const depth = Math.min(Math.floor((inside - part.top) / part.rowHeight), part.rows - 1), at = this.timeAt(x) + lane.shift;
    const level = levelOf(this.store.view.range.span, this.width), length = tileLength(level);
    const index = at < 0n ? -1 : Number(at / BigInt(length));
    const tile = index < 0 ? undefined : this.api.peek(part.track.id, level, index);
    const begin = BigInt(Math.max(index, 0)) * BigInt(length), inTile = Number(at - begin), room = this.store.view.range.span / this.width;
    const near = (s: Slice): boolean => s.depth === depth && s.begin <= inTile + room && s.end >= inTile - room;
    const exact = (s: Slice): boolean => s.depth === depth && s.begin <= inTile && s.end > inTile;
    const slice = tile?.slices.find(exact) ?? null;
    const bin = Math.min(Math.floor(inTile / 2 ** level), BINS - 1);
    const busy = tile?.rows.find((row) => row.depth === depth)?.bins[3 * bin + 1] ?? 0;
    return { lane, part, depth, begin, slice: slice ?? (busy ? null : tile?.slices.find(near) ?? null), bin: busy ? { level, tile: index, bin, busy } : null };
  }

  // ---- tooltips ----

  private hideTip(): void {
    this.tip.hidden = true;
    this.tipAsk?.abort();
  }

  private showTip(event: PointerEvent): void {
    const hit = this.hit(event.offsetX, event.offsetY);
    this.tipAsk?.abort();
    this.canvas.style.cursor = hit?.slice ? 'pointer' : 'default';
    const head = hit ? undefined : this.lanes.at(event.offsetY + this.scroller.scrollTop);
    if (head?.level === 0 && head.collapsed) {
      const texts = this.painter.summaryTexts(head, this.timeAt(event.offsetX) + head.shift, this.frame());
      this.fillTip([...texts, 'exact sums over all lanes of the group; expand it to see each lane']);
      this.tip.hidden = !texts.length;
      this.placeTip(event);
      return;
    }
    if (hit?.part.track.kind === 'instants') {
      this.markTip(hit, event);
      return;
    }
    if (hit?.part.track.kind === 'counter') {
      this.counterTip(hit, event);
      return;
    }
    if (!hit || (!hit.slice && !hit.bin)) {
      this.hideTip();
      return;
    }
    if (hit.slice) this.sliceTip(hit, hit.slice);
    else if (hit.bin) this.binTip(hit, hit.bin);
    this.placeTip(event);
  }

  /** Shows the values that a counter has at the pointer. */
  private counterTip(hit: Hit, event: PointerEvent): void {
    const level = levelOf(this.store.view.range.span, this.width), { track } = hit.part, tile = this.api.peek(track.id, level, Number(hit.begin / BigInt(tileLength(level))));
    const bin = Math.min(Math.floor(Number(this.timeAt(event.offsetX) + hit.lane.shift - hit.begin) / 2 ** level), BINS - 1);
    const [least, most] = tile?.counters?.subarray(3 * bin, 3 * bin + 2) ?? [NaN, NaN];
    this.fillTip([`${track.name}: ${quantities(least, most, track)}`, `at ${moment(hit.begin + BigInt(bin) * BigInt(2 ** level))}`]);
    this.tip.hidden = Number.isNaN(most);
    this.placeTip(event);
  }

  /** Asks the server for the marks near the pointer, and shows them. */
  private markTip(hit: Hit, event: PointerEvent): void {
    const { span } = this.store.view.range, level = levelOf(span, this.width), room = MARK_PIXELS * span / this.width, id = hit.part.track.id;
    const at = this.timeAt(event.offsetX) + hit.lane.shift, inTile = Number(at - hit.begin), tile = this.api.peek(id, level, Number(hit.begin / BigInt(tileLength(level))));
    if (!tile?.marks.some((mark) => Math.abs((mark.bin + 0.5) * 2 ** level - inTile) <= room)) {
      this.hideTip();
      return;
    }
    const { signal } = this.tipAsk = new AbortController(), reach = BigInt(Math.ceil(room + 2 ** level)), from = at > reach ? at - reach : 0n;
    ask<{ marks: { name: number; at: string }[]; more: number }>('marks', { from, until: at + reach, tracks: id, limit: MARKS_TOLD, drawn: 1 }, signal).then(async ({ marks, more }) => {
      const names = await Promise.all(marks.map((mark) => this.api.texts.wait(mark.name)));
      const show = (): void => {
        if (signal.aborted || !marks.length) return;
        const list = marks.map(({ name, at }, i) => ({ track: id, name, at: BigInt(at), nth: marks.slice(0, i).filter((mark) => mark.at === at && mark.name === name).length }));
        const lines = list.map((mark, i) => `${names[i]}  ${this.said.text(mark, show)}`.trim());
        this.fillTip([...lines, more ? `and ${count(more)} more` : '', `at ${moment(this.said.time(list[0], show))}`]);
        this.placeTip(event);
      };
      show();
    }).catch(() => undefined);
  }

  private fillTip(lines: string[]): void {
    this.tip.replaceChildren(...lines.filter((line) => line).map((line, i) => el('div', { class: i ? '' : 'first' }, line)));
    this.tip.hidden = false;
  }

  private placeTip(event: PointerEvent): void {
    const box = this.element.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, box.width - this.tip.offsetWidth - 8))}px`;
    this.tip.style.top = `${y + 18 + this.tip.offsetHeight > box.height ? y - this.tip.offsetHeight - 10 : y + 18}px`;
  }

  /** Shows the tooltip at once, and again when the name has arrived, and the time that krait cat prints where the pointer rests. */
  private sliceTip(hit: Hit, slice: Slice): void {
    const { track } = hit.part, names = track.kind === 'calls' ? this.api.funcs : this.api.texts, { signal } = this.tipAsk = new AbortController();
    let from = hit.begin + BigInt(slice.begin);
    const show = (): void => { if (!signal.aborted) this.fillTip(this.sliceLines(hit, slice, from)); };
    show();
    if (names.get(slice.name) === undefined) names.wait(slice.name).then(show).catch(() => undefined);
    window.setTimeout(() => {
      if (!signal.aborted) this.said.printed(track.id, from).then((time) => { from = time; show(); }).catch(() => undefined);
    }, REST);
  }

  private sliceLines(hit: Hit, slice: Slice, from: bigint): string[] {
    const length = duration(slice.end - slice.begin);
    if (hit.part.track.kind === 'calls') {
      const func = this.api.funcs.get(slice.name), ns = slice.end - slice.begin;
      const when = isSampled(hit.part.track) ? [`${aboutStretch(this.trace, ns)}, not a measured call`, `from ${moment(from)} to ${moment(from + BigInt(ns))}`] : [`${length} at ${moment(from)}`];
      return [func ? label(func) : '\u2026', ...when, func ? place(func) : '', isSampled(hit.part.track) ? '' : edgeWords(slice.flags)];
    }
    const name = this.api.texts.get(slice.name) ?? '\u2026';
    if (isLosses(hit.part.track)) return [name, `${length} at ${moment(from)}`, slice.value ? counted(slice.value, 'event') : ''];
    if (isBlaming(hit.part.track)) return [stateWords(name), `${length} at ${moment(from)}`, this.blame(slice.value)];
    const answer = hit.part.track.name === 'system calls' ? `returned: ${returned(slice.value)}` : '';
    return [name, `${length} at ${moment(from)}`, answer];
  }

  private blame(tid: number): string {
    if (!tid) return '';
    const thread = this.trace.threads.find((t) => t.tid === tid);
    return `by ${thread?.name ? `${thread.name} ` : ''}${tid}`;
  }

  private binTip(hit: Hit, bin: NonNullable<Hit['bin']>): void {
    this.fillTip([`about ${share(bin.busy, 255)} busy`, `${duration(2 ** bin.level)} at ${moment(hit.begin + BigInt(bin.bin) * BigInt(2 ** bin.level))}`]);
    const asked = new AbortController();
    this.tipAsk = asked;
    const query = { track: hit.part.track.id, level: bin.level, tile: bin.tile, bin: bin.bin, depth: hit.depth };
    ask<{ busy: number; count: number; longest: number; name: number | null }>('bin', query, asked.signal).then(async (exact) => {
      const isCalls = hit.part.track.kind === 'calls', name = exact.name ?? 0;
      const longest = isCalls ? await this.api.funcs.wait(name) : await this.api.texts.wait(name);
      if (asked.signal.aborted || exact.name === null) return;
      const text = longest === undefined ? '' : typeof longest === 'string' ? stateWords(longest) : label(longest);
      const isExact = !isSampled(hit.part.track);
      this.fillTip([`${isExact ? `${count(exact.count)} begin here` : 'stretches of samples'}, ${share(exact.busy, 2 ** bin.level)} busy`, `longest: ${text}, ${duration(exact.longest)}`,
        `${isExact ? 'exact sums' : 'sums of samples'}; zoom in to see each`]);
    }).catch(() => undefined);
  }

  // ---- navigation by keys ----

  // These functions return why they went nowhere, or nothing.

  async step(forward: boolean, sameFunction: boolean): Promise<string | void> {
    const call = this.store.detail, none = forward ? 'there is nothing after the selection here' : 'there is nothing before the selection here';
    if (!call) return this.selectFirst();
    if (this.trace.tracks[call.track].kind !== 'calls') {
      const next = await spanNext(this.api.fetchTile, this.trace, call, forward);
      return next ? this.go(next) : none;
    }
    const query = { track: call.track, at: call.begin, forward: forward ? 1 : 0, ...(sameFunction ? { func: call.func } : { depth: call.depth }) };
    try {
      return this.go(readCall(await ask<Call>('next', query), call.track));
    } catch {
      return sameFunction ? `there is no ${forward ? 'later' : 'earlier'} ${this.trace.samples ? 'stretch' : 'call'} of this function in the thread` : none;
    }
  }

  /** Selects the first call or state in the range, in the first chosen lane, or else the first visible lane. */
  async selectFirst(): Promise<string | void> {
    const { from, span } = this.store.view.range, begin = from < 0n ? 0n : from, top = this.scroller.scrollTop, until = from + BigInt(Math.round(span));
    const lanes = this.lanes.lanes.filter((lane) => (this.store.view.only.length ? this.store.view.only.includes(lane.key) : lane.top + lane.height > top));
    for (const part of lanes.flatMap((lane) => lane.parts)) {
      const shift = this.lanes.shiftOf(part.track), found = await this.firstOf(part.track, begin + shift);
      if (!found || found.begin >= until + shift) continue;
      this.store.selectCall(found);
      this.store.openPanel('details');
      return undefined;
    }
    return 'there is no call and no state on the screen';
  }

  /** The call or state at depth 0 of a track that is open at a time, or else begins next. */
  private async firstOf(track: Track, at: bigint): Promise<Call | null> {
    if (track.kind !== 'calls' && track.kind !== 'states' && track.kind !== 'slices') return null;
    const fetch = this.api.fetchTile, none = { track: track.id, func: 0, depth: 0, begin: at, end: at, begins: 0, ends: 0 };
    const open = await spanAt(fetch, track.id, at, 0);
    if (open || track.kind !== 'calls') return open ?? spanNext(fetch, this.trace, none, true);
    return ask<Call>('next', { track: track.id, at, depth: 0, forward: 1 }).then((call) => readCall(call, track.id)).catch(() => null);
  }

  async goTo({ machine }: Track, tid: number, at: bigint): Promise<string | void> {
    const found = await doneBy(this.api.fetchTile, this.trace, tid, at, machine);
    return found ? this.go(found) : `thread ${tid} has no lane`;
  }

  /** Goes from the thread on a CPU's lane to that thread's own lane, and from a thread to its CPU. */
  async toOther(): Promise<string | void> {
    const call = this.store.detail, track = call && this.trace.tracks[call.track];
    if (!this.trace.tracks.some(({ of, kind }) => of === 'cpu' && kind === 'states')) return 'the recording has no CPUs; record with --kernel to see them';
    if (!call || !track) return 'nothing is selected; select what a thread or a CPU did';
    if (track.of === 'cpu') return track.kind === 'states' && call.value ? this.goTo(track, call.value, call.begin) : 'no thread ran on the CPU in the selection';
    if (track.of !== 'thread') return 'the selection is neither of a thread nor of a CPU';
    const found = await cpuOf(this.api.fetchTile, this.trace, track.number, call.begin, track.machine);
    return found ? this.go(found) : 'the thread was on no CPU at the begin of the selection';
  }

  /** Goes to the task that woke the selected one, or that it waits for. */
  private async toTask(call: Call): Promise<string | void> {
    const ties = await tiesOf(this.api.fetchTile, this.trace, call, await this.api.texts.wait(call.func) ?? ''), other = ties.wokenBy ?? ties.waitsFor;
    const found = other && await this.firstOf(other, ties.at > 0n ? ties.at - 1n : 0n);
    return found ? this.go(found) : 'the recording does not tell which task ended the wait';
  }

  /** Goes to the waker of the selected wait, or to the thread that held the CPU or the GIL. */
  async toBlamed(): Promise<string | void> {
    const call = this.store.detail, track = call && this.trace.tracks[call.track];
    if (call && track?.kind === 'states' && track.of === 'task') return this.toTask(call);
    if (!call || !track || !isBlaming(track)) return 'no wait of a thread or a task is selected';
    const { list } = await askWakeups(call.track, call.end, call.end + 1n);
    const woken = list.find((w) => this.trace.tracks[w.to].number === track.number && w.at >= call.end); // not a flow on its way
    if (woken) return this.goTo(track, this.trace.tracks[woken.by].number, woken.at);
    return call.value ? this.goTo(track, call.value, call.begin) : 'the recording does not tell who ended the wait';
  }

  /** Goes to the next thread that the selected thread woke, starting at the begin of the selection. */
  async toWoken(): Promise<string | void> {
    const call = this.store.detail, track = call && this.trace.tracks[call.track];
    if (!call || track?.of !== 'thread') return 'nothing of a thread is selected';
    for (let from = call.begin, length = WINDOW; from < this.trace.duration; from += length, length *= 8n) {
      const own = (await askWakeups(call.track, from, from + length)).list.filter((w) => this.trace.tracks[w.by].number === track.number && w.at >= from);
      if (!own.length) continue;
      const first = own.reduce((a, b) => (b.at < a.at ? b : a));
      return this.goTo(track, this.trace.tracks[first.to].number, first.runs);
    }
    return 'the thread woke no other thread after that';
  }

  private go(call: Call): void {
    this.store.selectCall(call);
    this.reveal(call);
  }

  private kept: { track: number; depth: number } | null = null; // kept in view while lanes grow, until the reader scrolls

  /** Scrolls the lane of a track into view. */
  revealTrack(track: number): void {
    this.keep({ track, depth: 0 });
  }

  private keep(what: { track: number; depth: number }): void {
    this.kept = what;
    this.scrollTo(what);
  }

  private scrollTo(what: { track: number; depth: number }): void {
    const at = this.lanes.of(what.track), { scrollTop, clientHeight } = this.scroller;
    if (!at) return;
    const top = at.lane.top + at.part.top + Math.min(what.depth, at.part.rows) * at.part.rowHeight;
    this.spacer.style.height = `${Math.max(this.lanes.height - clientHeight, 0)}px`;
    if (top < scrollTop || top + at.part.rowHeight > scrollTop + clientHeight) this.scroller.scrollTop = top - clientHeight / 2;
  }

  /** Moves the range and scrolls so that a call is visible. */
  reveal(call: Call): void {
    const { from, span } = this.store.view.range, begin = this.rangeOf(call).from, length = Number(call.end - call.begin);
    if (begin < from || begin + BigInt(length) > from + BigInt(Math.round(span)) || length < span / 2000) {
      const wanted = length < span / 2000 || length > span ? Math.max(length * 8, 40) : span;
      this.store.setRange(begin - BigInt(Math.round((wanted - length) / 2)), wanted);
    }
    this.keep(call);
  }

  scrollBy(lines: number): void {
    this.kept = null;
    this.scroller.scrollTop += lines * 48;
  }

  focus(): void {
    this.scroller.focus();
  }
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

/** Sizes a canvas in CSS pixels, with one canvas pixel per device pixel, so that it is sharp on any screen. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const scale = window.devicePixelRatio || 1, w = Math.round(width * scale), h = Math.round(height * scale);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}
