/*
 * A process that runs seeds of a scenario with a planted bug until one finds it, and tells as one line of JSON:
 * node hunter.ts <scenario> <seeds: 3 or 1-500 or 17,1-500> [<bug>]
 */
import { bugNamed } from './bugs.ts';
import { plant } from './plant.ts';

const [scenarioName = '', which = '', bug = ''] = process.argv.slice(2);
if (bug !== '') plant(bugNamed(bug));
// Only now: what is loaded before has no bug in it.
const { scenarioNamed } = await import('../runner/named.ts');
const { runSeed } = await import('../runner/seed.ts');
const registry = await import('../runner/registry.ts');

const scenario = scenarioNamed(scenarioName, registry);
let seeds = 0;
let found: object | undefined;
for (const seed of seedsIn(which)) {
  const [violation] = (await runSeed(scenario, seed)).violations;
  seeds += 1;
  if (violation === undefined) continue;
  found = { seed, violation };
  break;
}
process.stdout.write(`${JSON.stringify({ seeds, found })}\n`, () => process.exit()); // whatever a bug has left behind

function* seedsIn(text: string): Generator<number, void, undefined> {
  for (const part of text.split(',')) {
    const [first = 1, last = first] = part.split('-').map(Number);
    for (let seed = first; seed <= last; seed++) yield seed;
  }
}
