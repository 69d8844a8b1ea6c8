// SPDX-License-Identifier: Apache-2.0
// A tile as it arrives from the server: src/view/wire.h draws it.

import { TrackKind } from './model';

export const BINS = 512;
const MAGIC = 0x4c49544b;
const VERSION = 1;
const HEAD = 40, ROW = 4 + 3 * BINS, SLICE = 32, MARK = 16, COUNTER = 24;
const KINDS: TrackKind[] = ['calls', 'slices', 'states', 'instants', 'counter', 'flows'];

/** An entry of three bins or more. Times are nanoseconds from the tile's begin. */
export interface Slice { begin: number; end: number; name: number; depth: number; hue: number; flags: number; value: number }
export const LIVE = 1, CUT = 2, RESUMED = 4, UNWOUND = 8, YIELDS = 16;

/** How a call began and ended, unless it did so as most calls do. */
export function edgeWords(flags: number): string {
  const words: [number, string][] = [[LIVE, 'began before it was recorded'], [RESUMED, 'resumed after a yield'], [YIELDS, 'yields'], [UNWOUND, 'ended by an exception'], [CUT, 'end not recorded']];
  return words.filter(([flag]) => flags & flag).map(([, text]) => text).join(', ');
}

/** Three bytes for each bin: hue of the longest entry, busy share, logarithm of the number of begins. */
export interface Row { depth: number; bins: Uint8Array }
export interface Mark { bin: number; count: number; name: number; level: number } // name: of the first; level: the most serious one (marks.ts)

export class Tile {
  rows: Row[] = [];
  slices: Slice[] = [];
  marks: Mark[] = [];
  counters: Float64Array | null = null; // of each bin: min, max, last
  picture: unknown = null; // that the timeline has drawn of its rows
  constructor(readonly kind: TrackKind, readonly level: number, readonly index: bigint, readonly flags: number,
    readonly deepest: number, readonly calls: number) {}

  get unfinished(): boolean { return (this.flags & 1) !== 0; }
  get lost(): boolean { return (this.flags & 2) !== 0; }
  get deeper(): boolean { return (this.flags & 4) !== 0; }
}

/** The stretches of one depth in which something was open, slices and folded bins, by begin; bins of one hue that follow each other are one. */
export function stretches(tile: Tile, depth = 0): { begin: number; end: number; hue: number }[] {
  const found: { begin: number; end: number; hue: number }[] = [], length = 2 ** tile.level, row = tile.rows.find((each) => each.depth === depth);
  for (let bin = 0; row && bin < BINS; bin++) {
    const hue = row.bins[3 * bin], last = found[found.length - 1];
    if (!row.bins[3 * bin + 1]) continue;
    if (last && last.hue === hue && last.end === bin * length) last.end += length;
    else found.push({ begin: bin * length, end: (bin + 1) * length, hue });
  }
  for (const { begin, end, hue } of tile.slices.filter((slice) => slice.depth === depth)) found.push({ begin, end, hue });
  return found.sort((a, b) => a.begin - b.begin);
}

function readSlice(view: DataView, at: number): Slice {
  return {
    begin: Number(view.getBigInt64(at, true)), end: Number(view.getBigInt64(at + 8, true)),
    name: view.getUint32(at + 16, true), depth: view.getUint16(at + 20, true),
    hue: view.getUint8(at + 22), flags: view.getUint8(at + 23), value: Number(view.getBigInt64(at + 24, true)),
  };
}

/** Throws if the bytes are not a tile. */
export function decodeTile(bytes: ArrayBuffer): Tile {
  const view = new DataView(bytes);
  if (bytes.byteLength < HEAD || view.getUint32(0, true) !== MAGIC || view.getUint8(4) !== VERSION) throw new Error('this is no tile');
  const kind = KINDS[view.getUint8(5)];
  const rows = view.getUint32(16, true), slices = view.getUint32(20, true), marks = view.getUint32(24, true);
  const size = HEAD + rows * ROW + slices * SLICE + marks * MARK + (kind === 'counter' ? BINS * COUNTER : 0);
  if (!kind || bytes.byteLength !== size) throw new Error('the tile is damaged');
  const tile = new Tile(kind, view.getUint8(6), view.getBigUint64(8, true), view.getUint8(7), view.getUint32(28, true),
    Number(view.getBigUint64(32, true)));
  let at = HEAD;
  for (let i = 0; i < rows; i++, at += ROW) {
    tile.rows.push({ depth: view.getUint32(at, true), bins: new Uint8Array(bytes, at + 4, 3 * BINS) });
  }
  for (let i = 0; i < slices; i++, at += SLICE) tile.slices.push(readSlice(view, at));
  for (let i = 0; i < marks; i++, at += MARK) {
    tile.marks.push({ bin: view.getUint32(at, true), count: view.getUint32(at + 4, true), name: view.getUint32(at + 8, true), level: view.getUint32(at + 12, true) });
  }
  if (kind === 'counter') {
    tile.counters = new Float64Array(3 * BINS);
    for (let i = 0; i < 3 * BINS; i++, at += 8) tile.counters[i] = view.getFloat64(at, true);
  }
  return tile;
}

/** The tiles of an answer to api/tiles, by track. */
export function decodeTiles(bytes: ArrayBuffer): Map<number, Tile> {
  const view = new DataView(bytes), tiles = new Map<number, Tile>();
  for (let at = 0; at < bytes.byteLength;) {
    const track = view.getUint32(at, true), begin = at + 8, end = begin + view.getUint32(at + 4, true);
    if (end > bytes.byteLength) throw new Error('the tiles are damaged');
    tiles.set(track, decodeTile(bytes.slice(begin, end)));
    at = end;
  }
  return tiles;
}
