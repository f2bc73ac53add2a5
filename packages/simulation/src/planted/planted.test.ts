import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { BUGS } from './bugs.ts';
import { hunt } from './hunt.ts';
import { ROOT } from './plant.ts';
import { plantedIn } from './planted.ts';

/** Where each was found when `make planted` was last run. */
const SEEDS: Record<string, number> = JSON.parse(
  readFileSync(new URL('seeds.json', import.meta.url), 'utf8'),
);
/** Other code has other histories: a bug that its seed shows no more is looked for among so many. */
const MOST_SEEDS = 3_000;
/** As many as the least machine has cores. */
const AT_A_TIME = 2;

describe('planted bugs', () => {
  test('are at least fifteen, and each still fits the code it is planted in', () => {
    expect(BUGS.length).toBeGreaterThanOrEqual(15);
    expect(new Set(BUGS.map(({ name }) => name)).size).toBe(BUGS.length);
    for (const bug of BUGS) {
      const source = readFileSync(new URL(bug.file, ROOT), 'utf8');
      expect(plantedIn(source, bug), bug.name).not.toBe(source);
    }
  });

  test('that do not fit the code any more are told', () => {
    const bug = { name: 'x', file: 'y.ts', find: 'a', replace: 'b', why: '', scenario: '' };
    expect(() => plantedIn('a a', bug)).toThrow('it is 2 times');
    expect(() => plantedIn('c', bug)).toThrow('it is 0 times');
    expect(plantedIn('cac', bug)).toBe('cbc');
    expect(plantedIn('if (x)\n    return y;', { ...bug, find: 'if (x) return y;', replace: '' })).toBe('');
  });

  test('are all in docs/simulation-planted.md, with the seeds it took', () => {
    const page = readFileSync(new URL('docs/simulation-planted.md', ROOT), 'utf8');
    const told = [...page.matchAll(/^\| (.+?) \| `.+` \| .+ \| .+ \| [\d,]+ \|$/gm)].map(([, name]) => name);
    expect(told).toEqual(BUGS.map(({ name }) => name));
  });

  test('are each found, by a seed in which nothing is violated without them', {
    timeout: 600_000,
  }, async () => {
    const found = new Map<string, Set<number>>();
    const survivors: string[] = [];
    const left = [...BUGS];
    const worker = async () => {
      for (let bug = left.shift(); bug !== undefined; bug = left.shift()) {
        const { name, scenario } = bug;
        const hunted = await hunt(bug, scenario, `${SEEDS[name] ?? 1},1-${MOST_SEEDS}`);
        if (hunted.found === undefined) survivors.push(name);
        else found.set(scenario, (found.get(scenario) ?? new Set()).add(hunted.found.seed));
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, worker));
    expect(survivors).toEqual([]);
    const without = ([scenario, seeds]: [string, Set<number>]) =>
      hunt(undefined, scenario, [...seeds].join()).then((hunted) => ({ scenario, ...hunted }));
    for (const { scenario, found: violated } of await Promise.all([...found].map(without)))
      expect(violated, scenario).toBeUndefined();
  });
});
