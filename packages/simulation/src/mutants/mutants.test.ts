import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { MUTANTS } from './all.ts';
import { ROOT } from './install.ts';
import { mutate } from './mutant.ts';
import { search } from './search.ts';

/** Seed that found each mutant when `make mutants` last ran. */
const SEEDS: Record<string, number> = JSON.parse(
  readFileSync(new URL('seeds.json', import.meta.url), 'utf8'),
);
/** Maximum number of seeds to try if the stored seed no longer finds its mutant, for example after a code change. */
const MAX_SEEDS = 3_000;
/** Number of parallel searches, equal to the number of cores of the smallest supported machine. */
const WORKERS = 2;

describe('mutants', () => {
  test('at least fifteen mutants exist, with unique names, and each matches the code it changes', () => {
    expect(MUTANTS.length).toBeGreaterThanOrEqual(15);
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
    for (const mutant of MUTANTS) {
      const source = readFileSync(new URL(mutant.file, ROOT), 'utf8');
      expect(mutate(source, mutant), mutant.name).not.toBe(source);
    }
  });

  test('a mutant that does not match the code exactly once is rejected', () => {
    const mutant = { name: 'x', file: 'y.ts', find: 'a', replace: 'b', why: '', scenario: '' };
    expect(() => mutate('a a', mutant)).toThrow('occurs 2 times');
    expect(() => mutate('c', mutant)).toThrow('occurs 0 times');
    expect(mutate('cac', mutant)).toBe('cbc');
    expect(mutate('if (x)\n    return y;', { ...mutant, find: 'if (x) return y;', replace: '' })).toBe('');
  });

  test('docs/internals/mutants.md lists every mutant with the number of seeds until it was found', () => {
    const page = readFileSync(new URL('docs/internals/mutants.md', ROOT), 'utf8');
    const listed = [...page.matchAll(/^\| (.+?) \| `.+` \| .+ \| .+ \| [\d,]+ \|$/gm)].map(
      ([, name]) => name,
    );
    expect(listed).toEqual(MUTANTS.map(({ name }) => name));
  });

  test('each mutant is found by a seed that passes without the mutant', { timeout: 600_000 }, async () => {
    const found = new Map<string, Set<number>>();
    const survivors: string[] = [];
    const pending = [...MUTANTS];
    const worker = async () => {
      for (let mutant = pending.shift(); mutant !== undefined; mutant = pending.shift()) {
        const { name, scenario } = mutant;
        const result = await search(mutant, scenario, `${SEEDS[name] ?? 1},1-${MAX_SEEDS}`);
        if (result.found === undefined) survivors.push(name);
        else found.set(scenario, (found.get(scenario) ?? new Set()).add(result.found.seed));
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, worker));
    expect(survivors).toEqual([]);
    const withoutMutant = ([scenario, seeds]: [string, Set<number>]) =>
      search(undefined, scenario, [...seeds].join()).then((result) => ({ scenario, ...result }));
    for (const { scenario, found: violated } of await Promise.all([...found].map(withoutMutant)))
      expect(violated, scenario).toBeUndefined();
  });
});
