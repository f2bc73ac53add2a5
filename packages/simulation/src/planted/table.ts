import { grouped } from '../runner/numbers.ts';
import type { Hunted } from './hunt.ts';
import type { Planted } from './planted.ts';
import type { Sample } from './samples.ts';

export interface Row {
  readonly bug: Planted;
  readonly hunted: Hunted;
}

export interface PageContent {
  readonly rows: readonly Row[];
  readonly samples: readonly Sample[];
  /** How many seeds each was given at most. */
  readonly most: number;
}

/** The docs page. */
export function page({ rows, samples, most }: PageContent): string {
  const found = rows.filter(({ hunted }) => hunted.found !== undefined).length;
  return `# What the simulation finds

Written by \`make planted\`; do not edit. [How to plant a bug](simulation.md#planting-a-bug).

## Planted bugs

Each row is a bug that is put into the code as it is loaded, and what the simulation makes of it: the invariant that is
violated first, and how many seeds that took, counted from 1 on (so this is also the first seed that shows it). On the
same seed, nothing is violated without the bug. Found within ${grouped(most)} seeds: ${found} of ${rows.length}.

| bug | where | scenario | invariant | seeds it took |
| --- | --- | --- | --- | ---: |
${rows.map(rowOf).join('\n')}

## The sample controller

One controller over a remote backend, guarded more and more: how many of ${grouped(most)} histories violate a promise.

| variant | violating seeds | what is violated, by how many of them |
| --- | ---: | --- |
${samples.map(sampleOf).join('\n')}
`;
}

function rowOf({ bug, hunted: { found, seeds } }: Row): string {
  const { name, file, scenario } = bug;
  const where = file.replace('packages/', '').replace('/src/', '/');
  const took = found === undefined ? `not in ${grouped(seeds)}` : grouped(found.seed);
  return `| ${name} | \`${where}\` | ${scenario} | ${found?.violation.invariant ?? ''} | ${took} |`;
}

function sampleOf({ variant: { name }, result: { violating, broken } }: Sample): string {
  const what = Object.entries(broken)
    .sort(([, a], [, b]) => b.seeds - a.seeds)
    .map(([invariant, { seeds }]) => `${invariant}: ${grouped(seeds)}`);
  return `| ${name} | ${grouped(violating)} | ${what.join(' · ')} |`;
}

/** One line, for the terminal. */
export function lineOf({ bug, hunted: { found, seeds } }: Row): string {
  const seed = found === undefined ? `not in ${seeds}` : `seed ${found.seed}`;
  return `${seed.padStart(12)}  ${bug.name}${found === undefined ? '' : `: ${found.violation.invariant}`}`;
}
