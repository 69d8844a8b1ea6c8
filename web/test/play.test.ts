// SPDX-License-Identifier: Apache-2.0
import { Played, raysAt, rowsAt, stepFrom } from '../src/play';
import { CUT, RESUMED, UNWOUND, YIELDS } from '../src/tile';
import { equal, test } from './harness';

const call = (func: number, depth: number, begin: number, end: number, flags = 0): Played => ({ func, depth, begin, end, hue: 0, flags });

// main 0 to 1000; a generator (2) runs, waits, goes on; 3 raises; 4 calls 5.
const CALLS = [
  call(1, 0, 0, 1000), call(2, 1, 100, 150, YIELDS), call(3, 1, 200, 250, UNWOUND), call(2, 1, 300, 350, RESUMED | YIELDS), call(4, 1, 500, 900), call(5, 2, 600, 700),
];
const told = (at: number): string[][] => rowsAt(CALLS, at).map((row) => row.cells.map((cell) => `${cell.call.func} ${cell.life}${cell.resumed ? ' again' : ''}`));

test('rows are what is open, with the calls that came before', () => {
  equal(told(50), [['1 runs']]);
  equal(told(120), [['1 runs'], ['2 runs']]);
  equal(told(160), [['1 runs'], ['2 suspended']]);
  equal(told(650), [['1 runs'], ['2 returned', '3 raised', '2 suspended again', '4 runs'], ['5 runs']]);
  equal(told(800)[2], ['5 returned']);
  equal(told(950), [['1 runs'], ['2 returned', '3 raised', '2 suspended again', '4 returned']]);
  equal(told(-1), []);
});

test('a call whose end was not recorded is not said to have returned', () => {
  equal(rowsAt([call(1, 0, 0, 10, CUT)], 20)[0].cells[0].life, 'unknown');
});

test('cells fill a row; the open one has a good part of it', () => {
  const [, row] = rowsAt(CALLS, 501), sum = row.cells.reduce((all, cell) => all + cell.width, 0);
  equal(Math.abs(sum - 1) < 1e-9, true);
  equal(row.open === row.cells[3] && row.cells[3].width >= 0.299, true);
  equal(row.cells.map((cell, i) => i === 0 || Math.abs(cell.x - row.cells[i - 1].x - row.cells[i - 1].width) < 1e-9), [true, true, true, true]);
});

test('of many siblings the last ones have cells', () => {
  const many = [call(1, 0, 0, 1e6), ...Array.from({ length: 100 }, (_, i) => call(2, 1, 10 * i, 10 * i + 5))], [, row] = rowsAt(many, 2000);
  equal([row.cells.length, row.before, row.cells[23].call.begin], [24, 76, 990]);
});

test('steps go from event to event', () => {
  equal([stepFrom([CALLS], 100, true), stepFrom([CALLS], 100, false), stepFrom([CALLS], 1000, true), stepFrom([], 5, true)], [150, 0, null, null]);
});

test('a ray stands where a call ended, and fades within a turn', () => {
  const rays = raysAt([CALLS], 400, 400);
  equal(rays.map((ray) => [ray.call.func, ray.angle, ray.age]), [[2, 0.375, 0.625], [3, 0.625, 0.375], [2, 0.875, 0.125]]);
  equal(raysAt([CALLS], 400, 60).length, 1);
});
