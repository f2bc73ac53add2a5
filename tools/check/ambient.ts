/**
 * Time, chance and the network come in through `World` (packages/core/src/world), or the simulation would not be
 * deterministic and would not show what production does. Part of `make check`: prints a line for each place that goes
 * around it, in what runs in both.
 */
import { globSync, readFileSync } from 'node:fs';
import { parseSync, Visitor } from 'oxc-parser';

const CHECKED = ['packages/{core,runtime,vsphere,operator}/src/**/*.ts', 'packages/cloud/src/client/**/*.ts'];
/** Where the real world is made, and what only ever runs on a real machine. */
const EXEMPT = [/\.test\.ts$/, /^packages\/core\/src\/world\/node\//];

const CALLS = new Set([
  'setTimeout',
  'setInterval',
  'setImmediate',
  'fetch',
  'Date.now',
  'Math.random',
  'performance.now',
  'process.nextTick',
  'process.hrtime',
  'crypto.randomUUID',
  'randomUUID',
  'AbortSignal.timeout',
]);
/** Leaks on signals that live long (`JoinedSignal`). */
const LEAKS = new Set(['AbortSignal.any']);
const MODULES = new Set(['node:timers', 'node:timers/promises', 'node:http2', 'undici']);

for (const file of CHECKED.flatMap((pattern) => globSync(pattern)).filter(
  (each) => !EXEMPT.some((is) => is.test(each)),
)) {
  const source = readFileSync(file, 'utf8');
  const complain = (start: number, what: string, instead = 'take it from the World that is passed in') => {
    const line = source.slice(0, start).split('\n').length;
    console.error(`${file}:${line} uses ${what}; ${instead}`);
    process.exitCode = 1;
  };
  const visitor = new Visitor({
    CallExpression({ callee, start, end: _ }) {
      const name = source.slice(callee.start, callee.end).replaceAll('?.', '.');
      if (CALLS.has(name)) complain(start, name);
      if (LEAKS.has(name)) complain(start, name, 'it leaks on signals that live long: use JoinedSignal');
    },
    NewExpression({ callee, arguments: given, start }) {
      if (source.slice(callee.start, callee.end) === 'Date' && given.length === 0)
        complain(start, 'new Date()');
    },
    ImportDeclaration({ source: from, start }) {
      if (MODULES.has(from.value.replace(/^undici\/.*/, 'undici'))) complain(start, from.value);
    },
  });
  visitor.visit(parseSync(file, source).program);
}
