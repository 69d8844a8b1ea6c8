// SPDX-License-Identifier: Apache-2.0
// The table of commands: their keys, and their words in the help and the command palette.

import { Context, Panel } from './panel';
import { addNote } from './panels/notes';

/** Returns why nothing has happened, or nothing. */
type Run = (context: Context) => string | void | Promise<string | void>;
export interface Command { keys: string[]; words: string; group: string; run: Run }

const NONE = 'nothing is selected';

/** Movement keys are named by their place on the keyboard (KeyboardEvent.code), so that WASD works on every layout; all others by their character. */
export function commands(offered: Panel[], ui: { search: () => void; help: () => void; palette: () => void; theme: () => void; filter: () => void; declare: () => void }): Command[] {
  const go = (words: string, keys: string[], run: Run): Command => ({ keys, words, group: 'Move', run });
  const call = (words: string, keys: string[], run: Run): Command => ({ keys, words, group: 'Calls', run });
  const other = (words: string, keys: string[], run: Run): Command => ({ keys, words, group: 'Page', run });
  return [
    go('Zoom in', ['code:KeyW', '+', '='], (c) => c.store.zoom(0.7, 0.5)),
    go('Zoom out', ['code:KeyS', '-'], (c) => c.store.zoom(1 / 0.7, 0.5)),
    go('Move left', ['code:KeyA'], (c) => c.store.pan(-0.15)),
    go('Move right', ['code:KeyD'], (c) => c.store.pan(0.15)),
    go('Scroll up', ['PageUp', 'code:KeyQ'], (c) => c.timeline.scrollBy(-4)),
    go('Scroll down', ['PageDown', 'code:KeyE'], (c) => c.timeline.scrollBy(4)),
    go('Show the whole recording', ['0'], (c) => c.store.setRange(c.store.whole.from, c.store.whole.span)),
    go('Fit the selection', ['code:KeyF'], (c) => {
      const { detail, view } = c.store;
      if (view.selected) c.store.show(view.selected.from, view.selected.from + BigInt(Math.round(view.selected.span)), 0.02);
      else if (detail) c.timeline.showCall(detail);
      else return NONE;
      return undefined;
    }),
    go('Undo', ['Ctrl+z', 'Backspace'], (c) => c.store.step(true)),
    go('Redo', ['Ctrl+y', 'Ctrl+Shift+z', 'Ctrl+Shift+Z'], (c) => c.store.step(false)),
    call('Go to the next call or state', ['ArrowRight'], (c) => c.timeline.step(true, false)),
    call('Go to the previous call or state', ['ArrowLeft'], (c) => c.timeline.step(false, false)),
    call('Go to the caller', ['ArrowUp'], (c) => upOrDown(c, -1)),
    call('Go to the first callee', ['ArrowDown'], (c) => upOrDown(c, 1)),
    call('Go to the next call of the same function', ['.'], (c) => c.timeline.step(true, true)),
    call('Go to the previous call of the same function', [','], (c) => c.timeline.step(false, true)),
    call('Go to the thread or task that ended the selected wait', ['['], (c) => c.timeline.toBlamed()),
    call('Go to the thread that the selected thread woke next', [']'], (c) => c.timeline.toWoken()),
    call('Go from a CPU to the thread that ran on it, or from a thread to its CPU', ['code:KeyK'], (c) => c.timeline.toOther()),
    call('Draw the critical path of the selection', ['code:KeyP'], (c) => c.timeline.overlay.togglePath()),
    call('Add a note to the selection, or to the middle of the screen', ['code:KeyM'], (c) => addNote(c)),
    call('Select the time of the call', ['code:KeyX'], (c) => {
      const { detail } = c.store;
      if (!detail) return NONE;
      c.store.select(c.timeline.rangeOf(detail));
      return undefined;
    }),
    call('Select the time on the screen', ['code:KeyV'], (c) => c.store.select({ ...c.store.view.range })),
    other('Clear the selection', ['Escape'], (c) => { c.store.selectCall(null); c.store.select(null); c.store.setFunc(null); }),
    other('Search functions and threads', ['/'], ui.search),
    other('Make a lane of intervals, states or a signal; for a selected range, from its first and last message', ['code:KeyN'], ui.declare),
    other('Filter lanes', ['code:KeyL'], ui.filter),
    other('Commands', ['Ctrl+k'], ui.palette),
    other('Light or dark', ['code:KeyT'], ui.theme),
    other('Group lanes by process, thread, CPU or kind', ['code:KeyG'], (c) => c.store.nextGrouping()),
    other('Restrict the tables to the selected call\u2019s thread, or show all', ['code:KeyO'], (c) => c.timeline.chooseLane()),
    other('Move the chosen lane up', ['Alt+ArrowUp'], (c) => c.timeline.moveLane(-1)),
    other('Move the chosen lane down', ['Alt+ArrowDown'], (c) => c.timeline.moveLane(1)),
    other('Draw recordings side by side, each from its first event on', ['code:KeyZ'], (c) => {
      if (!c.timeline.lanes.alignment.offered) return 'there is only one recording';
      c.store.setAligned(!c.store.view.aligned);
      return undefined;
    }),
    other('Hide lanes that are empty on the screen, or show all', ['code:KeyR'], (c) => {
      c.store.view.active = !c.store.view.active;
      c.store.tell('range');
    }),
    other('Keys', ['?'], ui.help),
    ...offered.map((panel) => other(`Panel: ${panel.title}`, [panel.key], (c: Context) => c.store.openPanel(panel.id))),
  ];
}

