// SPDX-License-Identifier: Apache-2.0
// Names that are too long for their place lose their middle: names of lanes differ most often at their ends.

import { brief } from './brief';

/** Of texts on canvases, and the width of one of its characters in pixels. */
export const FONT = '11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace', CHARACTER = 6.62;

/** The text, or as much of its begin and of its end as fits into `width`. */
export function shortenMiddle(text: string, width: number, measure: (text: string) => number): string {
  if (measure(text) <= width) return text;
  const letters = [...text];
  const kept = (n: number): string => `${letters.slice(0, n >> 1).join('').trimEnd()}\u2026${letters.slice(letters.length - (n - (n >> 1))).join('').trimStart()}`;
  let low = 2, high = letters.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(kept(middle)) <= width) low = middle;
    else high = middle - 1;
  }
  return kept(low);
}

/** As much of the begin as has room. */
export function cut(text: string, room: number): string {
  return text.length <= room ? text : `${text.slice(0, Math.max(room - 1, 1))}\u2026`;
}

/** Of a name the part that says most, as much of it as has room. */
export function shorten(name: string, room: number): string {
  return name.length <= room ? name : cut(brief(name), room);
}

const MOST = 5000, known = new Map<string, string>(), painters = new Map<string, CanvasRenderingContext2D>();
export type Weight = '' | '600'; // of a font; '': normal

/** The width of a text in the page's own font, in pixels. */
export function textWidth(text: string, weight: Weight = ''): number {
  let painter = painters.get(weight);
  if (!painter) {
    painter = document.createElement('canvas').getContext('2d') as CanvasRenderingContext2D;
    painter.font = `${weight} ${getComputedStyle(document.body).font}`;
    painters.set(weight, painter);
  }
  return painter.measureText(text).width;
}

/** Like shortenMiddle, with a width in pixels of the page's own font. */
export function shortenTo(text: string, width: number, weight: Weight = ''): string {
  const key = `${weight} ${width} ${text}`, before = known.get(key);
  if (before !== undefined) return before;
  const made = shortenMiddle(text, width, (part) => textWidth(part, weight));
  if (known.size >= MOST) known.clear();
  known.set(key, made);
  return made;
}
