// SPDX-License-Identifier: Apache-2.0
// The panels, in their order: a row each.

import { Panel } from '../panel';
import { compare } from './compare';
import { counters } from './counters';
import { details } from './details';
import { eventTable } from './events';
import { finder } from './finder';
import { flame } from './flame';
import { functions } from './functions';
import { gil } from './gil';
import { intervals } from './intervals';
import { marks } from './marks';
import { notes } from './notes';
import { play } from './play';
import { states } from './states';
import { syscalls } from './syscalls';

export const panels: Panel[] = [functions, details, finder, flame, play, compare, states, syscalls, gil, counters, intervals, marks, eventTable, notes];
