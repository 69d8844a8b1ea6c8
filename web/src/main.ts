// SPDX-License-Identifier: Apache-2.0
// The page: requests the description of the recording, builds the parts, and keeps them up to date.

import { activeOf } from './active';
import { Alignment } from './align';
import { Api, ApiError, ask, askTrace } from './api';
import { Choice, Choices, Chooser } from './chooser';
import { button, el, splitter } from './dom';
import { distinct } from './drops';
import { Command, commandOf, commands, keyText } from './keys';
import { LaneDialog } from './lane_dialog';
import { recordedCommands, shortCommand } from './lanes';
import { Minimap } from './minimap';
import { Func, Trace, clip, label, place } from './model';
import { Notes } from './notes';
import { Context, Panel } from './panel';
import { movesOf } from './follow';
import { Jobs } from './jobs';
import { redrawFlame } from './panels/flame';
import { redrawPlay } from './panels/play';
import { panels } from './panels/index';
import { Store, decode } from './store';
import { threadCount } from './threads';
import { Timeline, isDark } from './timeline';
import { counted, duration, moment } from './time';

const WAIT = 180, POLL = 500, FOLLOW = 500, REMADE_POLL = 60, RESTS = 2; // ms: from the last change to a request; between two checks of the index, of a running recording, of new lanes; for so many times of an answer the panel of a growing recording rests
const FOUND = 60; // most threads, and most functions, that a search lists
const PICTURE = 2000, LOOK = 15, REMADE = 120000; // ms: longest wait of the first panel for the timeline; between two checks of it; longest wait for declared lanes

/** The text below the results of a search that lists only some. */
function moreText(threads: number, funcs: number): string {
  const left = [threads && counted(threads, 'more thread'), funcs && counted(funcs, 'more function')].filter((words) => words);
  return left.length ? `and ${left.join(', ')}: type more of the name` : '';
}

class Page {
  private context: Context;
  private minimap: Minimap;
  private tabs = new Map<string, HTMLElement>();
  private made = new Map<string, HTMLElement>();
  private shown = '';
  private timer = 0;
  private asking: AbortController | null = null;
  private list: Command[] = [];
  private search: Chooser;
  private palette: Chooser;
  private maker = new LaneDialog(() => this.context, (changes, warnings, name) => { void this.showMade(changes, warnings, name); });
  private body = el('div', { class: 'panel-body', role: 'tabpanel', id: 'panel' });
  private offered: Panel[] = [];
  private below!: HTMLElement;
  private scope = el('span', { class: 'scope', role: 'status' });
  private state = el('span', { class: 'index', role: 'status' });
  private why = el('span', { class: 'index why', role: 'status' });
  private length = el('span', { class: 'quiet length' });
  private missing = el('div');
  private jobs = new Jobs();
  private chosen = el('span', { class: 'chosen-lanes', role: 'status' });
  private help = el('dialog', { class: 'help' });
  private align = button('Align', 'Show the recordings side by side, as if all began at the same time (Z)', () => { this.context.store.setAligned(!this.context.store.view.aligned); });
  private filter = el('input', { type: 'search', class: 'filter', placeholder: 'Filter lanes', 'aria-label': 'Filter lanes' });

  constructor(trace: Trace) {
    const alignment = new Alignment(trace);
    const store = new Store(trace.duration, trace.funcs > 2 ? 'functions' : trace.kernel ? 'states' : 'marks', alignment);
    const api = new Api(() => this.redraw());
    const notes = new Notes(trace.origin, () => this.showNotes());
    const timeline = new Timeline(trace, store, api, notes, alignment);
    this.context = { trace, store, api, timeline, notes, wait: (work) => this.wait(work), tell: (share, words) => this.jobs.tell(share, words) };
    this.minimap = new Minimap(trace, store, api, alignment);
    this.search = new Chooser('Search functions and threads', (text) => this.findAll(text), (text) => store.look('search', text));
    this.palette = new Chooser('Commands', (text) => this.findCommand(text));
    this.build();
    this.offer();
    this.listen();
    this.follow(trace).catch(() => { this.state.textContent = 'krait view has ended, so the page cannot load more'; });
    void notes.load();
  }

