// SPDX-License-Identifier: Apache-2.0
import { Entry, changes } from '../src/panels/compare_kernel';
import { equal, test } from './harness';

const entry = (what: string, name: string, times: number, ns: number): Entry => ({ what, name, sum: { times, ns } });

test('what was in both is added up by name, and nothing where it is missing', () => {
  const now = [entry('threads', 'on CPU', 1, 10), entry('threads', 'on CPU', 2, 20), entry('system call', 'read', 1, 5)];
  equal(changes(now, [entry('threads', 'on CPU', 1, 7), entry('on the CPUs', 'read', 3, 9)]), [
    { what: 'threads', name: 'on CPU', now: { times: 3, ns: 30 }, before: { times: 1, ns: 7 } },
    { what: 'system call', name: 'read', now: { times: 1, ns: 5 }, before: { times: 0, ns: 0 } },
    { what: 'on the CPUs', name: 'read', now: { times: 0, ns: 0 }, before: { times: 3, ns: 9 } },
  ]);
});
