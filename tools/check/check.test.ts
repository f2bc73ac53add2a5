import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** A copy of what git has here, in which things can be broken. */
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
      continue; // large, and no business of these checks
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file), { preserveTimestamps: true });
  }
  linkModules();
  execFileSync('git', ['init', '-q'], { cwd: copy }); // Biome and knip ask git what to pass over
});

/** Those of others are the real ones; our own packages are the copy's, or types of both would meet. */
function linkModules(): void {
  const [from, to] = [join(root, 'node_modules'), join(copy, 'node_modules')];
  mkdirSync(join(to, '@vmwright'), { recursive: true });
  for (const name of readdirSync(from))
    if (name !== '@vmwright') symlinkSync(join(from, name), join(to, name));
  for (const name of readdirSync(join(from, '@vmwright')))
    symlinkSync(join(copy, 'packages', name), join(to, '@vmwright', name));
}

afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** Writes a file into the copy for this test. */
function plant(file: string, text: string): void {
  const path = join(copy, file);
  const existed = existsSync(path);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  onTestFinished(() =>
    existed ? cpSync(join(root, file), path, { preserveTimestamps: true }) : rmSync(path),
  );
}

function plantLock(packages: Readonly<Record<string, object>>): void {
  plant('package-lock.json', JSON.stringify({ lockfileVersion: 3, packages }));
}

function make(target: string): { readonly failed: boolean; readonly said: string } {
  const { MAKEFLAGS, MAKELEVEL, ...env } = process.env; // else it takes itself for a part of `make test`
  // `-o`: never install in the copy, whose node_modules are links to the real ones.
  const args = ['-o', 'node_modules/.package-lock.json', target];
  const { status, stdout, stderr } = spawnSync('make', args, { cwd: copy, encoding: 'utf8', env });
  return { failed: status !== 0, said: stdout + stderr };
}

