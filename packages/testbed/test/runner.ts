/** Program that starts two parts, prints their process ids, and waits. `run-supervisor.test.ts` kills it. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Part } from '../src/process/part.ts';

const options = { command: 'sleep', args: ['1000'], ready: async () => true };
const one = await Part.start({ name: 'one', ...options });
const two = await Part.start({ name: 'two', ...options });
const dir = dirname(one.dir);
const recorded = JSON.parse(readFileSync(join(dir, 'processes.json'), 'utf8'));
console.log(JSON.stringify({ supervisor: recorded.keeper.pid, parts: [one.pid, two.pid], dir }));
setInterval(() => undefined, 1_000);
