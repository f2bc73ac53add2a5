import { expect, test } from 'vitest';
import { Liveness, type LiveRoot } from './liveness.ts';

const LONG_MS = 60_000;

function siteOf(...open: readonly LiveRoot[]) {
  return {
    roots: { open, isGone: async () => false, close: () => undefined },
    health: { isDown: false, probe: () => undefined },
  };
}

test('a folder that becomes unavailable, or available again, is noticed beside one that stays unavailable', () => {
  const folder = { type: 'Folder', value: 'group-1' } as const;
  const refused = { folder, blindMs: LONG_MS };
  const other = { folder: { ...folder, value: 'group-2' }, blindMs: 0 };
  const site = siteOf(refused, other);
  const liveness = new Liveness([site]);
  const isNoticed = () => liveness.changed().has(site);
  expect([isNoticed(), isNoticed()]).toEqual([true, false]);
  other.blindMs = LONG_MS;
  expect([isNoticed(), isNoticed()]).toEqual([true, false]);
  other.blindMs = 0;
  expect([isNoticed(), isNoticed()]).toEqual([true, false]);
});
