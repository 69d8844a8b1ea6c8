// SPDX-License-Identifier: Apache-2.0
// Which lanes there are, in which order, and how high each is.

import { Alignment } from './align';
import { Process, Trace, Track, clip, machineOf } from './model';
import { Grouping, Store } from './store';

export const ROW = 16, STRIP = 9, HEAD = 26, GAP = 7, COUNTER = 30, CPU_ROW = 14;
const COLLAPSED_ROWS = 1, MOST_ROWS = 128;
export const USUAL_ROWS = 20; // that a lane shows of its calls until it is asked for all

/** A track in a lane: where it begins below the lane's top, and how high one of its rows is. */
export interface Part { track: Track; top: number; rowHeight: number; rows: number }

export interface Lane {
  key: string; title: string; hint: string; level: number; // 0: head of a group
  parts: Part[]; top: number; height: number; group: string; collapsed: boolean; pinned: boolean;
  hidden: number; // rows that are deeper than is shown
  shift: bigint; // what is added to a time on the screen
  tracks: Track[]; // of a head, all of its lanes that are shown or would be: for its summary
}

/** "krait-app" of "/tmp/krait-app/", quoted or not. */
function lastPart(folder: string): string {
  return folder.replace(/[/']+$/, '').split('/').pop()?.replace(/^'/, '') || folder;
}

/** "python3 app.py": the program without its folders. */
export function shortCommand(command: string): string {
  const end = command.indexOf(' '), program = end < 0 ? command : command.slice(0, end);
  return program.slice(program.lastIndexOf('/') + 1) + (end < 0 ? '' : command.slice(end));
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
  if (track.of === 'thread' && by === 'kind') return [`kind ${track.kind}`, track.name, '', false];
  if (track.of === 'thread' && by === 'thread' && (track.process !== null || !trace.processes.length)) return ['threads', 'Threads', '', false];
  if (track.of === 'task' && (by === 'kind' || track.process === null)) return ['tasks', 'Tasks', '', false];
  if (track.of === 'task' && by === 'thread') return ['threads', 'Threads', '', false];
  if (track.of === 'thread' || track.of === 'task') {
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
    const laneKey = `${key}/${track.of === 'thread' ? threadKey(track) : track.of === 'cpu' ? (by === 'cpu' ? `c${track.id}` : `c${track.number}`) : track.of === 'lane' ? `l${track.number}` : `o${track.id}`}`;
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

/** Of a whole machine: processes of one thread need no head each, and threads whose process is not known have none. */
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

export class Lanes {
  lanes: Lane[] = [];
  height = 0;
  stale = false; // the layout has to be made anew
  active: Set<number> | null = null; // tracks of threads that ran in the range, where only these are shown
  private deepest = new Map<number, number>(); // by track: rows that it has needed so far
  private found: Group[] = [];
  private heights: Map<number, number> | null = null; // by track, once somebody asks: see heightOf
  private grouped: { tracks: Track[]; by: Grouping; groups: Group[] } | null = null; // what a layout begins with

  constructor(private trace: Trace, private store: Store, readonly alignment: Alignment) {
    this.layout();
  }

  /** A track was seen to need so many rows. */
  learn(track: number, deepest: number): void {
    const rows = Math.min(Math.max(deepest, 1), MOST_ROWS);
    if ((this.deepest.get(track) ?? 1) >= rows) return;
    this.deepest.set(track, rows);
    this.stale = true;
  }

  /** Tracks have other numbers now. */
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
      this.lanes.push({ key: group.key, title: group.title, hint: group.hint, level: 0, parts: [], top, height: HEAD, group: group.key, collapsed: closed, pinned: false, hidden: 0, shift: this.shiftOf(own[0].tracks[0]), tracks: own.flatMap((lane) => lane.tracks) });
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

  /** Copies, which the caller may change: of 100,000 lanes making them takes longer than all the rest of a layout. */
  private groupsBy(by: Grouping): Group[] {
    const { tracks } = this.trace;
    if (this.grouped?.tracks !== tracks || this.grouped.by !== by) this.grouped = { tracks, by, groups: groups(this.trace, by) };
    return this.grouped.groups.map((group) => ({ ...group, lanes: [...group.lanes] }));
  }

  /** Where lines to a track end: below the strip of its lane's states; of a lane that is not shown, in its group's head. */
  heightOf(track: number): number | undefined {
    this.heights ??= this.findHeights();
    return this.heights.get(track);
  }

  private findHeights(): Map<number, number> {
    const heads = new Map<string, number>(), shown = new Map<string, number>(), heights = new Map<number, number>();
    for (const lane of this.lanes) {
      const first = lane.parts[0];
      if (lane.level === 0) heads.set(lane.key, lane.top + HEAD / 2);
      else shown.set(lane.key, lane.top + (first ? first.top + Math.min(first.rowHeight, STRIP) - 2 : 0));
    }
    for (const group of this.found) {
      for (const lane of group.lanes) {
        const at = shown.get(lane.key) ?? heads.get(group.key);
        for (const track of lane.tracks) if (at !== undefined) heights.set(track.id, at);
      }
    }
    return heights;
  }

  /** Of recordings side by side only what has a begin of its own; the folder tells them apart. */
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

  /** "krait-app"; of a machine where others are of other hosts with its name. */
  private placeOf(machine: number | undefined, recording: number): string {
    const { machines, folders } = this.trace, { host } = machines[machine ?? 0] ?? { host: '' };
    const folder = lastPart(folders[recording]);
    return machine !== undefined && host && machines.some((other) => other.host !== host) ? `${folder} of ${clip(host)}` : folder;
  }

  /** What is added to a time on the screen to have the track's own. */
  shiftOf(track: Track | undefined): bigint {
    return this.store.view.aligned && track ? this.alignment.beginOf(track) : 0n;
  }

  /** Of recordings side by side the one that tables are of: that of the chosen lanes, else the first. */
  private subject(only: string[]): number {
    const track = this.tracksOf(only)[0];
    return (track && this.alignment.recordingOf(track)) ?? this.alignment.recordings.findIndex((each) => each);
  }

  /** The same as shiftOf, of what tables are of. */
  tableShift(only = this.store.view.only): bigint {
    return this.store.view.aligned ? this.alignment.recordings[this.subject(only)]?.begin ?? 0n : 0n;
  }

  /** The groups of a recording. */
  groupsOf(recording: number): string[] {
    return this.found.filter((group) => group.lanes.some((lane) => this.alignment.recordingOf(lane.tracks[0]) === recording)).map((group) => group.key);
  }

  /** As the reader has put them: what was never moved stands behind what was. */
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

  /** Puts a lane, or a group, in the place of another of its level; `step` alone: that many places further. */
  move(key: string, to: string | number): void {
    const group = this.found.find((g) => g.lanes.some((lane) => lane.key === key)), keys = (group ? group.lanes : this.found).map((each) => each.key);
    const from = keys.indexOf(key), place = typeof to === 'number' ? from + to : keys.indexOf(to);
    if (from < 0 || place < 0 || place >= keys.length || place === from) return;
    keys.splice(place, 0, ...keys.splice(from, 1));
    this.store.arrange(keys);
  }

  /** The tracks of the chosen lanes; undefined where none is chosen: of all. */
  chosenTracks(only = this.store.view.only): Track[] | undefined {
    if (!this.store.view.aligned) return only.length ? this.tracksOf(only) : undefined;
    const subject = this.subject(only), tracks = only.length ? this.tracksOf(only) : this.found.flatMap((group) => group.lanes).flatMap((lane) => lane.tracks);
    return tracks.filter((track) => this.alignment.recordingOf(track) === subject);
  }

  private tracksOf(only: string[]): Track[] {
    return this.found.flatMap((group) => group.lanes.filter((lane) => only.includes(lane.key) || only.includes(group.key))).flatMap((lane) => lane.tracks);
  }

  /** What the chosen lanes are called. */
  chosenTitles(only = this.store.view.only): string[] {
    if (this.store.view.aligned && !only.length) return [this.alignment.recordings[this.subject(only)]?.folder ?? ''];
    return this.found.flatMap((group) => [group, ...group.lanes]).filter((each) => only.includes(each.key)).map((each) => `${each.title} ${each.hint}`.trim());
  }

  /** What is pinned stands above all. */
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
    let top = 3, hidden = 0;
    const tracks = [...lane.tracks].sort((a, b) => PART_ORDER[a.kind] - PART_ORDER[b.kind]);
    for (const track of tracks) {
      const rowHeight = track.kind === 'states' ? (track.of === 'cpu' ? CPU_ROW : STRIP) : track.kind === 'instants' ? 12
        : track.kind === 'counter' ? COUNTER : track.of === 'cpu' ? STRIP : ROW;
      const deep = track.kind === 'calls' || track.kind === 'slices' ? this.deepest.get(track.id) ?? 1 : 1;
      const rows = collapsed ? Math.min(deep, COLLAPSED_ROWS) : this.store.view.deep.includes(lane.key) ? deep : Math.min(deep, USUAL_ROWS);
      hidden = Math.max(hidden, collapsed ? 0 : deep - rows);
      if (collapsed && track.kind !== 'states' && track.kind !== 'calls' && tracks.length > 1) continue;
      parts.push({ track, top, rowHeight, rows });
      top += rowHeight * rows + 2;
    }
    return { key: lane.key, title: lane.title, hint: lane.hint, level: 1, parts, top: 0, height: Math.max(top + GAP - 2, 24), group, collapsed, pinned: false, hidden, shift: this.shiftOf(lane.tracks[0]), tracks: [] };
  }

  /** The lane at a height, by bisection. */
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
