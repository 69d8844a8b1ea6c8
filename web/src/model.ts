// SPDX-License-Identifier: Apache-2.0
// What the server says was recorded (src/serve/answer_trace.c).

export interface Process { pid: number; ppid: number; name: string; command: string; runtime: string; host: string; recording: number; end: string; begin: bigint; until: bigint }
export interface Thread { process: number; tid: number; name: string; begin: bigint; until: bigint }
export type TrackKind = 'calls' | 'slices' | 'states' | 'instants' | 'counter' | 'flows';
export interface Track {
  id: number; kind: TrackKind; of: 'thread' | 'cpu' | 'task' | 'group' | 'lane';
  process: number | null; thread: number | null; number: number; pid: number; machine: number;
  processName: string; threadName: string; name: string; unit: string; flags: number;
}
/** Of kernel traces alone: what threads and CPUs are numbered in. */
export interface Machine { recording: number; host: string; begin: bigint; until: bigint }
export interface StateClass { name: string; role: string }
export interface Trace {
  version: string; title: string; folders: string[]; origin: bigint; // folders: as words for a shell
  duration: bigint;
  index: { share: number; done: boolean; cached: boolean; whole: boolean; bytes: number; took: number };
  growing: boolean; generation: number; // whether the recording goes on; how often the server has shown more of it
  traceBytes: number; funcs: number; texts: number; kernel: boolean;
  processes: Process[]; threads: Thread[]; tracks: Track[]; machines: Machine[]; classes: StateClass[];
  lost: { count: number; reason: string; advice: string }[];
  dropped: { func: number; reason: string; calls: number; at: bigint }[];
  damage: string | null;
}
export interface Func { id: number; name: string; module: string; file: string; line: number; kind: number; hue: number; holds: boolean }
export interface Call { track: number; func: number; depth: number; begin: bigint; end: bigint; begins: number; ends: number; value?: number }

const BEGINS: Record<number, string> = { 0: 'call', 1: 'resume', 2: 'throw', 3: 'begun before' }, ENDS: Record<number, string> = { 4: 'return', 5: 'yield', 6: 'exception', 7: 'end not recorded' }; // enum krait_op_kind

/** "resume to yield": of a generator or coroutine, what a step goes from and to; '': it is no step. */
export function stepWords(call: Pick<Call, 'begins' | 'ends'>): string {
  const isStep = call.begins === 1 || call.begins === 2 || call.ends === 5;
  return isStep ? `${BEGINS[call.begins]} to ${ENDS[call.ends]}` : '';
}

/** Of which of several machines a track is. */
export function machineOf(trace: Pick<Trace, 'machines'>, track: Track): number | undefined {
  return trace.machines.length && (track.of === 'thread' || track.of === 'cpu') ? track.machine : undefined;
}

const TEXT_MOST = 400;

/** Of a name of kilobytes the begin and the end: laying out all of it takes longer than a frame. */
export function clip(text: string, most = TEXT_MOST): string {
  return text.length > most ? `${text.slice(0, most - 100)}\u2026${text.slice(-80)}` : text;
}

/** "json.decoder.JSONDecoder.decode", as krait's tables write it. */
export function label(func: Func): string {
  const name = clip(func.module && func.kind !== 2 ? `${func.module}.${func.name}` : func.name);
  return (func.kind === 1 ? `${name} (C)` : name) + (func.holds ? ' [+dropped]' : '');
}

export function place(func: Func): string {
  const file = clip(func.file);
  return func.line && file ? `${file}:${func.line}` : file;
}

const STATE_WORDS: Record<string, string> = {
  user: 'on CPU', system: 'on CPU, in the kernel', interrupt: 'interrupted', woken: 'ready: woken', preempted: 'ready: preempted',
  throttled: 'throttled', blocked_disk: 'waits: disk', blocked_network: 'waits: network', blocked_timer: 'waits: timer',
  blocked_lock: 'waits: lock', blocked_child: 'waits: child process', blocked_page_fault: 'waits: page fault',
  blocked_stopped: 'stopped', blocked_other: 'waits: other', unknown: 'unknown', gone: 'not there',
};

/** A state's name for people. */
export function stateWords(name: string): string {
  return STATE_WORDS[name] ?? name;
}

/** What a system call returned. The kernel returns errors as -4095 to -1 (include/linux/err.h). */
export function returned(value: number): string {
  if (value < -(2 ** 62)) return 'not seen'; // KRAIT_NOT_RETURNED
  return value < 0 && value >= -4095 ? `error ${-value}` : String(value);
}
