// SPDX-License-Identifier: Apache-2.0
// The lanes of the timeline: their groups, order and heights in pixels.

import { Alignment } from './align';
import { Process, Trace, Track, clip, machineOf } from './model';
import { shortenMiddle } from './shorten';
import { Grouping, Store } from './store';

export const ROW = 16, STRIP = 9, HEAD = 26, GAP = 7, COUNTER = 30, CPU_ROW = 14;
const COLLAPSED_ROWS = 1;
export const MOST_ROWS = 128; // depths that tiles have (KRAIT_WIRE_DEPTHS)
const TITLE = 60; // most characters of a title in a sentence
const LONG = 0.7, LONGEST = 200; // share of the characters of the longest name that a long one has; most long names
export const USUAL_ROWS = 20; // rows of calls that a lane shows until the reader asks for all

/** A track in a lane: its distance from the lane's top, and the height of its rows. */
export interface Part { track: Track; top: number; rowHeight: number; rows: number }

export interface Lane {
  key: string; title: string; hint: string; level: number; // 0: heading of a group
  parts: Part[]; top: number; height: number; group: string; collapsed: boolean; pinned: boolean;
  hidden: number; // number of deeper rows that can be shown
  undrawn: number; // number of depths below those that can be shown
  shift: bigint; // the track's time minus the time on the screen
  tracks: Track[]; // for a heading: the tracks of all lanes of the group that pass the filter, for the summary
}

/** A lane or a heading (level 0) as its name is shown; `beside` is the name of a part in the same line. */
export type Named = Pick<Lane, 'title' | 'hint' | 'level'> & { beside?: string };

