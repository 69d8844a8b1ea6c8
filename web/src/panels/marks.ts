// SPDX-License-Identifier: Apache-2.0
// Marks and other single events of the range, in the order of time.

import { ask } from '../api';
import { el } from '../dom';
import { Panel, trackParams } from '../panel';
import { lookFor } from './events';
import { levelLegend } from '../marks';
import { Mark } from '../said';
import { Table } from '../table';
import { trackName } from '../threads';
import { isDark } from '../timeline';
import { count, counted, moment } from '../time';

const MOST = 2000;
let table: Table<Mark>, note: HTMLElement, levels: HTMLElement;

export const marks: Panel = {
  id: 'marks', title: 'Marks', key: '7', ofRange: true,
  offered: (trace) => trace.tracks.some((track) => track.kind === 'instants'),
  make(context) {
    const text = (mark: Mark): string => context.api.texts.get(mark.name) ?? '\u2026';
    const where = (mark: Mark): string => trackName(context.trace, mark.track);
    table = new Table<Mark>(context.store, 'marks', [
      { title: 'time', width: '160px', text: (mark) => moment(context.timeline.said.time(mark, table.redrawSoon)), sort: (mark) => -Number(mark.at) },
      { title: 'event', width: 'minmax(200px, 2fr)', left: true, text, sort: text },
      { title: 'what it says', width: 'minmax(200px, 3fr)', left: true, text: (mark) => context.timeline.said.text(mark, table.redrawSoon) },
      { title: 'where', width: 'minmax(140px, 1fr)', left: true, text: where, sort: where },
    ], 0, (mark) => {
      const { span } = context.store.view.range;
      context.store.setCursor(mark.at);
      context.timeline.said.find(mark).then((told) => told && lookFor(context, told.event, told.at)).catch(() => undefined);
      context.store.setRange(mark.at - context.timeline.lanes.tableShift() - BigInt(Math.round(span / 2)), span);
    }, 'Events of the range');
    note = el('span');
    levels = levelLegend(isDark());
    return el('div', { class: 'fill' }, el('div', { class: 'note' }, note, levels), table.element);
  },
  async update(context, signal) {
    const answer = await ask<{ marks: Mark[]; more: number; others: number }>('marks', { ...trackParams(context), limit: MOST }, signal);
    const shown = answer.more ? `the first ${count(answer.marks.length)}; ${count(answer.more)} more in the range` : `${counted(answer.marks.length, 'event')} in the range`;
    note.textContent = answer.others ? `${shown}; ${count(answer.others)} of programs that were not recorded: choose their lanes to see them` : shown;
    const look = levelLegend(isDark());
    levels.replaceWith(look);
    levels = look;
    const same = new Map<string, number>();
    table.set(answer.marks.map((mark) => {
      const key = `${mark.track}/${mark.name}/${mark.at}`, nth = same.get(key) ?? 0;
      same.set(key, nth + 1);
      return { ...mark, at: BigInt(mark.at), nth };
    }));
  },
};