describe('make check fails on', () => {
  test('a circular import', () => {
    plant('packages/cloud/src/a.ts', "import { b } from './b.ts';\n\nexport const a = (): number => b();\n");
    plant('packages/cloud/src/b.ts', "import { a } from './a.ts';\n\nexport const b = (): number => a();\n");
    const { failed, said } = make('lint');
    expect(said).toMatch(/noImportCycles/);
    expect(failed).toBe(true);
  });

  test('an import against the arrows between packages', () => {
    plant('packages/runtime/src/a.ts', "import '@vmwright/operator';\n");
    const { failed, said } = make('arrows');
    expect(said).toContain('packages/runtime/src/a.ts imports @vmwright/operator: runtime may import core');
    expect(failed).toBe(true);
  });

  test('the testbed in what is shipped, though not in a test', () => {
    plant('packages/operator/src/a.test.ts', "import '@vmwright/testbed';\n");
    expect(make('arrows')).toEqual({ failed: false, said: '' });
    plant('packages/operator/src/a.ts', "export * from '@vmwright/testbed';\n");
    const { failed, said } = make('arrows');
    expect(said).toContain(
      'packages/operator/src/a.ts imports @vmwright/testbed: operator may import core, runtime, vsphere, cloud',
    );
    expect(failed).toBe(true);
  });

  test('a dynamic import against the arrows', () => {
    plant('packages/vsphere/src/a.ts', "await import('@vmwright/runtime');\n");
    expect(make('arrows').said).toContain('packages/vsphere/src/a.ts imports @vmwright/runtime');
  });

  test('a path into another package', () => {
    plant('packages/cloud/src/a.ts', "import '../../runtime/src/index.ts';\n");
    const { failed, said } = make('arrows');
    expect(said).toContain('packages/cloud/src/a.ts reaches into packages/runtime/src/index.ts');
    expect(failed).toBe(true);
  });

  test('a public signature with a type that the index does not export', () => {
    plant(
      'packages/cloud/src/index.ts',
      "export { type Options, create, type Handle } from './a.ts';\nexport * as shapes from './b.ts';\n",
    );
    plant(
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
    plant(
      'packages/cloud/src/b.ts',
      'export interface Shape { readonly parts: readonly Part[] }\ntype Part = 1;\n',
    );
    plant('packages/cloud/src/c.ts', 'export type Imported = string;\n');
    const { failed, said } = make('exports');
    expect(said.match(/^packages.*/gm)).toEqual([
      'packages/cloud/src/a.ts: Base is in the signature of Options; export it from packages/cloud/src/index.ts',
      'packages/cloud/src/a.ts: Hidden is in the signature of Options; export it from packages/cloud/src/index.ts',
      'packages/cloud/src/b.ts: Part is in the signature of Shape; export it from packages/cloud/src/index.ts',
      'packages/cloud/src/c.ts: Imported is in the signature of create; export it from packages/cloud/src/index.ts',
    ]);
    expect(failed).toBe(true);
  });

  test('a clock, a timer or a connection that is not taken from the World', () => {
    plant(
      'packages/runtime/src/a.ts',
      "import 'node:timers/promises';\nimport 'undici/lib/dispatcher/pool.js';\nexport const a = () => Date.now() + Number(new Date());\n",
    );
    plant('packages/operator/src/a.ts', 'setTimeout(() => fetch(`x`), new Date(0).getTime());\n');
    const { failed, said } = make('ambient');
    expect(said.match(/^packages.*/gm)?.sort()).toEqual([
      'packages/operator/src/a.ts:1 uses fetch; take it from the World that is passed in',
      'packages/operator/src/a.ts:1 uses setTimeout; take it from the World that is passed in',
      'packages/runtime/src/a.ts:1 uses node:timers/promises; take it from the World that is passed in',
      'packages/runtime/src/a.ts:2 uses undici/lib/dispatcher/pool.js; take it from the World that is passed in',
      'packages/runtime/src/a.ts:3 uses Date.now; take it from the World that is passed in',
      'packages/runtime/src/a.ts:3 uses new Date(); take it from the World that is passed in',
    ]);
    expect(failed).toBe(true);
  });

  test('a signal that leaves something on its sources', () => {
    plant(
      'packages/operator/src/a.ts',
      'export const a = (...each: AbortSignal[]) => AbortSignal.any(each);\n',
    );
    const { failed, said } = make('ambient');
    expect(said).toContain('packages/operator/src/a.ts:1 uses AbortSignal.any; it leaks');
    expect(failed).toBe(true);
  });

  test('an unused export', () => {
    plant('packages/cloud/src/index.ts', "export { used } from './a.ts';\n");
    plant('packages/cloud/src/a.ts', 'export const used = 1;\nexport const idle = 2;\n');
    const { failed, said } = make('unused');
    expect(said).toMatch(/Unused exports.*\nidle +packages\/cloud\/src\/a\.ts/);
    expect(failed).toBe(true);
  });

  test('a file that nothing uses', () => {
    plant('packages/cloud/src/lonely.ts', 'export const lonely = 1;\n');
    const { failed, said } = make('unused');
    expect(said).toMatch(/Unused files.*\npackages\/cloud\/src\/lonely\.ts/);
    expect(failed).toBe(true);
  });

  test('an unformatted file', () => {
    plant('packages/cloud/src/index.ts', 'export const  a = "1"\n');
    const { failed, said } = make('lint');
    expect(said).toContain('packages/cloud/src/index.ts format');
    expect(failed).toBe(true);
  });

  test('a wrong type', () => {
    plant('packages/cloud/src/index.ts', "export const a: number = '1';\n");
    const { failed, said } = make('types');
    expect(said).toContain("Type 'string' is not assignable to type 'number'");
    expect(failed).toBe(true);
  });

  test('a generated file that is not what would be generated', () => {
    plant('packages/testbed/manifests/multus-crds.yaml', 'edited: by hand\n');
    const { failed, said } = make('generated');
    expect(said).toContain('packages/testbed/manifests/multus-crds.yaml is not what `make generate` writes');
    expect(failed).toBe(true);
  });

  test('a lock entry that npm cannot verify', () => {
    const entry = { version: '1.0.0', integrity: 'sha512-eA==' };
    plantLock({
      '': { dependencies: { a: '1.0.0' }, optionalDependencies: { 'b-darwin-arm64': '1.0.0' } },
      'node_modules/a': { ...entry, dependencies: { c: '1.0.0', d: '1.0.0' } },
      'node_modules/a/node_modules/c': { version: '1.0.0', optional: true },
      'node_modules/d': {
        ...entry,
        resolved: 'https://registry.example/d-1.0.0.tgz',
        hasInstallScript: true,
      },
      'node_modules/own': { resolved: 'packages/own', link: true },
    });
    const { failed, said } = make('locked');
    expect(said.match(/^package-lock.*/gm)).toEqual([
      'package-lock.json: package.json needs b-darwin-arm64, which the lock lacks; pin a version that the registry has for every platform, then run `make lock`',
      'package-lock.json: node_modules/a/node_modules/c has no sha512 integrity hash, so npm installs it unverified; pin a version that the registry has for every platform, then run `make lock`',
      'package-lock.json: node_modules/d is bound to https://registry.example/d-1.0.0.tgz; run `make lock`',
      'package-lock.json: node_modules/d runs a script at installation; review it and add it to allowScripts in package.json',
    ]);
    expect(failed).toBe(true);
  });

  test('an API page that is older than the source', () => {
    plant('docs/api.md', '# API\n');
    const { failed, said } = make('generated-api');
    expect(said).toContain('docs/api.md is not what `make generate` writes');
    expect(failed).toBe(true);
  });
});

test('make check passes without any of these', () => {
  for (const target of ['types', 'lint', 'arrows', 'exports', 'ambient', 'unused', 'locked'])
    expect(make(target)).toMatchObject({ failed: false });
});

test('make check runs every one of these checks', () => {
  const { stdout } = spawnSync('make', ['--dry-run', 'check'], { cwd: copy, encoding: 'utf8' });
  for (const command of [
    'tsc',
    'biome check',
    'arrows.ts',
    'exports.ts',
    'ambient.ts',
    'knip',
    'lock/check.mjs',
    '--check',
  ])
    expect(stdout).toContain(command);
});