  /** Shows the tabs of the panels that apply to this trace, and sets their keys. */
  private offer(): void {
    this.offered = panels.filter((panel) => panel.offered?.(this.context.trace) ?? true);
    for (const [id, tab] of this.tabs) tab.hidden = !this.offered.some((panel) => panel.id === id);
    this.list = commands(this.offered, {
      search: () => this.search.open(), palette: () => this.palette.open(),
      help: () => this.help.showModal(), theme: () => this.theme(), filter: () => this.filter.focus(),
      declare: () => { void this.maker.open(); },
    });
    this.buildHelp();
  }

  private showNotes(): void {
    this.context.timeline.draw();
    if (this.shown === 'notes') this.later(true);
  }

  private build(): void {
    const { trace, timeline } = this.context;
    const commands = recordedCommands(trace), title = commands.map((command) => clip(shortCommand(command))).join(', ') || shortCommand(trace.title) || 'recording';
    document.title = `${title} - krait`;
    const head = el('header', {}, el('strong', { class: 'logo' }, 'krait'), el('span', { class: 'command', title: commands.join('\n') || trace.title }, title),
      this.length, this.state, this.why, el('span', { class: 'space' }), this.filter,
      button('Active', 'Hide lanes that are empty on the screen: threads that did not run, idle CPUs, lanes without events (R)', () => { this.context.store.view.active = !this.context.store.view.active; this.context.store.tell('range'); }, 'active'),
      this.align, button('New lane', 'Make a lane of intervals, states or a signal (N)', () => { void this.maker.open(); }, 'declare'), button('Search', '/', () => this.search.open()), button('Keys', '?', () => this.help.showModal()), button('\u25d0', 'Light or dark (T)', () => this.theme(), 'icon'));
    const tabs = el('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Panels' });
    tabs.addEventListener('keydown', (event) => this.stepTab(event));
    for (const panel of panels) {
      const tab = el('button', { type: 'button', role: 'tab', id: `tab-${panel.id}`, title: keyText(panel.key), 'aria-controls': 'panel' }, panel.title);
      tab.addEventListener('click', (event) => {
        if (event.detail && panel.focus) tab.blur(); // a mouse: who presses the tab by a key stays there
        this.context.store.openPanel(panel.id);
      });
      this.tabs.set(panel.id, tab);
      tabs.append(tab);
    }
    tabs.append(this.scope, this.chosen);
    const below = el('section', { class: 'panels', 'aria-label': 'Panels' }, tabs, this.jobs.element, this.body);
    const divider = this.resizer(below);
    this.showLength();
    document.body.append(head, this.missing, this.minimap.element, timeline.element, divider, below, this.help);
  }

  /** Updates what changes while the recording runs. */
  private showLength(): void {
    const { trace } = this.context;
    this.length.textContent = `${duration(Number(trace.duration))}, ${counted(threadCount(trace), 'thread')}`;
    this.missing.replaceChildren(...this.warnings());
    this.align.hidden = !this.context.timeline.lanes.alignment.offered;
  }

  /** Warnings about what the recording lacks; they stand at the top of the page. */
  private warnings(): HTMLElement[] {
    const { lost, dropped, damage, samples, sets } = this.context.trace, texts: string[] = [];
    for (const loss of lost) texts.push(`lost: ${counted(loss.count, 'event')} (${loss.reason}): ${loss.advice}`);
    if (dropped.length) texts.push(`--max-overhead dropped ${counted(dropped.length, 'function')}: their callers, marked [+dropped], include their time; dashed lines show when`);
    for (const { at, what } of distinct(sets)) texts.push(`krait ctl set changed what is recorded, from ${moment(at)} on: ${what}`);
    if (samples) texts.push(`sampled, once every ${duration(samples.interval)}: a box is a stretch of samples with the same stack, not a call; calls are not counted, and times are estimates`);
    if (damage) texts.push(`damaged: ${damage}; krait shows the undamaged part`);
    return texts.length ? [el('div', { class: 'warnings', role: 'alert' }, ...texts.map((text) => el('div', {}, text)))] : [];
  }

  /** Shows which lanes the tables are limited to. */
  private showChosen(): void {
    const titles = this.context.timeline.lanes.chosenTitles(), text = titles.slice(0, 3).join(', ') + (titles.length > 3 ? ` and ${titles.length - 3} more` : '');
    const all = !this.context.store.view.only.length;
    this.chosen.replaceChildren(...(titles.length ? [`only ${text} `, all ? '' : button('\u2715', 'Show all lanes in the tables (O)', () => this.context.store.chooseAll(), 'link')] : []));
  }

  private buildHelp(): void {
    const body = el('div', { class: 'help-body' }, el('h2', {}, 'Keys and mouse'));
    for (const group of ['Move', 'Calls', 'Page']) {
      const rows = this.list.filter((c) => c.group === group).map((c) => el('tr', {}, el('td', {}, ...c.keys.map((key) => el('kbd', {}, keyText(key)))), el('td', {}, c.words)));
      body.append(el('h3', {}, group), el('table', {}, el('tbody', {}, ...rows)));
    }
    const mouse: [string, string][] = [['wheel', 'scroll'], ['Ctrl + wheel', 'zoom at the pointer'], ['Shift + wheel', 'move'], ['drag', 'select a range of time'],
      ['Shift + drag', 'move'], ['click', 'select a call'], ['double-click', 'zoom to a call']];
    const names: [string, string][] = [['\u2191 \u2193', 'go to the lane above, below'], ['\u2190 \u2192', 'collapse, expand'], ['Enter', 'show only this lane in the tables; with Ctrl, add it'], ['Space', 'pin'], ['Alt+\u2191 Alt+\u2193', 'move the lane']];
    body.append(el('h3', {}, 'Lane names (Tab goes there)'), el('table', {}, el('tbody', {}, ...names.map(([key, words]) => el('tr', {}, el('td', {}, el('kbd', {}, key)), el('td', {}, words))))));
    body.append(el('h3', {}, 'Mouse'), el('table', {}, el('tbody', {}, ...mouse.map(([key, words]) => el('tr', {}, el('td', {}, el('kbd', {}, key)), el('td', {}, words))))));
    this.help.replaceChildren(body, button('Close', 'Esc', () => this.help.close()));
  }

  private resizer(below: HTMLElement): HTMLElement {
    const set = (height: number): void => {
      this.context.store.look('height', String(Math.round(1000 * height / innerHeight)));
      this.applyLooks();
    };
    this.below = below;
    return splitter('horizontal', 'Height of the panels', (event) => set(innerHeight - event.clientY), (by) => set(below.clientHeight - 24 * by));
  }

  private theme(): void {
    this.context.store.look('theme', isDark() ? 'light' : 'dark');
    this.applyLooks();
    this.redraw();
    this.later(true);
  }

  /** Applies the theme, the width of the lane names and the height of the panels (in thousandths of the window) from the link; the default theme is the system's. */
  private applyLooks(): void {
    const { theme, height } = this.context.store.view.looks, share = Number(height) / 1000;
    if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
    this.context.timeline.column.apply();
    if (share > 0) this.below.style.height = `${Math.min(Math.max(share * innerHeight, 60), innerHeight - 160)}px`;
  }

  private redraw(): void {
    this.context.timeline.draw();
    this.minimap.draw();
    this.align.setAttribute('aria-pressed', String(this.context.store.view.aligned));
    document.querySelector('button.active')?.setAttribute('aria-pressed', String(this.context.store.view.active));
    const shown = this.made.get(this.shown);
    shown?.querySelectorAll('.table-rows').forEach((list) => list.dispatchEvent(new Event('scroll')));
    redrawFlame();
    redrawPlay();
  }

  private listen(): void {
    const { store } = this.context;
    store.listen((what) => {
      const panel = this.offered.find((p) => p.id === this.shown);
      if (what === 'range') this.findActiveLater();
      if (what === 'lanes') {
        this.showChosen();
        this.redraw();
      }
      if (what === 'panel') {
        this.applyLooks();
        this.later(true);
      }
      if (what === 'range') this.showScope();
      if (!this.growing && (what === 'selection' || (what === 'range' && panel?.ofRange && !store.view.selected))) this.later(false);
    });
    addEventListener('keydown', (event) => {
      if (document.querySelector('dialog[open]')) return;
      const command = commandOf(this.list, event);
      if (!command) return;
      event.preventDefault();
      if (event.key === 'Escape' && this.jobs.running) {
        this.cancel();
        return;
      }
      if (event.key === 'Escape') (document.activeElement as HTMLElement | null)?.blur();
      void this.run(command);
    });
    addEventListener('pointerdown', () => { this.why.textContent = ''; });
    this.filter.addEventListener('input', () => {
      store.view.filter = this.filter.value;
      store.tell('lanes');
    });
    addEventListener('popstate', () => this.openLink()); // the browser's Back button, or an edited address
    if (location.hash && decode(location.hash.slice(1), store.view)) store.open(location.hash.slice(1));
    this.filter.value = store.view.filter;
    addEventListener('resize', () => this.applyLooks());
    this.showChosen();
    this.openSearch();
    this.later(true);
  }

  private running = 0; // commands that still ask for what they need

  /** Runs a command, and shows why it did nothing if that is so. */
  private async run(command: Command): Promise<void> {
    this.why.textContent = '';
    this.running++;
    try {
      this.why.textContent = await command.run(this.context) ?? '';
    } catch (error) {
      this.why.textContent = error instanceof Error ? error.message : String(error);
    } finally {
      this.running--;
    }
  }

  private openLink(): void {
    this.context.store.open(location.hash.slice(1));
    this.filter.value = this.context.store.view.filter;
    this.openSearch();
  }

  /** Opens the search box if the link contains a search text. */
  private openSearch(): void {
    const { search } = this.context.store.view.looks;
    if (search) this.search.open(search);
  }

  private activeTimer = 0;

  private findActiveLater(): void {
    clearTimeout(this.activeTimer);
    this.activeTimer = window.setTimeout(() => { void this.findActive(); }, WAIT);
  }

  /** Asks the server which tracks are active in the visible range, and shows only these if the reader wants that. */
  private async findActive(): Promise<void> {
    const { store, timeline, trace } = this.context, { from, span } = store.view.range, before = timeline.lanes.active;
    if (store.view.active && !store.view.aligned) {
      const begin = from < 0n ? 0n : from, until = from + BigInt(Math.round(span)), answer = await ask<{ tracks: [number, number][] }>('active', { from: begin, until });
      timeline.lanes.active = activeOf(trace, answer.tracks, begin, until);
    } else timeline.lanes.active = null;
    if (before || timeline.lanes.active) timeline.relayout();
  }

  /** Updates the panel shortly after the last change, or at once. */
  private later(now: boolean): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => { void this.showPanel(); }, now ? 0 : WAIT);
  }

  private async showPanel(): Promise<void> {
    const panel = this.offered.find((p) => p.id === this.context.store.view.panel) ?? this.offered[0];
    for (const [id, tab] of this.tabs) {
      tab.setAttribute('aria-selected', String(id === panel.id));
      tab.tabIndex = id === panel.id ? 0 : -1;
    }
    this.body.setAttribute('aria-labelledby', `tab-${panel.id}`);
    this.showScope();
    const missing = panel.missing?.(this.context.trace);
    if (missing) this.made.set(panel.id, el('p', { class: 'empty' }, missing));
    if (!this.made.has(panel.id)) this.made.set(panel.id, panel.make(this.context));
    if (this.shown !== panel.id) {
      this.body.replaceChildren(this.made.get(panel.id) as HTMLElement);
      if (!missing && document.activeElement !== this.tabs.get(panel.id)) panel.focus?.();
    }
    this.shown = panel.id;
    await this.wait(async (signal) => {
      await this.picture;
      if (!missing && !signal.aborted) await panel.update(this.context, signal);
      this.context.timeline.draw();
      const arrows = this.context.timeline.overlay.update(); // the details may just have told what the selected call of a link is
      if (this.context.store.view.path) await arrows; // so that its progress is shown, whatever the panel
    });
  }

  private picture = this.drawn().then(() => this.minimap.begin());

  /** Waits for the timeline, because the first panel's request would compete with its tiles for the CPUs. */
  private async drawn(): Promise<void> {
    const end = performance.now() + PICTURE;
    do await new Promise((done) => setTimeout(done, LOOK));
    while (!this.context.timeline.settled && performance.now() < end);
  }

  private async wait(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    const done = this.jobs.begin(() => this.cancel());
    this.body.classList.add('asking');
    try {
      await work(asking.signal);
    } catch (error) {
      if (!asking.signal.aborted) this.state.textContent = error instanceof Error ? error.message : String(error);
    }
    done();
    if (this.asking === asking) this.body.classList.remove('asking');
  }

  /** Cancels the request of the panel. */
  private cancel(): void {
    const { overlay } = this.context.timeline;
    this.asking?.abort();
    overlay.cancel();
    this.body.classList.remove('asking');
    this.jobs.cancelled(() => {
      overlay.again();
      void this.showPanel();
    });
  }

  /** Changes to a longer version of the recording, and carries the page's state over. */
  private async grow(next: Trace): Promise<void> {
    const { store, trace, api, timeline } = this.context, moves = movesOf(trace, next), func = store.view.func === null ? undefined : api.funcs.get(store.view.func);
    const empty = panels.filter((panel) => panel.missing?.(trace)).map((panel) => panel.id);
    Object.assign(trace, next);
    for (const id of empty) this.made.delete(id);
    if (empty.includes(this.shown)) this.shown = '';
    this.offer();
    api.renew(moves.same);
    if (!moves.same) timeline.lanes.forget();
    const same = func ? await this.sameFunction(func) : store.view.func;
    this.growing = true;
    store.grow(next.duration, moves, same);
    this.growing = false;
    this.showLength();
    this.grown = true;
    void this.refresh();
  }

  private growing = false; // the store is being told of it
  private grown = false; // the panel does not show it yet
  private refreshing = false;

  /** Updates the panel after the recording has grown. The sums of a long range take long: an update is not cancelled by the next one, which waits, too. */
  private async refresh(): Promise<void> {
    if (this.refreshing) return;
    this.refreshing = true;
    while (this.grown) {
      const begin = performance.now();
      this.grown = false;
      await this.showPanel();
      if (this.context.trace.growing) await new Promise((done) => setTimeout(done, RESTS * (performance.now() - begin)));
    }
    this.refreshing = false;
  }

  /** Waits until the server has computed the lanes of as many changes, then shows the lane `name`. */
  private async showMade(changes: number, warnings: string[], name: string | undefined): Promise<void> {
    this.remaking++;
    this.why.textContent = warnings.map((line) => line.replace(/^definition:\d+: /, '')).join('; ');
    this.state.textContent = 'computing the lanes';
    try {
      await this.growTo(changes);
      this.state.textContent = '';
    } catch (error) {
      this.state.textContent = error instanceof Error ? error.message : String(error);
    }
    this.context.timeline.lanes.forget(); // a lane may now have another number of rows
    const track = this.context.trace.tracks.find((each) => each.of === 'lane' && (each.threadName === name || each.threadName.startsWith(`${name} `)));
    if (track) this.context.timeline.revealTrack(track.id);
    if (track && name) {
      this.context.store.pick('declared', name);
      this.context.store.openPanel('intervals');
    }
    this.remaking--;
  }

  private async growTo(changes: number): Promise<void> {
    const begin = performance.now(), end = begin + REMADE;
    for (;;) {
      const next = await askTrace();
      if (next.generation !== this.context.trace.generation) await this.grow(next);
      if (next.changes >= changes) return;
      if (performance.now() > end) throw new ApiError('the lanes were saved, but krait view cannot show them; its terminal may say why');
      await new Promise((done) => setTimeout(done, REMADE_POLL));
      const seconds = Math.floor((performance.now() - begin) / 1000);
      if (seconds) this.state.textContent = `computing the lanes: ${seconds} s`;
    }
  }

  private remaking = 0;

  private async sameFunction(func: Func): Promise<number | null> {
    const { funcs } = await ask<{ funcs: number[] }>('search', { text: func.name, limit: 1000 });
    for (const id of funcs) {
      const now = await this.context.api.funcs.wait(id);
      if (now && now.name === func.name && now.module === func.module && now.file === func.file && now.line === func.line) return id;
    }
    return null;
  }

  /** Shows which range the panels cover. */
  private showScope(): void {
    const { store } = this.context;
    this.scope.textContent = `${duration(store.asked.span)} ${store.view.selected ? 'selected' : 'on the screen'}`;
  }

  /** Moves from tab to tab with the arrow keys (ARIA tabs pattern). */
  private stepTab(event: KeyboardEvent): void {
    const ids = this.offered.map((panel) => panel.id), at = ids.indexOf(this.shown);
    const to: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1 + ids.length, Home: 0, End: ids.length - 1 };
    if (!(event.key in to)) return;
    const id = ids[to[event.key] % ids.length];
    this.context.store.openPanel(id);
    this.tabs.get(id)?.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  /** Polls the server until the index is built and the recording has ended. */
  private async follow(first: Trace): Promise<void> {
    let before = -1;
    for (let next = { ...first }; ; next = await askTrace()) {
      const { index, growing, off } = next, { trace } = this.context;
      this.state.textContent = growing ? (off ? 'recording off' : 'recording') : index.done ? (index.whole ? '' : 'the index is incomplete') : `indexing ${Math.round(index.share * 100)}%`;
      this.state.classList.toggle('recording', growing && !off);
      if (next.generation !== trace.generation) await this.grow(next);
      if (index.share !== before) {
        before = index.share;
        this.context.api.forgetUnfinished();
        this.redraw();
        if (index.done) this.later(true);
      }
      if (index.done && !growing) return;
      await new Promise((done) => setTimeout(done, growing ? FOLLOW : POLL));
    }
  }

  get settled(): boolean {
    return this.context.timeline.settled && this.context.timeline.markTexts.settled && !this.context.store.settling && !this.running && !this.remaking && !this.grown && !this.body.classList.contains('asking');
  }

  private async findAll(text: string): Promise<Choices> {
    if (!text) return { list: [] };
    const { store, api, trace } = this.context, answer = await ask<{ funcs: number[]; found: number; threads: number[] }>('search', { text, limit: FOUND });
    const threads = answer.threads.slice(0, FOUND).map((i): Choice => ({ text: trace.threads[i].name || String(trace.threads[i].tid), hint: `thread ${trace.threads[i].tid}`, run: () => {
      store.view.filter = this.filter.value = trace.threads[i].name || String(trace.threads[i].tid);
      store.tell('lanes');
    } }));
    const funcs = await Promise.all(answer.funcs.map(async (id): Promise<Choice> => {
      const func = await api.funcs.wait(id);
      return { text: func ? label(func) : '?', hint: func ? place(func) : '', run: () => { store.setFunc(id); store.openPanel('finder'); } };
    }));
    return { list: [...threads, ...funcs], more: moreText(answer.threads.length - threads.length, answer.found - funcs.length) };
  }

  private async findCommand(text: string): Promise<Choices> {
    const wanted = text.toLowerCase();
    const list = this.list.filter((c) => c.words.toLowerCase().includes(wanted)).map((c) => ({ text: c.words, hint: c.keys.map(keyText).join('  '), run: () => { void this.run(c); } }));
    return { list };
  }
}

askTrace().then((trace) => {
  const page = new Page(trace);
  Object.defineProperty(window, 'krait', { value: page }); // for tests: they wait until page.settled
}).catch((error) => {
  document.body.replaceChildren(el('p', { class: 'empty' }, `The recording cannot be shown: ${error instanceof Error ? error.message : error}`));
});
