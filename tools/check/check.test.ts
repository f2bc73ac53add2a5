import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Folder with a copy of the repository. The tests modify the copy. */
let copy: string;

beforeAll(async () => {
  copy = await temporaryFolder('check');
  const listed = execFileSync('git', [
    '-C',
    root,
    'ls-files',
    '-z',
    '--cached',
    '--others',
    '--exclude-standard',
  ]);
  for (const file of listed.toString().split('\0')) {
    if (!existsSync(join(root, file)) || file === '' || file.startsWith('packages/testbed/manifests/'))
      continue; // the manifests are large, and these checks do not use them
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file), { preserveTimestamps: true });
  }
  linkModules();
  execFileSync('git', ['init', '-q'], { cwd: copy }); // Biome and knip use git's ignore rules
});

/**
 * Links third-party packages to the real node_modules, and our packages to the copy, so that our types are loaded only
 * from the copy.
 */
function linkModules(): void {
  const [from, to] = [join(root, 'node_modules'), join(copy, 'node_modules')];
  mkdirSync(join(to, '@vmwright'), { recursive: true });
  for (const name of readdirSync(from))
    if (name !== '@vmwright') symlinkSync(join(from, name), join(to, name));
  for (const name of readdirSync(join(from, '@vmwright')))
    symlinkSync(join(copy, 'packages', name), join(to, '@vmwright', name));
}

afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** Writes a file into the copy for the duration of the test. */
function writeTemporarily(file: string, text: string): void {
  const path = join(copy, file);
  const existed = existsSync(path);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  onTestFinished(() =>
    existed ? cpSync(join(root, file), path, { preserveTimestamps: true }) : rmSync(path),
  );
}

function writeLock(packages: Readonly<Record<string, object>>): void {
  writeTemporarily('package-lock.json', JSON.stringify({ lockfileVersion: 3, packages }));
}

function make(target: string): { readonly failed: boolean; readonly output: string } {
  const { MAKEFLAGS, MAKELEVEL, ...env } = process.env; // with these variables, make would act as a sub-make of `make test`
  // `-o` prevents an installation in the copy, where node_modules contains links to the real packages.
  const args = ['-o', 'node_modules/.package-lock.json', target];
  const { status, stdout, stderr } = spawnSync('make', args, { cwd: copy, encoding: 'utf8', env });
  return { failed: status !== 0, output: stdout + stderr };
}

