// SPDX-License-Identifier: Apache-2.0
import { decodeNotes, encodeNotes } from '../src/notes';
import { equal, test } from './harness';

const ORIGIN = 1732434343000000001n;

test('notes are read as they were written, to the nanosecond', () => {
  const notes = [{ range: { from: 3n, span: 0 }, text: '<b>\u202e"' }, { range: { from: 9007199254740993n, span: 250 }, text: '' }];
  equal(decodeNotes(JSON.parse(encodeNotes(notes, ORIGIN)), ORIGIN), notes);
  equal(decodeNotes(JSON.parse(encodeNotes(notes, ORIGIN)), ORIGIN - 5n)?.[0].range.from, 8n);
});

test('no file is no notes, and what is no note is left out', () => {
  equal(decodeNotes({}, ORIGIN), []);
  const odd = [null, 5, {}, { time: 'x', length: 1, text: '' }, { time: '1', length: -1, text: '' }, { time: '1', length: 1 }, { time: '1732434343000000001', length: 1, text: 'good' }];
  equal(decodeNotes({ version: 1, notes: odd }, ORIGIN)?.map((note) => note.text), ['good']);
});

test('notes of a newer krait are not touched', () => {
  equal(decodeNotes({ version: 2, notes: [] }, ORIGIN), null);
});
