import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { PRELUDE } from './launch.ts';

/**
 * Allocates objects that survive garbage collections, and prints the capacity of V8's space for new objects in MB. It
 * prints the median of many samples, because a parallel collection borrows additional pages for a short time.
 */
const ALLOCATE = `import { getHeapSpaceStatistics } from "node:v8";
const kept = [];
const samples = [];
for (let i = 0; i < 800_000; i++) {
  kept[i % 100_000] = { name: "n" + i, values: [i, i + 1] };
  if (i % 10_000 !== 0) continue;
  const { space_used_size: used, space_available_size: free } = getHeapSpaceStatistics().find(
    ({ space_name }) => space_name === "new_space",
  );
  samples.push((used + free) / 2 ** 20);
}
console.log(samples.sort((a, b) => a - b)[samples.length / 2]);
`;

function newSpaceMb(prelude: string): number {
  const args = ['--input-type=module', '--eval', prelude + ALLOCATE];
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}

test('with the V8 flags of our programs, the heap space for new objects (new_space) does not grow', () => {
  expect(newSpaceMb(PRELUDE)).toBeLessThanOrEqual(2);
  expect(newSpaceMb('')).toBeGreaterThanOrEqual(8);
});
