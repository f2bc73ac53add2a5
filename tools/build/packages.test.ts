import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Cluster, field, freePort, temporaryFolder } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest';
import { shipped } from '../supply/shipped.ts';
import { build } from './build.ts';
import { pack } from './pack.ts';
import { PACKAGES, type PackageName } from './package-names.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const GREETER = readFileSync(join(ROOT, 'packages/runtime/examples/greeter.ts'), 'utf8');
const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

let folder: string;
let tarballs: Record<PackageName, string>;

beforeAll(async () => {
  folder = await temporaryFolder('packages');
  await build(folder);
  tarballs = pack(folder, join(folder, 'tarballs'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Environment like a user's, without `NODE_OPTIONS`. `PATH` has the running Node, but no folder in `node_modules`. */
function environment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS, PATH = '', ...env } = process.env;
  const others = PATH.split(delimiter).filter((path) => !path.includes('node_modules'));
  return { ...env, PATH: [dirname(process.execPath), ...others].join(delimiter) };
}

async function run(cwd: string, command: string, ...args: readonly string[]): Promise<string> {
  const options = { cwd, env: environment(), maxBuffer: 16 * 1024 * 1024 };
  try {
    return (await promisify(execFile)(command, args, options)).stdout;
  } catch (error) {
    const output = field(error, 'stdout'); // tsc writes its errors to stdout
    throw new Error(`${command} ${args.join(' ')} failed:\n${output}`, { cause: error });
  }
}

/** Creates an empty project and installs packages in it. */
async function project(name: string, packages: readonly string[]): Promise<string> {
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(join(path, 'package.json'), JSON.stringify({ name, private: true, type: 'module' }));
  await run(path, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', ...packages);
  return path;
}

/** Runs the greeter example with the installed packages until the greeter has set the status of a Greeting. */
async function greet(cluster: Cluster, path: string, file: string, group: string): Promise<void> {
  await using namespace = await cluster.namespace('packages');
  const crd = `greetings.${group}`;
  await cluster.apply(await run(path, process.execPath, file, 'crd'));
  onTestFinished(async () => void (await cluster.kubectl(['delete', 'crd', crd])));
  await cluster.kubectl(['wait', '--for=condition=Established', `crd/${crd}`]);
  const env = { ...environment(), KUBECONFIG: cluster.kubeconfig };
  const program = spawn(process.execPath, [file], { cwd: path, env, stdio: ['ignore', 'ignore', 'inherit'] });
  onTestFinished(() => void program.kill('SIGKILL'));
  const exited = once(program, 'exit');
  const greeting = {
    apiVersion: `${group}/v1`,
    kind: 'Greeting',
    metadata: { name: 'first', namespace: namespace.name },
    spec: { name: 'World' },
  };
  await cluster.apply(JSON.stringify(greeting));
  const url = `/apis/${group}/v1/namespaces/${namespace.name}/greetings/first`;
  await cluster.waitFor(url, (object) => field(object, 'status', 'text') === 'Hello, World!');
  program.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
}

/** Returns the greeter with another group and Lease, because the cluster is shared with the example's own test. */
function greeter(group: string): string {
  return GREETER.replace('example.vmwright.dev', group).replace(
    `election: { name: 'greeter' }`,
    `election: { name: '${group}' }`,
  );
}

describe('packed packages', () => {
  test.for(PACKAGES)('%s has types, README, licence and exact dependencies, and no tests', (name) => {
    const files = execFileSync('tar', ['-tzf', tarballs[name]], { encoding: 'utf8' }).trim().split('\n');
    expect(files).toEqual(
      expect.arrayContaining(['package/README.md', 'package/LICENSE', 'package/lib/index.d.ts']),
    );
    expect(files.filter((file) => /\.test\.|\/(test|src|examples)\/|(?<!\.d)\.ts$/.test(file))).toEqual([]);
    const path = join(folder, name, 'dist');
    const manifest = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({ license: 'Apache-2.0', engines: { node: '>=24' } });
    expect(manifest).not.toHaveProperty('devDependencies');
    for (const version of Object.values(manifest.dependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(
      importedPackages(join(path, 'lib')).difference(new Set(Object.keys(manifest.dependencies))),
    ).toEqual(new Set());
  });

  test('the packed operator contains the licences of the packages in its bundles', () => {
    const notices = readFileSync(join(folder, 'operator/dist/bin/NOTICES.txt'), 'utf8');
    for (const name of ['undici', 'pg', 'yaml', '@opentelemetry/sdk-trace'])
      expect(notices).toMatch(new RegExp(`^${name} \\d`, 'm'));
    expect(notices).toContain('Permission is hereby granted, free of charge');
  });
});

/** Returns the names of the packages that the compiled files and declarations of a folder import. */
function importedPackages(path: string): Set<string> {
  const names = new Set<string>();
  for (const file of globSync('**/*.{js,d.ts}', { cwd: path })) {
    const code = readFileSync(join(path, file), 'utf8').replaceAll(/\/\*.*?\*\//gs, '');
    for (const [, specifier = ''] of code.matchAll(/(?:^|\s)(?:from|import)\s*\(?\s*['"]([^'"\n]+)['"]/g)) {
      if (specifier.startsWith('.') || specifier.startsWith('node:')) continue;
      names.add(
        specifier
          .split('/')
          .slice(0, specifier.startsWith('@') ? 2 : 1)
          .join('/'),
      );
    }
  }
  return names;
}

test('the greeter example runs with core and runtime in an empty JavaScript project', async ({ cluster }) => {
  const path = await project('javascript', [tarballs.core, tarballs.runtime]);
  expect(readdirSync(join(path, 'node_modules/@vmwright'))).toEqual(['core', 'runtime']);
  writeFileSync(join(path, 'greeter.js'), greeter('javascript.vmwright.dev'));
  await greet(cluster, path, 'greeter.js', 'javascript.vmwright.dev');
});

describe('in an empty TypeScript project', () => {
  let path: string;
  beforeAll(async () => {
    const tools = ['typescript', '@types/node'].map((name) => `${name}@${devDependencies[name]}`);
    path = await project('typescript', [...Object.values(tarballs), ...tools]);
  });

  test('npm installs the packages that the bill of materials lists, and no others', () => {
    const installed = JSON.parse(readFileSync(join(path, 'node_modules/.package-lock.json'), 'utf8'));
    const names = Object.keys(installed.packages).map((each) => each.replace(/^.*node_modules\//, ''));
    const own = names.filter((name) => !/^(typescript|@typescript\/.*|@types\/.*|undici-types)$/.test(name));
    expect(new Set(own)).toEqual(new Set(shipped().map(({ name }) => name)));
  });

  test('all packages pass the type check, and the greeter example runs', async ({ cluster }) => {
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2024',
      strict: true,
      types: ['node'],
      outDir: 'out',
    };
    writeFileSync(join(path, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
    writeFileSync(join(path, 'greeter.ts'), greeter('typescript.vmwright.dev'));
    for (const name of PACKAGES)
      for (const [index, [, code = '']] of [...readme(name).matchAll(/^```ts\n(.*?)^```$/gms)].entries())
        writeFileSync(join(path, `${name}-${index}.ts`), code);
    const modules = PACKAGES.flatMap((name) => exportsOf(name));
    const all = modules.map((module, index) => `export * as module${index} from '${module}';\n`);
    writeFileSync(join(path, 'all.ts'), all.join(''));
    await run(path, 'npx', 'tsc');
    await greet(cluster, path, 'out/greeter.js', 'typescript.vmwright.dev');
    await run(path, process.execPath, 'out/all.js');
  });

  test('the programs print their help', async () => {
    for (const program of ['vmwright', 'kubectl-vmwright'])
      expect(await run(path, 'npx', program, '--help')).toMatch(/^Usage: (kubectl )?vmwright /);
    expect(await run(path, 'npx', 'ssvirt-vm-controller', '--help')).toMatch(/^Usage: ssvirt-vm-controller /);
    expect(await run(path, 'npx', 'vmwright-cloud', '--help')).toMatch(/vmwright-cloud serve/);
  });

  test('vmwright manifests prints the CRDs, roles and webhooks of config/', async () => {
    const printed = await run(path, 'npx', 'vmwright', 'manifests');
    const files = globSync('config/{crd,rbac,webhook}/*.yaml', {
      cwd: ROOT,
      exclude: ['**/kustomization.yaml'],
    });
    const committed = files.map((file) => readFileSync(join(ROOT, file), 'utf8'));
    expect(documentsIn(printed)).toEqual(committed.flatMap(documentsIn).toSorted());
  });

  test('a program with an OTLP endpoint loads the OpenTelemetry SDK from its bundle', async ({ cluster }) => {
    const program = spawn(join(path, 'node_modules/.bin/ssvirt-vm-controller'), [], {
      cwd: path,
      env: {
        ...environment(),
        KUBECONFIG: cluster.kubeconfig,
        CONTROLLER_ENABLED: 'false',
        CONTROLLER_METRICS_ADDR: '127.0.0.1:0',
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    onTestFinished(() => void program.kill('SIGKILL'));
    const exited = once(program, 'exit');
    const lines: string[] = [];
    for await (const line of createInterface(program.stderr)) {
      lines.push(line);
      if (line.includes('waiting for a termination signal')) program.kill('SIGTERM');
    }
    expect(await exited).toEqual([0, null]);
    expect(lines.join('\n')).toContain('Sending traces to a collector');
  });

  test('vmwright-cloud serves until SIGTERM', async () => {
    writeFileSync(join(path, 'keys'), '3f9c1d7e5b8a4f60-for-the-operator\n');
    const port = await freePort();
    const args = ['serve', '--keys=keys', '--data=cloud.sqlite', `--listen=127.0.0.1:${port}`];
    const program = spawn(join(path, 'node_modules/.bin/vmwright-cloud'), args, {
      cwd: path,
      env: environment(),
      stdio: 'ignore',
    });
    onTestFinished(() => void program.kill('SIGKILL'));
    const exited = once(program, 'exit');
    await expect.poll(() => isReady(`http://127.0.0.1:${port}/readyz`)).toBe(true);
    program.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  });
});

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false; // the server does not listen yet
  }
}

function readme(name: PackageName): string {
  return readFileSync(join(folder, name, 'dist/README.md'), 'utf8');
}

/** Returns the specifiers of the modules that a package exports. */
function exportsOf(name: PackageName): readonly string[] {
  const manifest = JSON.parse(readFileSync(join(folder, name, 'dist/package.json'), 'utf8'));
  return Object.keys(manifest.exports)
    .filter((entry) => entry !== './package.json')
    .map((entry) => manifest.name + entry.slice(1));
}

/** Returns the documents of a YAML stream, sorted by their text, without the comments before them. */
function documentsIn(yaml: string): readonly string[] {
  return yaml
    .replaceAll(/^#.*\n/gm, '')
    .split('---\n')
    .map((document) => document.trim())
    .toSorted();
}
