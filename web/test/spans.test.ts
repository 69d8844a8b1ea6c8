// SPDX-License-Identifier: Apache-2.0
import { Call, Trace } from '../src/model';
import { doneBy, spanAt, spanNext } from '../src/spans';
import { BINS, Slice, Tile } from '../src/tile';
import { equal, test } from './harness';

type Span = [number, number, number]; // begin, end, name

/** As the server answers: what lasts three bins or more as slices, the rest folded. */
function fetchOf(spans: Span[]) {
  return async (_track: number, level: number, index: number): Promise<Tile> => {
    const bin = 2 ** level, from = index * BINS * bin, until = from + BINS * bin, tile = new Tile('states', level, BigInt(index), 0, 1, 0), bins = new Uint8Array(3 * BINS);
    for (const [begin, end, name] of spans) {
      if (begin >= until || end <= from) continue;
      if (end - begin >= 3 * bin) tile.slices.push({ begin: begin - from, end: end - from, name, depth: 0, hue: 0, flags: 0, value: 7 } as Slice);
      else for (let i = Math.max(Math.floor((begin - from) / bin), 0); i < BINS && from + i * bin < end; i++) bins[3 * i + 1] = 255;
    }
    tile.rows.push({ depth: 0, bins });
    return tile;
  };
}

// 0-1000 a, then b at once; c of 4 ns in the middle of nothing, d far behind it, beyond tiles of several levels.
const SPANS: Span[] = [[0, 1000, 0], [1000, 3000, 1], [500_000, 500_004, 2], [900_000_000, 900_000_100, 3]];
const fetch = fetchOf(SPANS), trace = { duration: 1_000_000_000n, tracks: [], threads: [] } as unknown as Trace;
const call = (i: number): Call => ({ track: 0, func: SPANS[i][2], depth: 0, begin: BigInt(SPANS[i][0]), end: BigInt(SPANS[i][1]), begins: 0, ends: 0 });
const names = (found: (Call | null)[]): (number | undefined)[] => found.map((each) => each?.func);

test('what is open at a moment has its whole extent', async () => {
  const found = await spanAt(fetch, 0, 1500n) as Call;
  equal([found.begin, found.end, found.func, found.value], [1000n, 3000n, 1, 7]);
  equal(names([await spanAt(fetch, 0, 999n), await spanAt(fetch, 0, 1000n), await spanAt(fetch, 0, 3000n), await spanAt(fetch, 0, 0n, 4), await spanAt(fetch, 0, -1n)]),
    [0, 1, undefined, undefined, undefined]);
});

test('next and previous cross gaps of any length, and folded parts', async () => {
  equal(names(await Promise.all([0, 1, 2, 3].map((i) => spanNext(fetch, trace, call(i), true)))), [1, 2, 3, undefined]);
  equal(names(await Promise.all([0, 1, 2, 3].map((i) => spanNext(fetch, trace, call(i), false)))), [undefined, 0, 1, 2]);
});

test('a thread that no track knows did nothing', async () => {
  equal(await doneBy(fetch, trace, 12, 5n), null);
});
