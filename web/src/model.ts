// SPDX-License-Identifier: Apache-2.0
// The server's description of the recording (src/serve/answer_trace.c). Times are nanoseconds from its origin.

export interface Process { pid: number; ppid: number; name: string; command: string; runtime: string; host: string; recording: number; end: string; begin: bigint; until: bigint }
export interface Thread { process: number; tid: number; name: string; begin: bigint; until: bigint }
export type TrackKind = 'calls' | 'slices' | 'states' | 'instants' | 'counter' | 'flows';
export interface Track {
  id: number; kind: TrackKind; of: 'thread' | 'cpu' | 'task' | 'process' | 'group' | 'lane';
  process: number | null; thread: number | null; number: number; pid: number; machine: number;
  processName: string; threadName: string; name: string; unit: string; flags: number;
  parts: number; // of a counter: the value that makes one `unit`
}
/** A machine of kernel traces; ids of threads and CPUs are unique only within one machine. */
export interface Machine { recording: number; host: string; begin: bigint; until: bigint }
export interface StateClass { name: string; role: string }
export interface Trace {
  version: string; title: string; folders: string[]; origin: bigint; // folders: quoted for a shell
  duration: bigint;
  index: { share: number; done: boolean; cached: boolean; whole: boolean; bytes: number; took: number };
  growing: boolean; off: boolean; generation: number; changes: number; // whether the recording still runs, and is switched off; number of updates by the server, and of changed lanes in it
  traceBytes: number; funcs: number; texts: number; kernel: boolean;
  processes: Process[]; threads: Thread[]; tracks: Track[]; machines: Machine[]; classes: StateClass[];
  lost: { count: number; reason: string; advice: string }[];
  dropped: { func: number; reason: string; calls: number; at: bigint }[];
  sets: { at: bigint; what: string }[]; // when krait ctl set changed what is recorded, and to what
  damage: string | null;
  samples: { taken: number; interval: number } | null; // of a recording of samples: their number, and the nanoseconds between two
}
export interface Func { id: number; name: string; module: string; file: string; line: number; kind: number; hue: number; holds: boolean }
export interface Call { track: number; func: number; depth: number; begin: bigint; end: bigint; begins: number; ends: number; value?: number }

const BEGINS: Record<number, string> = { 0: 'call', 1: 'resume', 2: 'throw', 3: 'begun before' }, ENDS: Record<number, string> = { 4: 'return', 5: 'yield', 6: 'exception', 7: 'end not recorded' }; // enum krait_op_kind

/** The begin and end of a step of a generator or coroutine, such as "resume to yield"; '' for other calls. */
export function stepWords(call: Pick<Call, 'begins' | 'ends'>): string {
  const isStep = call.begins === 1 || call.begins === 2 || call.ends === 5;
  return isStep ? `${BEGINS[call.begins]} to ${ENDS[call.ends]}` : '';
}

/** The machine of a thread's or CPU's track, if the trace lists machines. */
export function machineOf(trace: Pick<Trace, 'machines'>, track: Track): number | undefined {
  return trace.machines.length && (track.of === 'thread' || track.of === 'cpu') ? track.machine : undefined;
}

/** Whether a track has the states of a thread that the kernel knows, as krait states has them. */
export function isThreadState(track: Track): boolean {
  return track.kind === 'states' && track.of === 'thread' && track.name === 'state';
}

/** Whether the kernel recorded what threads or CPUs were doing. Tasks, the GIL, losses and declared lanes have tracks of states, too. */
export function hasStates(trace: Trace): boolean {
  return trace.tracks.some((track) => isThreadState(track) || (track.of === 'cpu' && track.kind === 'states'));
}

/** Whether a track says where events of a thread are missing. The value of its states is the number of lost events. */
export function isLosses(track: Track): boolean {
  return track.kind === 'states' && track.of === 'thread' && track.name === 'lost';
}

/** Whether the value of a track's states is the id of the thread to blame. */
export function isBlaming(track: Track): boolean {
  return track.kind === 'states' && track.of === 'thread' && !isLosses(track);
}

const TEXT_MOST = 400;

/** Shortens a long text to its begin and end: the layout of kilobytes of text takes longer than a frame. */
export function clip(text: string, most = TEXT_MOST): string {
  return text.length > most ? `${text.slice(0, most - 100)}\u2026${text.slice(-80)}` : text;
}

/** A function's name with its module, as options and files of krait take it: "json.decoder.JSONDecoder.decode". */
export function fullName(func: Pick<Func, 'module' | 'name' | 'kind'>): string {
  return func.module && func.kind !== 2 ? `${func.module}.${func.name}` : func.name;
}

/** The same as in krait's tables. */
export function label(func: Func): string {
  const name = clip(fullName(func));
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

/** The text that the page shows for a state. */
export function stateWords(name: string): string {
  return STATE_WORDS[name] ?? name;
}

/** The result of a system call as text. The kernel returns errors as -4095 to -1 (include/linux/err.h). */
export function returned(value: number): string {
  if (value < -(2 ** 62)) return 'not recorded'; // KRAIT_NOT_RETURNED
  return value < 0 && value >= -4095 ? `error ${-value}` : String(value);
}
