// SPDX-License-Identifier: Apache-2.0
// Moments from which on less, or something else, was recorded: --max-overhead dropped a function, or krait ctl set changed what is
// recorded. The timeline has a dashed line at each.

import { Func, Trace, label } from './model';
import { counted } from './time';

const TOLD = 6; // most functions in a tooltip

/** Their times. */
export function momentsOf({ dropped, sets }: Pick<Trace, 'dropped' | 'sets'>): bigint[] {
  return [...dropped, ...sets].map(({ at }) => at);
}

/** The changes by krait ctl set, those of several processes that are alike once: the earliest. */
export function distinct(sets: Trace['sets']): Trace['sets'] {
  return sets.filter(({ what }, i) => !i || sets[i - 1].what !== what);
}

/** The lines of the tooltip of those that are near, as `isNear` says of a time; none: there are none. */
export function dropLines({ dropped, sets }: Pick<Trace, 'dropped' | 'sets'>, isNear: (at: bigint) => boolean, func: (id: number) => Func | undefined): string[] {
  const near = dropped.filter(({ at }) => isNear(at)), changed = sets.filter(({ at }) => isNear(at));
  const lines = near.slice(0, TOLD).map((each) => {
    const known = func(each.func);
    return `${known ? label(known) : '\u2026'}, after ${counted(each.calls, 'call')}`;
  });
  return [...(near.length ? ['dropped by --max-overhead from here on:', ...lines, near.length > TOLD ? `and ${near.length - TOLD} more` : ''] : []),
    ...[...new Set(changed.map(({ what }) => what))].flatMap((what) => ['krait ctl set: from here on is recorded', what])];
}
