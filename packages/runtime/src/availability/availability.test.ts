import { collectingLogger } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';
import { expect, test } from 'vitest';
import { Availability, BackendUnavailableError, type Outage } from './availability.ts';

function setUp() {
  const clock = new VirtualClock();
  const { logger, lines } = collectingLogger();
  const changes: (Outage | undefined)[] = [];
  const availability = new Availability({
    clock,
    log: logger,
    backend: 'cloud',
    afterMs: 25_000,
    onChange: (outage) => changes.push(outage),
  });
  availability.answered();
  return { clock, lines, changes, availability };
}

const refused = new Error('connection refused');

test('a backend is unavailable after a failed request and 25 s without a response, until the next response', () => {
  const { clock, lines, changes, availability } = setUp();
  clock.advance(15_000);
  availability.failed(refused);
  clock.advance(9_999);
  expect(availability.outage).toBeUndefined();
  clock.advance(1);
  expect(availability.outage).toEqual({ error: refused });
  expect(() => availability.assertAvailable()).toThrow(BackendUnavailableError);
  expect(() => availability.assertAvailable()).toThrow('cloud is unavailable: connection refused');
  availability.answered();
  expect(availability.outage).toBeUndefined();
  availability.assertAvailable();
  expect(changes).toEqual([{ error: refused }, undefined]);
  expect(lines.map(({ level, msg, backend }) => [level, msg, backend])).toEqual([
    ['warn', 'Backend unavailable; objects that depend on it are retried when it answers', 'cloud'],
    ['info', 'Backend available again', 'cloud'],
  ]);
});

test('a failure more than 25 s after the last response makes the backend unavailable immediately', () => {
  const { clock, availability } = setUp();
  clock.advance(60_000); // no requests were made, so this is not an outage
  expect(availability.outage).toBeUndefined();
  availability.failed(refused);
  expect(availability.outage).toEqual({ error: refused });
});

test('failures that are followed by a response within 25 s are not an outage', () => {
  const { clock, lines, changes, availability } = setUp();
  for (let round = 0; round < 10; round++) {
    availability.failed(refused);
    clock.advance(24_000);
    availability.answered();
  }
  clock.advance(100_000);
  expect(changes).toEqual([]);
  expect(lines).toEqual([]);
});

test('an outage is logged once for any number of failures, and carries the newest error', () => {
  const { clock, lines, changes, availability } = setUp();
  for (let round = 0; round < 100; round++) {
    availability.failed(round === 99 ? new Error('HTTP 500') : refused);
    clock.advance(1_000);
  }
  expect(lines).toHaveLength(1);
  expect(changes).toHaveLength(1);
  expect(availability.outage).toEqual({ error: new Error('HTTP 500') });
});

test('outageSignal aborts when an outage begins, and a new signal replaces it when the outage ends', () => {
  const { clock, availability } = setUp();
  const first = availability.outageSignal;
  availability.failed(refused);
  expect(first.aborted).toBe(false);
  clock.advance(25_000);
  expect(first.aborted).toBe(true);
  expect(first.reason).toBeInstanceOf(BackendUnavailableError);
  availability.answered();
  expect(availability.outageSignal.aborted).toBe(false);
});

test('after restart() the backend becomes unavailable if it does not respond within 10 s', () => {
  const { clock, availability } = setUp();
  clock.advance(3_600_000); // another replica was the leader during this hour
  availability.restart();
  availability.failed(refused);
  clock.advance(9_999);
  expect(availability.outage).toBeUndefined();
  clock.advance(1);
  expect(availability.outage).toEqual({ error: refused });
});

test('restart() forgets an outage of an earlier leadership term', () => {
  const { clock, availability } = setUp();
  availability.failed(refused);
  clock.advance(25_000); // this replica lost its network, and another replica led afterwards
  expect(availability.outage).toEqual({ error: refused });
  clock.advance(3_600_000);
  availability.restart();
  expect(availability.outage).toBeUndefined();
  expect(availability.outageSignal.aborted).toBe(false);
  availability.assertAvailable();
  availability.failed(refused);
  clock.advance(10_000);
  expect(availability.outage).toEqual({ error: refused });
});
