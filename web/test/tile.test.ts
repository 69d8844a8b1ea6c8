// SPDX-License-Identifier: Apache-2.0
import { takeTogether } from '../src/api';
import { BINS, decodeTile, decodeTiles, stretches } from '../src/tile';
import { equal, test, throws } from './harness';

interface Parts { kind?: number; rows?: [number, number[]][]; slices?: [bigint, bigint, number, number][]; marks?: [number, number, number][]; flags?: number }

/** As src/view/wire.h draws it. */
function bytesOf(parts: Parts): ArrayBuffer {
  const { kind = 0, rows = [], slices = [], marks = [], flags = 0 } = parts;
  const view = new DataView(new ArrayBuffer(40 + rows.length * 1540 + slices.length * 32 + marks.length * 16 + (kind === 4 ? 512 * 24 : 0)));
  view.setUint32(0, 0x4c49544b, true);
  view.setUint8(4, 1);
  view.setUint8(5, kind);
  view.setUint8(6, 8);
  view.setUint8(7, flags);
  view.setBigUint64(8, 3n, true);
  [rows.length, slices.length, marks.length, 7].forEach((n, i) => view.setUint32(16 + 4 * i, n, true));
  view.setBigUint64(32, 2n, true);
  let at = 40;
  for (const [depth, bins] of rows) {
    view.setUint32(at, depth, true);
    bins.forEach((byte, i) => view.setUint8(at + 4 + i, byte));
    at += 1540;
  }
  for (const [begin, end, name, depth] of slices) {
    view.setBigInt64(at, begin, true);
    view.setBigInt64(at + 8, end, true);
    view.setUint32(at + 16, name, true);
    view.setUint16(at + 20, depth, true);
    view.setBigInt64(at + 24, -5n, true);
    at += 32;
  }
  for (const mark of marks) {
    mark.forEach((n, i) => view.setUint32(at + 4 * i, n, true));
    at += 16;
  }
  return view.buffer as ArrayBuffer;
}

test('a tile has what the server put into it', () => {
  const tile = decodeTile(bytesOf({ rows: [[2, [5, 255, 1, 5, 128, 1]]], slices: [[-100n, 900n, 42, 1]], flags: 5 }));
  equal([tile.kind, tile.level, tile.index, tile.deepest, tile.calls], ['calls', 8, 3n, 7, 2]);
  equal([tile.unfinished, tile.lost, tile.deeper], [true, false, true]);
  equal([tile.rows[0].depth, tile.rows[0].bins.length, [...tile.rows[0].bins.slice(0, 6)]], [2, 3 * BINS, [5, 255, 1, 5, 128, 1]]);
  equal(tile.slices, [{ begin: -100, end: 900, name: 42, depth: 1, hue: 0, flags: 0, value: -5 }]);
});

test('marks and counters come too', () => {
  equal(decodeTile(bytesOf({ kind: 3, marks: [[7, 3, 11]] })).marks, [{ bin: 7, count: 3, name: 11, level: 0 }]);
  equal(decodeTile(bytesOf({ kind: 4 })).counters?.length, 3 * BINS);
});

test('what is no tile, of another version, or cut short is refused', () => {
  throws(() => decodeTile(new ArrayBuffer(8)));
  const other = bytesOf({});
  new DataView(other).setUint8(4, 2);
  throws(() => decodeTile(other));
  throws(() => decodeTile(bytesOf({ slices: [[0n, 1n, 0, 0]] }).slice(0, 60)));
});

test('tiles of several tracks come in one answer', () => {
  const tiles = [[7, bytesOf({ kind: 3, marks: [[7, 3, 11]] })], [9, bytesOf({ rows: [[2, [5, 255, 1]]] })]] as [number, ArrayBuffer][];
  const all = tiles.flatMap(([track, bytes]) => [...new Uint8Array(new Uint32Array([track, bytes.byteLength]).buffer), ...new Uint8Array(bytes)]);
  const found = decodeTiles(new Uint8Array(all).buffer);
  equal([...found].map(([track, tile]) => [track, tile.kind]), [[7, 'instants'], [9, 'calls']]);
  equal(found.get(9)?.rows[0].depth, 2);
  equal(decodeTiles(new ArrayBuffer(0)).size, 0);
  throws(() => decodeTiles(new Uint8Array(all.slice(0, -1)).buffer));
});

test('the newest tiles are requested first, those of one place together', () => {
  const waiting = ['1/8/0', '2/8/0', '3/8/1', '4/8/0', '5/8/1', '6/8/0', '7/8/0'];
  equal(takeTogether(waiting, 6), ['7/8/0', '6/8/0']);
  equal(takeTogether(waiting, 1), ['5/8/1', '3/8/1']);
  equal(takeTogether(waiting, 1), ['4/8/0', '2/8/0', '1/8/0']);
  equal(waiting, []);
  const many = Array.from({ length: 1000 }, (_, i) => `${i}/8/0`);
  equal(takeTogether(many, 1).length, 64);
});

test('stretches are slices and folded bins in the order of time, and neighbours of one hue are one', () => {
  const tile = decodeTile(bytesOf({ kind: 2, rows: [[0, [0, 0, 0, 5, 1, 1, 5, 255, 0, 6, 9, 1]], [1, [7, 1, 1]]], slices: [[-100n, 90n, 42, 0], [5000n, 9000n, 42, 1]] }));
  equal(stretches(tile), [{ begin: -100, end: 90, hue: 0 }, { begin: 256, end: 768, hue: 5 }, { begin: 768, end: 1024, hue: 6 }]);
});
