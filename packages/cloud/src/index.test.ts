import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

/** Returns the transitive imports of a file: absolute paths of local files, and package names. */
function importsOf(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const source = readFileSync(file, 'utf8');
  for (const [, specifier = ''] of source.matchAll(/^(?:import|export)[^;]*?from '([^']+)';/gms)) {
    if (specifier.startsWith('.')) importsOf(join(dirname(file), specifier), seen);
    else seen.add(specifier);
  }
  return seen;
}

test('the client does not import the server, and core is the only package that it imports', () => {
  const imported = [...importsOf(join(import.meta.dirname, 'index.ts'))];
  expect(imported).toContain(join(import.meta.dirname, 'client/requests.ts'));
  expect(imported.filter((each) => !each.startsWith('/'))).toEqual(['@vmwright/core']);
  expect(imported.filter((each) => each.startsWith(join(import.meta.dirname, 'server')))).toEqual([]);
});
