import { expect, test } from 'vitest';
import { type FaultSettings, Faults } from './faults.ts';

function fates(settings: FaultSettings, count = 2_000) {
  const faults = new Faults();
  faults.set(settings);
  return { fates: Array.from({ length: count }, () => faults.fateOf('createServer')), report: faults.report };
}

const all = { latencyMs: { min: 10, max: 20 }, errorRate: 0.2, loseBefore: 0.1, loseAnswersAfterEffect: 0.3 };

test('the same seed brings the same faults to the same requests', () => {
  expect(fates({ seed: 5, ...all })).toEqual(fates({ seed: 5, ...all }));
  expect(fates({ seed: 5, ...all }).fates).not.toEqual(fates({ seed: 6, ...all }).fates);
});

test('each happens as often as it is to, and is counted', () => {
  const { fates: given, report } = fates({ seed: 1, ...all });
  expect(report).toMatchObject({ requests: 2_000, delayed: 2_000 });
  expect(given.every((fate) => fate !== undefined && fate.delayMs >= 10 && fate.delayMs < 20)).toBe(true);
  for (const [count, share] of [
    [report.lostBefore, 0.1],
    [report.refused, 0.9 * 0.2],
    [report.lostAfter, 0.9 * 0.8 * 0.3],
  ] as const)
    expect(Math.abs(count / 2_000 - share)).toBeLessThan(0.04);
});

test('a rate that changes does not change whom the others strike', () => {
  const lost = (settings: FaultSettings) => fates(settings).fates.map((fate) => fate?.lost === 'before');
  expect(lost({ seed: 1, loseBefore: 0.3 })).toEqual(lost({ seed: 1, loseBefore: 0.3, errorRate: 0.9 }));
});

test('nothing happens to other routes, nor before it is set, nor after it is cleared', () => {
  const faults = new Faults();
  expect(faults.fateOf('createServer')).toBeUndefined();
  faults.set({ seed: 1, errorRate: 1, errorStatus: 429, routes: ['deleteServer'] });
  expect(faults.fateOf('createServer')).toBeUndefined();
  expect(faults.fateOf('deleteServer')).toEqual({ delayMs: 0, refusedWith: 429, lost: undefined });
  faults.clear();
  expect(faults.fateOf('deleteServer')).toBeUndefined();
  expect(faults.report).toMatchObject({ settings: null, requests: 1, refused: 1 });
});
