// SPDX-License-Identifier: Apache-2.0
// The panels, in their order: a row each.

import { Panel } from '../panel';
import { details } from './details';
import { eventTable } from './events';
import { finder } from './finder';
import { flame } from './flame';
import { functions } from './functions';
import { marks } from './marks';
import { notes } from './notes';
import { states, syscalls } from './sums';

export const panels: Panel[] = [functions, details, finder, flame, states, syscalls, marks, eventTable, notes];
