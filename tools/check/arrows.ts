/**
 * Part of `make check`: reports imports between packages that the README's layout does not allow. Biome reports cycles
 * between files.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, normalize } from 'node:path';
import { parseSync } from 'oxc-parser';

/** Packages that the shipped code of a package may import. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  core: [],
  runtime: ['core'],
  vsphere: ['core'],
  cloud: ['core'],
  operator: ['core', 'runtime', 'vsphere', 'cloud'],
  simulation: ['core', 'runtime', 'vsphere', 'cloud', 'operator'],
  testbed: ['core', 'runtime'],
};

/** Packages that tests and examples may import in addition to `ALLOWED`. Both need the core for `nodeWorld`. */
const IN_TESTS = ['testbed', 'simulation', 'runtime', 'core'];

const SCOPE = '@vmwright/';

function importsOf(file: string): readonly string[] {
  const source = readFileSync(file, 'utf8');
  const { module, errors } = parseSync(file, source);
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  const literal = (start: number, end: number) => source.slice(start, end).replace(/^['"`]|['"`]$/g, '');
  return [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.map(({ moduleRequest }) => moduleRequest?.value ?? ''),
    ),
    ...module.dynamicImports.map(({ moduleRequest }) => literal(moduleRequest.start, moduleRequest.end)),
  ];
}

function violation(file: string, specifier: string): string | undefined {
  const [, own = ''] = file.split('/');
  const isTest = file.endsWith('.test.ts') || /^packages\/[^/]+\/(test|examples)\//.test(file);
  if (specifier.startsWith('.')) {
    const target = normalize(`${dirname(file)}/${specifier}`);
    if (target.startsWith(`packages/${own}/`)) return undefined;
    return `${file} imports the file ${target} of another package; import the package by its name`;
  }
  if (!specifier.startsWith(SCOPE)) return undefined;
  const [other = ''] = specifier.slice(SCOPE.length).split('/');
  const allowed = [...(ALLOWED[own] ?? []), ...(isTest ? [...IN_TESTS, own] : [])];
  if (allowed.includes(other)) return undefined;
  const permitted = allowed.length === 0 ? 'none of our packages' : allowed.join(', ');
  return `${file} imports ${specifier}: ${isTest ? 'tests of ' : ''}${own} may import ${permitted}`;
}

const violations = globSync('packages/*/{src,test,examples}/**/*.ts').flatMap((file) =>
  importsOf(file).flatMap((specifier) => violation(file, specifier) ?? []),
);
for (const line of violations) console.error(line);
process.exitCode = violations.length === 0 ? 0 : 1;
