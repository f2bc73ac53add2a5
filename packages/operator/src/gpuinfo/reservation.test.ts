import { expect, test } from 'vitest';
import { formatReservation, parseReservation, type Reservation } from './reservation.ts';
import { NOW } from './testing.ts';

const full: Reservation = {
  key: 'ml/a',
  generation: 2,
  node: 'n',
  pool: 'node/n',
  gpus: 1,
  from: NOW,
  until: NOW + 5,
  inUse: true,
  mayRestart: true,
  idleSince: NOW + 1,
  isRepeated: true,
  ended: { at: NOW + 6, reason: 'TimePassed' },
};

test('a stored reservation is read as it was written', () => {
  expect(parseReservation(formatReservation(full))).toEqual(full);
});

test.each([
  ['no JSON', () => '{"node":'],
  ['a missing field', (text: string) => text.replace('"node":"n",', '')],
  [
    'a time that does not exist',
    (text: string) => text.replace(/"until":"[^"]*"/, '"until":"2026-01-05T08:00:00+25:00"'),
  ],
  [
    'an end that does not exist',
    (text: string) => text.replace(/"at":"[^"]*"/, '"at":"2026-02-30T25:00:00Z"'),
  ],
])('a text with %s is not a reservation', (_, edit) => {
  expect(parseReservation(edit(formatReservation(full)))).toBeUndefined();
});
