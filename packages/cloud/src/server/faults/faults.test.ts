import { expect, test } from 'vitest';
import { type FaultSettings, Faults } from './faults.ts';

function inject(settings: FaultSettings, count = 2_000) {
  const faults = new Faults();
  faults.set(settings);
  return {
    injected: Array.from({ length: count }, () => faults.next('createServer')),
    report: faults.report,
  };
}

const all = { latencyMs: { min: 10, max: 20 }, errorRate: 0.2, loseBefore: 0.1, loseAnswersAfterEffect: 0.3 };

test('the same seed injects the same faults into the same requests', () => {
  expect(inject({ seed: 5, ...all })).toEqual(inject({ seed: 5, ...all }));
  expect(inject({ seed: 5, ...all }).injected).not.toEqual(inject({ seed: 6, ...all }).injected);
});

test('each fault is injected at its configured rate and counted', () => {
  const { injected, report } = inject({ seed: 1, ...all });
  expect(report).toMatchObject({ requests: 2_000, delayed: 2_000 });
  expect(injected.every((fault) => fault !== undefined && fault.delayMs >= 10 && fault.delayMs < 20)).toBe(
    true,
  );
  for (const [count, share] of [
    [report.lostBefore, 0.1],
    [report.refused, 0.9 * 0.2],
    [report.lostAfter, 0.9 * 0.8 * 0.3],
  ] as const)
    expect(Math.abs(count / 2_000 - share)).toBeLessThan(0.04);
});

test('changing one rate does not change which requests the other faults affect', () => {
  const lost = (settings: FaultSettings) =>
    inject(settings).injected.map((fault) => fault?.lost === 'before');
  expect(lost({ seed: 1, loseBefore: 0.3 })).toEqual(lost({ seed: 1, loseBefore: 0.3, errorRate: 0.9 }));
});

test('no faults are injected before a call of `set`, after a call of `clear`, or into routes that are not listed', () => {
  const faults = new Faults();
  expect(faults.next('createServer')).toBeUndefined();
  faults.set({ seed: 1, errorRate: 1, errorStatus: 429, routes: ['deleteServer'] });
  expect(faults.next('createServer')).toBeUndefined();
  expect(faults.next('deleteServer')).toEqual({ delayMs: 0, errorStatus: 429, lost: undefined });
  faults.clear();
  expect(faults.next('deleteServer')).toBeUndefined();
  expect(faults.report).toMatchObject({ settings: null, requests: 1, refused: 1 });
});
