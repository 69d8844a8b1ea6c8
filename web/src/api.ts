// SPDX-License-Identifier: Apache-2.0
// Requests to the server: JSON, and tiles with a cache. Addresses are relative, so that they contain the token.

import { Call, Func, Trace, clip } from './model';
import { Summaries } from './summary';
import { BINS, Tile, decodeTile, decodeTiles } from './tile';

const FUNCS_PER_PAGE = 1024;
const TILES_KEPT = 3000;
const TILES_AT_A_TIME = 6, TILES_TOGETHER = 64; // requests for tiles at a time; most tiles of one

export type Params = Record<string, string | number | bigint | undefined>;

function address(name: string, params: Params): string {
  const given = Object.entries(params).filter(([, value]) => value !== undefined);
  const query = given.map(([key, value]) => `${key}=${encodeURIComponent(String(value)).replace(/%2C/g, ',')}`).join('&');
  return `api/${name}${query ? '?' + query : ''}`;
}

export class ApiError extends Error {}

export async function ask<T>(name: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  const response = await fetch(address(name, params), { signal });
  const body = await response.json();
  if (!response.ok) throw new ApiError(body.error ?? response.statusText);
  return body as T;
}

/** An answer that is a file. */
export async function askFile(name: string, params: Params, signal?: AbortSignal): Promise<Blob> {
  const response = await fetch(address(name, params), { signal });
  if (!response.ok) throw new ApiError((await response.json()).error ?? response.statusText);
  return response.blob();
}

/** Times come as texts: nanoseconds from the origin. */
export async function askTrace(): Promise<Trace> {
  const trace = await ask<Trace>('trace');
  trace.origin = BigInt(trace.origin);
  trace.duration = BigInt(trace.duration);
  for (const item of [...trace.processes, ...trace.threads, ...trace.machines]) {
    item.begin = BigInt(item.begin);
    item.until = BigInt(item.until);
    if ('name' in item) item.name = clip(item.name);
  }
  for (const each of [...trace.dropped, ...trace.sets]) each.at = BigInt(each.at);
  for (const track of trace.tracks) {
    track.threadName = clip(track.threadName);
    track.processName = clip(track.processName);
  }
  return trace;
}

export function readCall(call: Call, track: number): Call {
  return { ...call, track: call.track ?? track, begin: BigInt(call.begin), end: BigInt(call.end) };
}

/** Names by id, a page at a time. A missing page is requested, and `changed` is called when it arrives. */
class Pages<T> {
  private pages: (T[] | Promise<void>)[] = [];
  private loading = 0;

  constructor(private endpoint: string, private make: (row: unknown, id: number) => T, private changed: () => void) {}

  get(id: number): T | undefined {
    const page = Math.floor(id / FUNCS_PER_PAGE);
    const rows = this.pages[page];
    if (rows instanceof Array) return rows[id % FUNCS_PER_PAGE];
    if (!rows) this.pages[page] = this.load(page);
    return undefined;
  }

  async wait(id: number): Promise<T | undefined> {
    const now = this.get(id);
    if (now) return now;
    await this.pages[Math.floor(id / FUNCS_PER_PAGE)];
    return this.get(id);
  }

  forget(): void {
    this.pages = [];
  }

  get busy(): boolean {
    return this.loading > 0;
  }

  private async load(page: number): Promise<void> {
    const pages = this.pages;
    this.loading++;
    try {
      const rows = await ask<unknown[]>(this.endpoint, { page });
      pages[page] = rows.map((row, i) => this.make(row, page * FUNCS_PER_PAGE + i));
      this.changed();
    } catch {
      delete pages[page]; // the next use of a name in it requests it again
    } finally {
      this.loading--;
    }
  }
}

type FuncRow = [string, string, string, number, number, number, number];

function makeFunc(row: unknown, id: number): Func {
  const [name, module, file, line, kind, hue, holds] = row as FuncRow;
  return { id, name, module, file, line, kind, hue, holds: !!holds };
}

export class Api {
  readonly funcs: Pages<Func>;
  readonly texts: Pages<string>;
  readonly summaries: Summaries;
  private tiles = new Map<string, Tile | 'asked'>();
  private stale = new Set<string>(); // cached tiles that may be incomplete by now
  private waiting: string[] = [];
  private running = 0;

  constructor(private changed: () => void) {
    this.funcs = new Pages('funcs', makeFunc, changed);
    this.texts = new Pages('texts', (row) => clip(row as string), changed);
    this.summaries = new Summaries(changed);
  }