/** Goes from the selected call to its caller, or to its first callee. */
async function upOrDown(context: Context, step: number): Promise<string | void> {
  const { ask, readCall } = await import('./api');
  const call = context.store.detail, none = step < 0 ? 'the selected call has no caller here' : 'the selected call has no callee';
  if (!call) return context.timeline.selectFirst();
  if (context.trace.tracks[call.track].kind !== 'calls') return 'only calls have callers and callees';
  if (call.depth + step < 0) return none;
  try {
    const answer = step < 0
      ? await ask<typeof call>('call', { track: call.track, at: call.begin, depth: call.depth - 1 })
      : await ask<typeof call>('next', { track: call.track, at: call.begin, depth: call.depth + 1, forward: 1 });
    const found = readCall(answer, call.track);
    if (step > 0 && found.begin >= call.end) return none;
    context.store.selectCall(found);
    context.timeline.reveal(found);
    return undefined;
  } catch {
    return none;
  }
}

function isMeant(key: string, event: KeyboardEvent): boolean {
  const ctrl = event.ctrlKey || event.metaKey;
  if (key.startsWith('code:')) return !ctrl && !event.altKey && event.code === key.slice(5);
  const parts = key.split('+');
  if (key.startsWith('Alt+')) return event.altKey && !ctrl && event.key === parts[1];
  if (parts.length > 1 && key !== '+') {
    const wantsShift = parts.includes('Shift');
    return ctrl && event.shiftKey === wantsShift && event.key.toLowerCase() === parts[parts.length - 1].toLowerCase();
  }
  return !ctrl && !event.altKey && event.key === key;
}

/** The command of a key, if any; none while the user types. */
export function commandOf(list: Command[], event: KeyboardEvent): Command | undefined {
  const target = event.target as HTMLElement | null, typing = !!target && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  if (typing && !(event.ctrlKey || event.metaKey) && event.key !== 'Escape') return undefined;
  return list.find((command) => command.keys.some((key) => isMeant(key, event)));
}

export function keyText(key: string): string {
  return key.replace('code:Key', '').replace('Arrow', '').replace('Right', '\u2192').replace('Left', '\u2190').replace(/^Up$/, '\u2191').replace(/^Down$/, '\u2193');
}
