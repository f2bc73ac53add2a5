/**
 * Part of `make check`: reports code that uses time, randomness or the network without going through `World`
 * (packages/core/src/world). The simulation would not be deterministic with such code.
 */
import { globSync, readFileSync } from 'node:fs';
import { parseSync, Visitor } from 'oxc-parser';

const CHECKED = ['packages/{core,runtime,vsphere,operator}/src/**/*.ts', 'packages/cloud/src/client/**/*.ts'];
/** Exceptions: tests, and the implementation of `World` on Node. */
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
/** Calls that leak listeners on long-lived signals. */
const LEAKS = new Set(['AbortSignal.any']);
const MODULES = new Set(['node:timers', 'node:timers/promises', 'node:http2', 'undici']);

for (const file of CHECKED.flatMap((pattern) => globSync(pattern)).filter(
  (path) => !EXEMPT.some((pattern) => pattern.test(path)),
)) {
  const source = readFileSync(file, 'utf8');
  const report = (start: number, what: string, advice = 'take it from the World that is passed in') => {
    const line = source.slice(0, start).split('\n').length;
    console.error(`${file}:${line} uses ${what}; ${advice}`);
    process.exitCode = 1;
  };
  const visitor = new Visitor({
    CallExpression({ callee, start, end: _ }) {
      const name = source.slice(callee.start, callee.end).replaceAll('?.', '.');
      if (CALLS.has(name)) report(start, name);
      if (LEAKS.has(name)) report(start, name, 'it leaks listeners on long-lived signals; use JoinedSignal');
    },
    NewExpression({ callee, arguments: args, start }) {
      if (source.slice(callee.start, callee.end) === 'Date' && args.length === 0) report(start, 'new Date()');
    },
    ImportDeclaration({ source: from, start }) {
      if (MODULES.has(from.value.replace(/^undici\/.*/, 'undici'))) report(start, from.value);
    },
  });
  visitor.visit(parseSync(file, source).program);
}