  /** The tile if it is in the cache; otherwise it is requested. The newest requests come first. */
  tile(track: number, level: number, index: number): Tile | undefined {
    const key = `${track}/${level}/${index}`;
    const found = this.tiles.get(key);
    if (found instanceof Tile) {
      this.tiles.delete(key); // most recently used: last in the order
      this.tiles.set(key, found);
      if (this.stale.delete(key)) this.want(key);
      return found;
    }
    if (!found) {
      this.tiles.set(key, 'asked');
      this.want(key);
    }
    return undefined;
  }

  private pumping = false;

  private want(key: string): void {
    this.waiting.push(key);
    if (this.pumping) return;
    this.pumping = true;
    queueMicrotask(() => { // what a frame needs is requested together
      this.pumping = false;
      this.pump();
    });
  }

  /** The tile, requested at once if it is not in the cache; it is not kept. */
  readonly fetchTile = async (track: number, level: number, index: number): Promise<Tile> => {
    const here = this.peek(track, level, index);
    if (here) return here;
    const response = await fetch(address('tile', { track, level, tile: index }));
    if (!response.ok) throw new ApiError(response.statusText);
    return decodeTile(await response.arrayBuffer());
  };

  /** The same without a request. */
  peek(track: number, level: number, index: number): Tile | undefined {
    const found = this.tiles.get(`${track}/${level}/${index}`);
    return found instanceof Tile ? found : undefined;
  }

  /** Drops requests that have not started. */
  forgetWaiting(): void {
    for (const key of this.waiting) {
      if (this.tiles.get(key) instanceof Tile) this.stale.add(key);
      else this.tiles.delete(key);
    }
    this.waiting = [];
  }

  /** The recording has grown: requests everything again. If track numbers are the `same`, the old tiles are shown until then. */
  renew(same: boolean): void {
    this.forgetWaiting();
    if (same) for (const [key, tile] of this.tiles) { if (tile instanceof Tile) this.stale.add(key); }
    else this.tiles.clear();
    this.funcs.forget();
    this.texts.forget();
    this.summaries.forget();
  }

  /** The index has grown: requests again what was answered before it was complete. */
  forgetUnfinished(): void {
    for (const [key, tile] of this.tiles) {
      if (tile instanceof Tile && tile.unfinished) this.tiles.delete(key);
    }
    this.summaries.forgetUnfinished();
    this.texts.forget();
  }

  get busy(): boolean {
    return this.running + this.waiting.length > 0 || this.summaries.busy || this.funcs.busy || this.texts.busy;
  }

  private pump(): void {
    while (this.running < TILES_AT_A_TIME && this.waiting.length) {
      this.running++;
      void this.load(takeTogether(this.waiting, TILES_AT_A_TIME - this.running + 1)).finally(() => {
        this.running--;
        this.pump();
      });
    }
  }

  private async load(keys: string[]): Promise<void> {
    const [, level, tile] = keys[0].split('/'), tracks = keys.map((key) => key.split('/')[0]);
    try {
      const response = await fetch(address('tiles', { tracks: tracks.join(','), level, tile }));
      if (!response.ok) throw new ApiError(response.statusText);
      const tiles = decodeTiles(await response.arrayBuffer());
      keys.forEach((key, i) => {
        const found = tiles.get(Number(tracks[i]));
        if (found) this.tiles.set(key, found);
        else this.tiles.delete(key);
      });
      if (!tiles.size) return; // what is drawn again would be requested again
      for (const old of this.tiles.keys()) {
        if (this.tiles.size <= TILES_KEPT) break;
        this.tiles.delete(old);
      }
    } catch {
      for (const key of keys) this.tiles.delete(key);
      return;
    }
    this.changed();
  }
}

/** Takes from the end of a list the keys of one request: those of one place in time, at most the share that leaves each of `requests` as many. */
export function takeTogether(waiting: string[], requests: number): string[] {
  const most = Math.min(Math.ceil(waiting.length / requests), TILES_TOGETHER), placeOf = (key: string): string => key.slice(key.indexOf('/'));
  const place = placeOf(waiting[waiting.length - 1]), taken: string[] = [];
  for (let i = waiting.length - 1; i >= 0 && taken.length < most; i--) {
    if (placeOf(waiting[i]) === place) taken.push(...waiting.splice(i, 1));
  }
  return taken;
}

/** The length of a tile of a level, in nanoseconds. */
export function tileLength(level: number): number {
  return BINS * 2 ** level;
}
