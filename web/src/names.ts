// SPDX-License-Identifier: Apache-2.0
// The column of lane names: as wide as the names within bounds, or as wide as the reader has dragged it.

import { splitter } from './dom';
import { Lanes, Named } from './lanes';
import { shortenTo, textWidth } from './shorten';
import { Store } from './store';

const USUAL = 220, SHARE = 0.2, LEAST = 120, MOST = 0.6; // pixels, and shares of the page's width: bounds of a column that fits its names, and of a dragged one
const AROUND = 72, HINT = 40, GAP = 4, BOLD = 1.07; // pixels beside the name of a lane; least width of a hint; between the two (app.css); how much wider a heading is
const STEP = 16, THOUSAND = 1000; // pixels of an arrow key; the link has the width in thousandths of the page's

/** The width that shows a name in full. */
function wanted({ title, hint, level }: Named): number {
  return AROUND + textWidth(title) * (level ? 1 : BOLD) + (hint ? GAP + Math.max(textWidth(hint), HINT) : 0);
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

  /** The name of a lane, or as much of it as fits. */
  shown({ title, hint, level }: Named): string {
    return level ? shortenTo(title, this.width - AROUND - (hint ? HINT + GAP : 0)) : title;
  }
}
