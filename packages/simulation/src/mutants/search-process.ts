/*
 * Process that runs seeds of a scenario with a mutant until one violates an invariant. Prints one line of JSON.
 * node search-process.ts <scenario> <seeds: 3 or 1-500 or 17,1-500> [<mutant>]
 */
import { mutantNamed } from './all.ts';
import { install } from './install.ts';

const [scenarioName = '', which = '', mutant = ''] = process.argv.slice(2);
if (mutant !== '') install(mutantNamed(mutant));
// Imported after the load hook is installed: modules that are already loaded are not mutated.
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
// Exits explicitly, because a mutant may leave timers or sockets open.
process.stdout.write(`${JSON.stringify({ seeds, found })}\n`, () => process.exit());

function* seedsIn(text: string): Generator<number, void, undefined> {
  for (const part of text.split(',')) {
    const [first = 1, last = first] = part.split('-').map(Number);
    for (let seed = first; seed <= last; seed++) yield seed;
  }
}