describe('make check', () => {
  test('make check fails on a circular import', () => {
    writeTemporarily(
      'packages/cloud/src/a.ts',
      "import { b } from './b.ts';\n\nexport const a = (): number => b();\n",
    );
    writeTemporarily(
      'packages/cloud/src/b.ts',
      "import { a } from './a.ts';\n\nexport const b = (): number => a();\n",
    );
    const { failed, output } = make('lint');
    expect(output).toMatch(/noImportCycles/);
    expect(failed).toBe(true);
  });

  test('make check fails on a forbidden import between packages', () => {
    writeTemporarily('packages/runtime/src/a.ts', "import '@vmwright/operator';\n");
    const { failed, output } = make('arrows');
    expect(output).toContain('packages/runtime/src/a.ts imports @vmwright/operator: runtime may import core');
    expect(failed).toBe(true);
  });

  test('make check fails on an import of the testbed in shipped code, but not in a test', () => {
    writeTemporarily('packages/operator/src/a.test.ts', "import '@vmwright/testbed';\n");
    expect(make('arrows')).toEqual({ failed: false, output: '' });
    writeTemporarily('packages/operator/src/a.ts', "export * from '@vmwright/testbed';\n");
    const { failed, output } = make('arrows');
    expect(output).toContain(
      'packages/operator/src/a.ts imports @vmwright/testbed: operator may import core, runtime, vsphere, cloud',
    );
    expect(failed).toBe(true);
  });

  test('make check fails on a forbidden dynamic import', () => {
    writeTemporarily('packages/vsphere/src/a.ts', "await import('@vmwright/runtime');\n");
    expect(make('arrows').output).toContain('packages/vsphere/src/a.ts imports @vmwright/runtime');
  });

  test('make check fails on an import of a file of another package', () => {
    writeTemporarily('packages/cloud/src/a.ts', "import '../../runtime/src/index.ts';\n");
    const { failed, output } = make('arrows');
    expect(output).toContain(
      'packages/cloud/src/a.ts imports the file packages/runtime/src/index.ts of another package',
    );
    expect(failed).toBe(true);
  });

  test('make check fails on a public signature with a type that the index does not export', () => {
    writeTemporarily(
      'packages/cloud/src/index.ts',
      "export { type Options, create, type Handle } from './a.ts';\nexport * as shapes from './b.ts';\n",
    );
    writeTemporarily(
      'packages/cloud/src/a.ts',
      `import type { Imported as Renamed } from './c.ts';
type Hidden = string;
interface Base { readonly of: Exported }
interface Exported { readonly name: string }
class Private {}
export interface Options<T = unknown> extends Base { readonly hidden: Hidden; readonly value: T }
export function create(options: Options): Renamed;
export function create(name: string): Renamed;
export function create(_: Options | Private | string): Renamed { return String(new Private()); }
export class Handle {
  readonly #private = new Private();
  readonly started = new Date();
  /** @internal */
  readonly internal = new Private();
  private constructor(_: Private) {}
  static of(_: Private): void {}
}
`,
    );
    writeTemporarily(
      'packages/cloud/src/b.ts',
      'export interface Shape { readonly parts: readonly Part[] }\ntype Part = 1;\n',
    );
    writeTemporarily('packages/cloud/src/c.ts', 'export type Imported = string;\n');
    const { failed, output } = make('exports');
    expect(output.match(/^packages.*/gm)).toEqual([
      'packages/cloud/src/a.ts: Base is in the signature of Options; export it from packages/cloud/src/index.ts',
      'packages/cloud/src/a.ts: Hidden is in the signature of Options; export it from packages/cloud/src/index.ts',
      'packages/cloud/src/b.ts: Part is in the signature of Shape; export it from packages/cloud/src/index.ts',
      'packages/cloud/src/c.ts: Imported is in the signature of create; export it from packages/cloud/src/index.ts',
    ]);
    expect(failed).toBe(true);
  });

  test('make check fails on a clock, timer or connection that does not come from the World that is passed in', () => {
    writeTemporarily(
      'packages/runtime/src/a.ts',
      "import 'node:timers/promises';\nimport 'undici/lib/dispatcher/pool.js';\nexport const a = () => Date.now() + Number(new Date());\n",
    );
    writeTemporarily('packages/operator/src/a.ts', 'setTimeout(() => fetch(`x`), new Date(0).getTime());\n');
    const { failed, output } = make('ambient');
    expect(output.match(/^packages.*/gm)?.sort()).toEqual([
      'packages/operator/src/a.ts:1 uses fetch; take it from the World that is passed in',
      'packages/operator/src/a.ts:1 uses setTimeout; take it from the World that is passed in',
      'packages/runtime/src/a.ts:1 uses node:timers/promises; take it from the World that is passed in',
      'packages/runtime/src/a.ts:2 uses undici/lib/dispatcher/pool.js; take it from the World that is passed in',
      'packages/runtime/src/a.ts:3 uses Date.now; take it from the World that is passed in',
      'packages/runtime/src/a.ts:3 uses new Date(); take it from the World that is passed in',
    ]);
    expect(failed).toBe(true);
  });

  test('make check fails on a use of AbortSignal.any, which leaks listeners', () => {
    writeTemporarily(
      'packages/operator/src/a.ts',
      'export const a = (...each: AbortSignal[]) => AbortSignal.any(each);\n',
    );
    const { failed, output } = make('ambient');
    expect(output).toContain('packages/operator/src/a.ts:1 uses AbortSignal.any; it leaks');
    expect(failed).toBe(true);
  });

  test('make check fails on an unused export', () => {
    writeTemporarily('packages/cloud/src/index.ts', "export { used } from './a.ts';\n");
    writeTemporarily('packages/cloud/src/a.ts', 'export const used = 1;\nexport const idle = 2;\n');
    const { failed, output } = make('unused');
    expect(output).toMatch(/Unused exports.*\nidle +packages\/cloud\/src\/a\.ts/);
    expect(failed).toBe(true);
  });

  test('make check fails on an unused file', () => {
    writeTemporarily('packages/cloud/src/orphan.ts', 'export const orphan = 1;\n');
    const { failed, output } = make('unused');
    expect(output).toMatch(/Unused files.*\npackages\/cloud\/src\/orphan\.ts/);
    expect(failed).toBe(true);
  });

  test('make check fails on an unformatted file', () => {
    writeTemporarily('packages/cloud/src/index.ts', 'export const  a = "1"\n');
    const { failed, output } = make('lint');
    expect(output).toContain('packages/cloud/src/index.ts format');
    expect(failed).toBe(true);
  });

  test('make check fails on a type error', () => {
    writeTemporarily('packages/cloud/src/index.ts', "export const a: number = '1';\n");
    const { failed, output } = make('types');
    expect(output).toContain("Type 'string' is not assignable to type 'number'");
    expect(failed).toBe(true);
  });

  test('make check fails on a generated file that is out of date', () => {
    writeTemporarily('packages/testbed/manifests/multus-crds.yaml', 'edited: by hand\n');
    const { failed, output } = make('generated');
    expect(output).toContain(
      'packages/testbed/manifests/multus-crds.yaml is out of date; run `make generate`',
    );
    expect(failed).toBe(true);
  });

  test('make check fails on an entry of package-lock.json that npm cannot verify', () => {
    const entry = { version: '1.0.0', integrity: 'sha512-eA==' };
    writeLock({
      '': { dependencies: { a: '1.0.0' }, optionalDependencies: { 'b-darwin-arm64': '1.0.0' } },
      'node_modules/a': { ...entry, dependencies: { c: '1.0.0', d: '1.0.0' } },
      'node_modules/a/node_modules/c': { version: '1.0.0', optional: true },
      'node_modules/d': {
        ...entry,
        resolved: 'https://registry.example/d-1.0.0.tgz',
        hasInstallScript: true,
      },
      'node_modules/own': { resolved: 'packages/own', link: true },
      'packages/own': { devDependencies: { own: '*', d: '^1.0.0' } },
    });
    const { failed, output } = make('locked');
    expect(output.match(/^package-lock.*/gm)).toEqual([
      'package-lock.json: package.json depends on b-darwin-arm64, which is missing; pin a version that the registry has for every platform, then run `make lock`',
      'package-lock.json: node_modules/a/node_modules/c has no sha512 integrity hash, so npm installs it unverified; pin a version that the registry has for every platform, then run `make lock`',
      'package-lock.json: node_modules/d has the URL https://registry.example/d-1.0.0.tgz; remove it with `make lock`',
      'package-lock.json: node_modules/d has an install script; review it and add the package to allowScripts in package.json',
      'package-lock.json: packages/own depends on d ^1.0.0; pin a version that the registry has for every platform, then run `make lock`',
    ]);
    expect(failed).toBe(true);
  });

  test('make check fails on a shipped package with a copyleft licence', () => {
    const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
    lock.packages['node_modules/yaml'].license = 'GPL-3.0-only';
    writeLock(lock.packages);
    const { failed, output } = make('licensed');
    expect(output).toMatch(/^yaml \S+ has the licence "GPL-3.0-only", which is not known to be permissive/m);
    expect(failed).toBe(true);
  });

  test('make check fails on an API page that is out of date', () => {
    writeTemporarily('docs/api.md', '# API\n');
    const { failed, output } = make('generated-api');
    expect(output).toContain('docs/api.md is out of date; run `make generate`');
    expect(failed).toBe(true);
  });
});

test.each(['types', 'lint', 'arrows', 'exports', 'ambient', 'unused', 'locked', 'licensed'])(
  'the check %s passes on the unmodified repository',
  (target) => {
    expect(make(target)).toMatchObject({ failed: false });
  },
);

test('make check runs every check that has a test in this file', () => {
  const { stdout } = spawnSync('make', ['--dry-run', 'check'], { cwd: copy, encoding: 'utf8' });
  for (const command of [
    'tsc',
    'biome check',
    'arrows.ts',
    'exports.ts',
    'ambient.ts',
    'knip',
    'lock/check.mjs',
    'licences-main.ts',
    '--check',
  ])
    expect(stdout).toContain(command);
});