/** The last part of a path, which may be quoted: "krait-app" for "/tmp/krait-app/". */
function lastPart(folder: string): string {
  return folder.replace(/[/']+$/, '').split('/').pop()?.replace(/^'/, '') || folder;
}

/** A command without the folders of its program: "python3 app.py". */
export function shortCommand(command: string): string {
  const end = command.indexOf(' '), program = end < 0 ? command : command.slice(0, end);
  return program.slice(program.lastIndexOf('/') + 1) + (end < 0 ? '' : command.slice(end));
}

/** The commands of the recordings' first processes; equal ones once. */
export function recordedCommands(trace: Trace): string[] {
  const commands = trace.folders.map((_, recording) => trace.processes.find((process) => process.recording === recording)?.command ?? '');
  return [...new Set(commands.filter((command) => command))];
}

function processTitle(process: Process): string {
  return clip(shortCommand(process.command)) || process.name || 'process';
}

interface Group { key: string; title: string; hint: string; lanes: { key: string; title: string; hint: string; tracks: Track[] }[]; closed: boolean; machine?: number }

function threadKey(track: Track): string {
  return track.thread !== null ? `t${track.thread}` : `k${track.pid}.${track.number}`;
}

function laneTitle(trace: Trace, track: Track): [string, string] {
  if (track.of === 'cpu') return [`CPU ${track.number}`, ''];
  if (track.of === 'thread') {
    const known = track.thread !== null ? trace.threads[track.thread] : null;
    return [known?.name || track.threadName || 'thread', String(known?.tid ?? track.number)];
  }
  if (track.of === 'task') return [track.threadName || track.name, 'task'];
  if (track.of === 'lane') return [track.threadName, ''];
  return [track.name, track.of];
}

function groupOf(trace: Trace, track: Track, by: Grouping): [string, string, string, boolean] {
  if (track.of === 'cpu') return by === 'cpu' ? [`cpu${track.number}`, `CPU ${track.number}`, '', false] : ['cpus', 'CPUs', '', false];
  if ((track.of === 'thread' || track.of === 'process') && by === 'kind') return [`kind ${track.kind}`, track.name, '', false];
  if (track.of === 'thread' && by === 'thread' && (track.process !== null || !trace.processes.length)) return ['threads', 'Threads', '', false];
  if (track.of === 'task' && (by === 'kind' || track.process === null)) return ['tasks', 'Tasks', '', false];
  if ((track.of === 'task' || track.of === 'process') && by === 'thread') return ['threads', 'Threads', '', false];
  if (track.of === 'thread' || track.of === 'task' || track.of === 'process') {
    const process = track.process !== null ? trace.processes[track.process] : null;
    if (process) return [`p${track.process}`, processTitle(process), String(process.pid), false];
    return trace.processes.length ? ['rest', 'Rest of the machine', '', true] : [`m${track.pid}`, track.processName || 'process', String(track.pid), false];
  }
  return track.of === 'lane' ? ['lanes', 'Declared lanes', '', false] : ['others', 'Events', '', false];
}

const PART_ORDER: Record<string, number> = { states: 0, instants: 1, calls: 2, slices: 3, counter: 4 };

function groups(trace: Trace, by: Grouping): Group[] {
  const found = new Map<string, Group>();
  const lanes = new Map<string, Group['lanes'][0]>();
  for (const track of trace.tracks) {
    if (track.kind === 'flows') continue;
    const [ofKind, title, hint, closed] = groupOf(trace, track, by), machine = machineOf(trace, track);
    const key = machine === undefined ? ofKind : `m${machine}.${ofKind}`;
    const group = found.get(key) ?? { key, title, hint, lanes: [], closed, machine };
    found.set(key, group);
    const laneKey = `${key}/${track.of === 'thread' ? threadKey(track) : track.of === 'cpu' ? (by === 'cpu' ? `c${track.id}` : `c${track.number}`) : track.of === 'lane' ? `l${track.number}` : track.of === 'task' ? `a${track.process}.${track.number}` : `o${track.id}`}`;
    let lane = lanes.get(laneKey);
    if (!lane) {
      const [laneName, laneHint] = track.of === 'cpu' && by === 'cpu' ? [track.name, ''] : laneTitle(trace, track);
      lane = { key: laneKey, title: laneName, hint: laneHint, tracks: [] };
      lanes.set(laneKey, lane);
      group.lanes.push(lane);
    }
    lane.tracks.push(track);
  }
  const isOfCpus = (g: Group): boolean => g.lanes[0].tracks[0].of === 'cpu';
  const order = (g: Group): number => (g.key === 'lanes' ? -2 : isOfCpus(g) ? (trace.processes.length && by !== 'cpu' ? 1 : -1) : g.key === 'others' ? 2 : g.key === 'rest' ? 3 : 0);
  const machine = (g: Group): number => g.machine ?? (order(g) < 0 ? -1 : Infinity);
  return joinSingles([...found.values()], trace).sort((a, b) => (machine(a) === machine(b) ? order(a) - order(b) : machine(a) - machine(b)));
}

/** In a trace of a whole machine, puts processes with one thread, and threads without a known process, into one group. */
function joinSingles(list: Group[], trace: Trace): Group[] {
  const singles = new Map<number | undefined, Group[]>(), isUnknown = (g: Group): boolean => /^(m\d+\.)?m0$/.test(g.key);
  for (const group of trace.processes.length ? [] : list) {
    if (!isUnknown(group) && (group.lanes.length > 1 || !/^(m\d+\.)?m\d+$/.test(group.key))) continue;
    const known = singles.get(group.machine) ?? [];
    known.push(group);
    singles.set(group.machine, known);
  }
  for (const [machine, of] of singles) {
    const lanes = of.flatMap((g) => g.lanes);
    if (of.length < 2 && !isUnknown(of[0])) continue;
    const joined: Group = { key: machine === undefined ? 'threads' : `m${machine}.threads`, title: 'Threads', hint: String(lanes.length), lanes, closed: false, machine };
    const gone = new Set(of);
    list = [...list.filter((g) => !gone.has(g)), joined];
  }
  return list;
}

/** The heights at which lines to a lane end: from above and from below. */
function ends(lane: Lane): [number, number] {
  const [first] = lane.parts, marks = lane.parts.find((part) => part.track.kind === 'instants');
  const belowStates = lane.top + (!first ? 0 : first === marks ? first.top : first.top + Math.min(first.rowHeight, STRIP) - 2);
  return [belowStates, marks ? lane.top + marks.top + marks.rowHeight : belowStates];
}

/** A thread's first slices are in the line of its name, below the narrow strip of its states. */
function besideOf(tracks: Track[]): string | undefined {
  const isStrip = tracks.some((track) => track.kind === 'states' && track.of === 'thread') && !tracks.some((track) => track.kind === 'calls');
  return isStrip ? tracks.find((track) => track.kind === 'slices')?.name : undefined;
}

export class Lanes {
  lanes: Lane[] = [];
  height = 0;
  stale = false; // the layout is out of date
  active: Set<number> | null = null; // tracks that are active in the range; null: show all tracks
  private deepest = new Map<number, number>(); // by track: the greatest depth so far, from 1
  private found: Group[] = [];
  private heights: Map<number, [number, number]> | null = null; // by track, computed on demand: see heightOf
  private grouped: { tracks: Track[]; by: Grouping; groups: Group[] } | null = null; // cache for groupsBy

  constructor(private trace: Trace, private store: Store, readonly alignment: Alignment) {
    this.layout();
  }

  /** Notes how deep a track is, and marks the layout as stale if it is deeper than before. */
  learn(track: number, deepest: number): void {
    if ((this.deepest.get(track) ?? 1) >= deepest) return;
    this.deepest.set(track, deepest);
    this.stale = true;
  }

  /** Forgets the rows of tracks, because track ids have changed. */
  forget(): void {
    this.deepest.clear();
  }

  layout(): void {
    const { filter, collapsed, pinned, group: by } = this.store.view;
    const wanted = filter.toLowerCase();
    this.lanes = [];
    this.stale = false;
    let top = 0;
    const pins: Lane[] = [];
    this.found = this.arranged(this.aligned(this.groupsBy(by)));
    for (const group of this.found) {
      const hit = ({ title, hint }: { title: string; hint: string }): boolean => !wanted || `${title} ${hint}`.toLowerCase().includes(wanted);
      const groupHit = hit(group);
      const isActive = (lane: Group['lanes'][0]): boolean => !this.active || lane.tracks.some((track) => this.active?.has(track.id));
      const own = group.lanes.filter((lane) => (groupHit || hit(lane)) && isActive(lane));
      if (!own.length) continue;
      const closed = collapsed.includes(group.key) !== group.closed;
      this.lanes.push({ key: group.key, title: group.title, hint: group.hint, level: 0, parts: [], top, height: HEAD, group: group.key, collapsed: closed, pinned: false, hidden: 0, undrawn: 0, shift: this.shiftOf(own[0].tracks[0]), tracks: own.flatMap((lane) => lane.tracks) });
      top += HEAD;
      if (closed) continue;
      for (const lane of own) {
        const made = this.makeLane(lane, group.key, collapsed.includes(lane.key));
        made.pinned = pinned.includes(lane.key);
        if (made.pinned) {
          pins.push(made);
          continue;
        }
        made.top = top;
        top += made.height;
        this.lanes.push(made);
      }
    }
    this.place(pins);
    this.heights = null;
  }

  /** Copies of the groups, which the caller may change. Groups are cached: for 100,000 lanes, making them takes longer than the rest of a layout. */
  private groupsBy(by: Grouping): Group[] {
    const { tracks } = this.trace;
    if (this.grouped?.tracks !== tracks || this.grouped.by !== by) this.grouped = { tracks, by, groups: groups(this.trace, by) };
    return this.grouped.groups.map((group) => ({ ...group, lanes: [...group.lanes] }));
  }

  /** The long names of lanes and headings, shown or not: one of them is the widest. */
  longest(): Named[] {
    const { groups } = this.grouped ?? { groups: [] };
    if (this.long.of !== groups) {
      const all = groups.flatMap((group): Named[] => [{ title: group.title, hint: group.hint, level: 0 }, ...group.lanes.map(({ title, hint, tracks }) => ({ title, hint, level: 1, beside: besideOf(tracks) }))]);
      const length = ({ title, hint, beside }: Named): number => title.length + hint.length + (beside?.length ?? 0), most = all.reduce((n, each) => Math.max(n, length(each)), 0);
      this.long = { of: groups, names: all.filter((each) => length(each) >= LONG * most).slice(0, LONGEST) };
    }
    return this.long.names;
  }

  private long: { of: Group[] | null; names: Named[] } = { of: null, names: [] };

  /** The height at which lines to a track end: below the states of its lane, lines from below under its marks; or in the group's heading if the lane is not shown. */
  heightOf(track: number, isBelow = false): number | undefined {
    this.heights ??= this.findHeights();
    return this.heights.get(track)?.[isBelow ? 1 : 0];
  }

  private findHeights(): Map<number, [number, number]> {
    const heads = new Map<string, [number, number]>(), shown = new Map<string, [number, number]>(), heights = new Map<number, [number, number]>();
    for (const lane of this.lanes) {
      if (lane.level === 0) heads.set(lane.key, [lane.top + HEAD / 2, lane.top + HEAD / 2]);
      else shown.set(lane.key, ends(lane));
    }
    for (const group of this.found) {
      for (const lane of group.lanes) {
        const at = shown.get(lane.key) ?? heads.get(group.key);
        for (const track of lane.tracks) if (at !== undefined) heights.set(track.id, at);
      }
    }
    return heights;
  }

  /** For aligned recordings, keeps only lanes that belong to one recording. Adds the folder to the hint where it tells groups apart. */
  private aligned(found: Group[]): Group[] {
    const { aligned } = this.store.view;
    for (const group of found) {
      if (aligned) group.lanes = group.lanes.filter((lane) => lane.tracks.every((track) => this.alignment.recordingOf(track) !== undefined));
      const recording = group.lanes.length ? this.alignment.recordingOf(group.lanes[0].tracks[0]) : undefined;
      if (group.machine !== undefined || (aligned && group.key.startsWith('p') && recording !== undefined)) group.hint += `${group.hint ? ' ' : ''}in ${this.placeOf(group.machine, recording ?? 0)}`;
    }
    if (!aligned) return found;
    return found.filter((group) => group.lanes.length);
  }

  /** The folder of a recording, with the host if there are several hosts: "krait-app", "krait-app of web1". */
  private placeOf(machine: number | undefined, recording: number): string {
    const { machines, folders } = this.trace, { host } = machines[machine ?? 0] ?? { host: '' };
    const folder = lastPart(folders[recording]);
    return machine !== undefined && host && machines.some((other) => other.host !== host) ? `${folder} of ${clip(host)}` : folder;
  }

  /** The time to add to a time on the screen to get the track's time. */
  shiftOf(track: Track | undefined): bigint {
    return this.store.view.aligned && track ? this.alignment.beginOf(track) : 0n;
  }

  /** The aligned recording that the tables show: that of the chosen lanes, else the first. */
  private subject(only: string[]): number {
    const track = this.tracksOf(only)[0];
    return (track && this.alignment.recordingOf(track)) ?? this.alignment.recordings.findIndex((each) => each);
  }

  /** Like shiftOf, for the recording that the tables show. */
  tableShift(only = this.store.view.only): bigint {
    return this.store.view.aligned ? this.alignment.recordings[this.subject(only)]?.begin ?? 0n : 0n;
  }

  /** The keys of a recording's groups. */
  groupsOf(recording: number): string[] {
    return this.found.filter((group) => group.lanes.some((lane) => this.alignment.recordingOf(lane.tracks[0]) === recording)).map((group) => group.key);
  }

  /** Sorts groups and lanes as the reader has moved them. Those that were never moved come last. */
  private arranged(found: Group[]): Group[] {
    const places = new Map(this.store.view.order.map((key, i) => [key, i] as const));
    const sort = <T extends { key: string }>(list: T[]): void => {
      if (list.some((each) => places.has(each.key))) list.sort((a, b) => (places.get(a.key) ?? Infinity) - (places.get(b.key) ?? Infinity) || 0);
    };
    if (places.size) {
      sort(found);
      for (const group of found) sort(group.lanes);
    }
    return found;
  }

  /** Moves a lane or a group to the place of another one (a key), or by a number of places. */
  move(key: string, to: string | number): void {
    const group = this.found.find((g) => g.lanes.some((lane) => lane.key === key)), keys = (group ? group.lanes : this.found).map((each) => each.key);
    const from = keys.indexOf(key), place = typeof to === 'number' ? from + to : keys.indexOf(to);
    if (from < 0 || place < 0 || place >= keys.length || place === from) return;
    keys.splice(place, 0, ...keys.splice(from, 1));
    this.store.arrange(keys);
  }

  /** The tracks of the chosen lanes; undefined: no lane is chosen, so all tracks count. */
  chosenTracks(only = this.store.view.only): Track[] | undefined {
    if (!this.store.view.aligned) return only.length ? this.tracksOf(only) : undefined;
    const subject = this.subject(only), tracks = only.length ? this.tracksOf(only) : this.found.flatMap((group) => group.lanes).flatMap((lane) => lane.tracks);
    return tracks.filter((track) => this.alignment.recordingOf(track) === subject);
  }

  private tracksOf(only: string[]): Track[] {
    return this.found.flatMap((group) => group.lanes.filter((lane) => only.includes(lane.key) || only.includes(group.key))).flatMap((lane) => lane.tracks);
  }

  /** The titles of the chosen lanes and groups, for a sentence. */
  chosenTitles(only = this.store.view.only): string[] {
    if (this.store.view.aligned && !only.length) return [this.alignment.recordings[this.subject(only)]?.folder ?? ''];
    return this.found.flatMap((group) => [group, ...group.lanes]).filter((each) => only.includes(each.key)).map((each) => `${shortenMiddle(each.title, TITLE, (text) => text.length)} ${each.hint}`.trim());
  }

  /** Puts pinned lanes above all others. */
  private place(pins: Lane[]): void {
    let top = 0;
    for (const lane of pins) {
      lane.top = top;
      top += lane.height;
    }
    for (const lane of this.lanes) lane.top += top;
    this.lanes = [...pins, ...this.lanes];
    const last = this.lanes[this.lanes.length - 1];
    this.height = last ? last.top + last.height + 40 : 0;
  }

  private makeLane(lane: Group['lanes'][0], group: string, collapsed: boolean): Lane {
    const parts: Part[] = [];
    let top = 3, hidden = 0, undrawn = 0;
    const tracks = [...lane.tracks].sort((a, b) => PART_ORDER[a.kind] - PART_ORDER[b.kind]);
    for (const track of tracks) {
      const rowHeight = track.kind === 'states' ? (track.of === 'cpu' ? CPU_ROW : STRIP) : track.kind === 'instants' ? 12
        : track.kind === 'counter' ? COUNTER : track.of === 'cpu' ? STRIP : ROW;
      const deepest = track.kind === 'calls' || track.kind === 'slices' ? this.deepest.get(track.id) ?? 1 : 1, deep = Math.min(deepest, MOST_ROWS);
      const rows = collapsed ? Math.min(deep, COLLAPSED_ROWS) : this.store.view.deep.includes(lane.key) ? deep : Math.min(deep, USUAL_ROWS);
      hidden = Math.max(hidden, collapsed ? 0 : deep - rows);
      undrawn = Math.max(undrawn, collapsed ? 0 : deepest - deep);
      if (collapsed && track.kind !== 'states' && track.kind !== 'calls' && tracks.length > 1) continue;
      parts.push({ track, top, rowHeight, rows });
      top += rowHeight * rows + 2;
    }
    return { key: lane.key, title: lane.title, hint: lane.hint, level: 1, parts, top: 0, height: Math.max(top + GAP - 2, 24), group, collapsed, pinned: false, hidden, undrawn, shift: this.shiftOf(lane.tracks[0]), tracks: [] };
  }

  /** The lane at a height in pixels, by binary search. */
  at(y: number): Lane | undefined {
    let low = 0, high = this.lanes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.lanes[middle].top + this.lanes[middle].height <= y) low = middle + 1;
      else high = middle;
    }
    return this.lanes[low];
  }

  of(track: number): { lane: Lane; part: Part } | undefined {
    for (const lane of this.lanes) {
      const part = lane.parts.find((p) => p.track.id === track);
      if (part) return { lane, part };
    }
    return undefined;
  }
}
