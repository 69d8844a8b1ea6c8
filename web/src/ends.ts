// SPDX-License-Identifier: Apache-2.0
// Places of other threads in tables, such as the other end of a flow: a button that goes there, or says why that cannot be.

import { button, el } from './dom';
import { Track } from './model';
import { Context } from './panel';
import { trackName } from './threads';
import { moment, momentText } from './time';

function isSame(a: Track, b: Track): boolean {
  return a.of === b.of && a.number === b.number && a.machine === b.machine && a.process === b.process;
}

/** Why nothing of a track can be selected. */
function reason({ timeline, store }: Context, tracks: Track[]): string {
  if (tracks.some(({ id }) => timeline.lanes.of(id))) return 'what it did then was not recorded';
  if (tracks.some(({ id }) => timeline.lanes.heightOf(id) !== undefined)) return 'its lane is in a folded group';
  return store.view.filter || store.view.active ? 'its lane is not among those that are shown' : 'it has no lane, as none of its calls and states are in the recording';
}

/** Goes to what a thread did at a time. If there is no such lane, shows the time; returns what is there and why it cannot be selected. */
async function go(context: Context, track: Track, at: bigint): Promise<string> {
  const { trace, timeline, store } = context, tracks = trace.tracks.filter((each) => isSame(each, track));
  if (!await timeline.goTo(track, track.number, at)) return '';
  const lane = tracks.find(({ id }) => timeline.lanes.of(id)), { from, span } = store.view.range, shown = at - timeline.lanes.shiftOf(track);
  store.setCursor(at);
  if (shown < from || shown > from + BigInt(Math.round(span))) store.setRange(shown - BigInt(Math.round(span / 2)), span);
  if (lane) timeline.revealTrack(lane.id);
  const process = track.of === 'process' || !track.pid ? '' : `, process ${`${track.processName} ${track.pid}`.trim()}`;
  return `${trackName(trace, track.id)}${process}, at ${moment(at)}: ${reason(context, tracks)}`;
}

/** A cell of a table: whose place it is, and when. */
export function endCell(context: Context, track: number, at: bigint): HTMLElement {
  const why = el('div', { class: 'quiet small', role: 'status' });
  const there = button(trackName(context.trace, track), 'Go to what it did then', () => {
    go(context, context.trace.tracks[track], at).then((text) => {
      why.textContent = text;
      there.classList.toggle('quiet', text !== '');
    }).catch(() => undefined);
  }, 'link');
  return el('td', { class: 'left' }, there, ` at ${momentText(at)}`, why);
}
