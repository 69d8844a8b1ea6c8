// SPDX-License-Identifier: Apache-2.0
// The column of lane names: as wide as the names within bounds, or as wide as the reader has dragged it.

import { el, splitter } from './dom';
import { Lane, Lanes, Named, Part } from './lanes';
import { Weight, shortenTo, textWidth } from './shorten';
import { Store } from './store';

const USUAL = 220, SHARE = 0.2, LEAST = 120, MOST = 0.6; // pixels, and shares of the page's width: bounds of a column that fits its names, and of a dragged one
const AROUND = 72, HEAD_AROUND = 30, HINT = 40, GAP = 4; // pixels beside the name of a lane, and of a heading; least width of a hint; between the two (app.css)
const SMALL = 11 / 13, HINT_MOST = 0.45; // size of the names of parts, of other texts; most of the column that a hint gets
const BELOW = 18, SIDE = 20, ROOM = 30, LINE = 14; // pixels: height of a lane's name; beside the name of a part; least room for one; its height (app.css)
const STEP = 16, THOUSAND = 1000; // pixels of an arrow key; the link has the width in thousandths of the page's

function around(level: number): number {
  return level ? AROUND : HEAD_AROUND;
}

function weightOf(level: number): Weight {
  return level ? '' : '600';
}

function hintWidth(hint: string): number {
  return hint ? GAP + Math.max(textWidth(hint), HINT) : 0;
}

/** The width that shows a name in full, and what is beside it. */
function wanted({ title, hint, level, beside }: Named): number {
  return around(level) + textWidth(title, weightOf(level)) + hintWidth(hint) + (beside ? SIDE + SMALL * textWidth(beside) : 0);
}

/** Whether a part of a lane needs a name: the reader cannot tell it from its place, and the lane is not named after it. */
function isNamed({ track }: Part, { title }: Lane): boolean {
  return track.name !== title && (track.kind === 'slices' || track.kind === 'counter' || track.of === 'lane');
}

/** The width of a column that fits the names: at least `USUAL`, at most a share of the page. */
export function fittingWidth(names: Named[], page: number, width = wanted): number {
  return Math.ceil(Math.min(Math.max(USUAL, ...names.map(width)), Math.max(USUAL, SHARE * page)));
}

export class NameColumn {
  width = USUAL;
  readonly edge = splitter('vertical', 'Width of the lane names; double-click to fit the names', (event) => this.set(event.clientX), (by) => this.set(this.width + by * STEP));

  constructor(private lanes: Lanes, private store: Store, private changed: () => void) {
    this.edge.addEventListener('dblclick', () => {
      store.look('names', '');
      this.apply();
    });
    addEventListener('resize', () => this.apply());
  }

  private set(pixels: number): void {
    this.store.look('names', String(Math.round(THOUSAND * Math.max(pixels, LEAST) / innerWidth)));
    this.apply();
  }

  /** Sets the width: that of the link, or else that of the names. */
  apply(): void {
    const share = Number(this.store.view.looks.names) / THOUSAND, before = this.width;
    this.width = share > 0 ? Math.round(Math.min(Math.max(share * innerWidth, LEAST), MOST * innerWidth)) : fittingWidth(this.lanes.longest(), innerWidth);
    document.documentElement.style.setProperty('--names', `${this.width}px`);
    if (this.width !== before) this.changed();
  }

  /** The name of a lane, or as much of it as fits beside its hint. */
  shown({ title, hint, level }: Named): string {
    return shortenTo(title, this.width - around(level) - Math.min(hintWidth(hint), HINT_MOST * this.width), weightOf(level));
  }

  /** The names of a lane's parts, each beside its part. */
  parts(lane: Lane): HTMLElement[] {
    return lane.parts.filter((part) => isNamed(part, lane)).flatMap(({ track, top, rowHeight }) => {
      const room = this.width - SIDE - (top < BELOW ? wanted(lane) : 0);
      if (room < ROOM) return [];
      const made = el('span', { class: 'part' }, shortenTo(track.name, room / SMALL));
      made.style.top = `${top + (Math.min(rowHeight, LINE) - LINE) / 2}px`;
      return [made];
    });
  }
}
