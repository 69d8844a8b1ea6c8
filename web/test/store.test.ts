// SPDX-License-Identifier: Apache-2.0
import { View, decode, encode } from '../src/store';
import { equal, test } from './harness';

const VIEW: View = {
  range: { from: 31536000000000001n, span: 1234.5 }, selected: { from: 5n, span: 7 }, call: { track: 3, depth: 2, at: 9007199254740993n },
  panel: 'finder', filter: 'a;b=c,\u202e"', group: 'kind', active: true, collapsed: ['p0', 'x;y'], pinned: ['p0/t1'], deep: ['p0/t2'], only: ['p0/t1', 'cpus'], order: ['p1', 'p0'], func: 12, brush: [1000, 2500], way: 'sandwich', aligned: true, scroll: 96, picks: { functions: '+p,5:0;', focus: '/3/4' }, looks: { theme: 'dark' }, events: 'name == "a;b="', path: true, base: { range: { from: 1n, span: 2.5 }, only: ['p0/t1', 'a,b'] },
};

test('a link opens the same view, to the nanosecond', () => {
  equal(decode(encode(VIEW), { ...VIEW, range: { from: 0n, span: 1 }, panel: '', filter: '' }), VIEW);
});

test('what a link does not say is as at the beginning', () => {
  const view = decode('r=1,2', VIEW) as View;
  equal(view.picks, {});
  equal(view.looks, VIEW.looks); // of the page, until a link says else
  equal([view.selected, view.call, view.filter, view.collapsed, view.func, view.brush, view.way, view.scroll], [null, null, '', [], null, null, 'callees', 0]);
});

test('a link that cannot be is no view', () => {
  for (const text of ['r=x,1', 'r=1,0', 'r=1,-5', 'r=1,Infinity', 'r=1', 'c=1,2', 'f=%E0%A4%A', 's=1.5,2', 'u=1', 'u=1,x', 'y=-1', 'y=Infinity']) equal(decode(text, VIEW), null);
});
