import { expect, test } from 'vitest';
import { type LiveFolder, Liveness } from './liveness.ts';

const LONG_MS = 60_000;

function vcenterWith(...open: readonly LiveFolder[]) {
  return {
    folders: { open, isGone: async () => false, close: () => undefined },
    health: { isDown: false, probe: () => undefined },
  };
}

test('a folder that becomes stale or current is detected even if another folder stays stale', () => {
  const ref = { type: 'Folder', value: 'group-1' } as const;
  const stale = { ref, staleMs: LONG_MS };
  const other = { ref: { ...ref, value: 'group-2' }, staleMs: 0 };
  const vcenter = vcenterWith(stale, other);
  const liveness = new Liveness([vcenter]);
  const isDetected = () => liveness.changed().has(vcenter);
  expect([isDetected(), isDetected()]).toEqual([true, false]);
  other.staleMs = LONG_MS;
  expect([isDetected(), isDetected()]).toEqual([true, false]);
  other.staleMs = 0;
  expect([isDetected(), isDetected()]).toEqual([true, false]);
});
