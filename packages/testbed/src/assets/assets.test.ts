import { type ChildProcessWithoutNullStreams, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { basename, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { field } from '../kubernetes/api.ts';
import { freePort } from '../process/ports.ts';
import { temporaryFolder } from '../process/run-supervisor.ts';
import { until } from '../process/until.ts';
import { Assets } from './assets.ts';
import { toolsFolder } from './cache.ts';
import { bundles } from './catalog.ts';

const platform = { os: 'linux', arch: 'amd64' } as const;
const PROGRAM = '#!/bin/sh\necho a program\n';
const TOXIPROXY = '/github.com/Shopify/toxiproxy/releases/download/v2.12.0';
const FILE = `${TOXIPROXY}/toxiproxy-server-linux-amd64`;

async function folder(): Promise<string> {
  const path = await temporaryFolder('assets-test');
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Starts a mirror of the upstream servers that records the requested paths. */
async function startMirror(
  contentOf: (path: string) => string | Buffer | undefined,
  serve?: RequestListener,
) {
  const requested: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    requested.push(path);
    const body = contentOf(path);
    if (body === undefined) response.writeHead(404).end();
    else if (serve !== undefined && path === FILE) serve(request, response);
    else response.end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${field(server.address(), 'port')}`, requested };
}

function upstream(program: string | Buffer, checksum = createHash('sha256').update(program).digest('hex')) {
  return (path: string) => {
    if (path === FILE) return program;
    return path === `${TOXIPROXY}/checksums.txt` ? `${checksum}  toxiproxy-server-linux-amd64\n` : undefined;
  };
}

/** A PATH without Go. */
const NO_GO = '/nowhere';

describe('a program is resolved', () => {
  for (const variable of ['VMWRIGHT_ASSETS', 'KUBEBUILDER_ASSETS']) {
    test(`a program in the folder that ${variable} names has precedence over every other source`, async () => {
      const own = await folder();
      writeFileSync(join(own, 'etcd'), PROGRAM, { mode: 0o755 });
      const assets = new Assets({ env: { [variable]: own, XDG_CACHE_HOME: await folder() }, platform });
      expect(await assets.path('etcd')).toBe(join(own, 'etcd'));
    });
  }

  test('a program is downloaded from a release once, and then taken from the cache', async () => {
    const mirror = await startMirror(upstream(PROGRAM));
    const env = { XDG_CACHE_HOME: await folder(), VMWRIGHT_MIRROR: mirror.url, PATH: NO_GO };
    const path = await new Assets({ env, platform }).path('toxiproxy-server');
    expect(execFileSync(path, { encoding: 'utf8' })).toBe('a program\n');
    const { length } = mirror.requested;
    expect(await new Assets({ env, platform }).path('toxiproxy-server')).toBe(path);
    expect(mirror.requested).toHaveLength(length);
  });

  test('a program is extracted from a release that is an archive', async () => {
    const name = 'etcd-v3.6.5-linux-amd64';
    const work = await folder();
    mkdirSync(join(work, name));
    writeFileSync(join(work, name, 'etcd'), PROGRAM, { mode: 0o755 });
    const archive = execFileSync('tar', ['-czf', '-', '-C', work, name]);
    const sum = createHash('sha256').update(archive).digest('hex');
    const base = '/github.com/etcd-io/etcd/releases/download/v3.6.5';
    const mirror = await startMirror((path) => {
      if (path === `${base}/SHA256SUMS`) return `${'0'.repeat(64)}  other.tar.gz\n${sum}  ${name}.tar.gz\n`;
      return path === `${base}/${name}.tar.gz` ? archive : undefined;
    });
    const env = { ...process.env, XDG_CACHE_HOME: await folder(), VMWRIGHT_MIRROR: mirror.url };
    const path = await new Assets({ env, platform }).path('etcd');
    expect(execFileSync(path, { encoding: 'utf8' })).toBe('a program\n');
    expect(readdirSync(dirname(path))).toEqual(['etcd']);
  });

  test('a program is built from the pinned Go module if there is no release', async () => {
    // Sets GOCACHE to its usual folder. The default folder would be below the empty XDG_CACHE_HOME of this test, so Go
    // would compile all packages again.
    const GOCACHE = execFileSync('go', ['env', 'GOCACHE'], { encoding: 'utf8' }).trim();
    const path = await new Assets({ env: { ...process.env, XDG_CACHE_HOME: await folder(), GOCACHE } }).path(
      'vcsim',
    );
    expect(readdirSync(dirname(path))).toEqual(['vcsim']);
    expect(spawnSync(path, ['-help'], { encoding: 'utf8' }).stderr).toContain('-control');
  });
});

describe('the error for an unavailable program lists why each source failed, and names the remedy', () => {
  test('a program is unavailable when upstream is unreachable and Go is missing', async () => {
    const cache = await folder();
    const VMWRIGHT_MIRROR = `http://127.0.0.1:${await freePort()}`;
    const env = { XDG_CACHE_HOME: cache, VMWRIGHT_MIRROR, PATH: NO_GO };
    const error = await new Assets({ env, platform }).path('kube-apiserver').catch(String);
    expect(error).toContain('kube-apiserver 1.35.4 is not available:');
    expect(error).toContain('environment: KUBEBUILDER_ASSETS is not set');
    expect(error).toContain(`cache: not in ${cache}`);
    expect(error).toMatch(/release: .*dl\.k8s\.io.*ECONNREFUSED/);
    expect(error).toContain('source: Go is not installed');
    expect(error).toContain(
      'set VMWRIGHT_ASSETS to a folder that contains kube-apiserver, kube-controller-manager',
    );
  });

  test('a program is unavailable when the checksum of a download is wrong', async () => {
    const mirror = await startMirror(upstream(PROGRAM, 'a'.repeat(64)));
    const cache = await folder();
    const env = { XDG_CACHE_HOME: cache, VMWRIGHT_MIRROR: mirror.url, PATH: NO_GO };
    const error = await new Assets({ env, platform }).path('toxiproxy-server').catch(String);
    expect(error).toMatch(
      /release: .* has SHA-256 [0-9a-f]{64} instead of the published a{64}; the download was discarded/,
    );
    expect(foldersIn(cache)).toEqual([]);
  });

  test('a program is unavailable when no release exists for the platform', async () => {
    const env = { XDG_CACHE_HOME: await folder(), PATH: NO_GO };
    const assets = new Assets({ env, platform: { os: 'darwin', arch: 'arm64' } });
    await expect(assets.path('kube-scheduler')).rejects.toThrow(
      'upstream publishes no kubernetes for darwin-arm64',
    );
    await expect(assets.path('virt-api')).rejects.toThrow('upstream publishes no kubevirt for darwin-arm64');
  });

  test('a program is unavailable when the cache folder is not writable', async () => {
    const file = join(await folder(), 'file');
    writeFileSync(file, '');
    const assets = new Assets({ env: { XDG_CACHE_HOME: file, PATH: NO_GO }, platform });
    await expect(assets.path('kwok')).rejects.toThrow(
      /the cache folder .* cannot be used: .*file is a file \(EEXIST\); .* set XDG_CACHE_HOME to another folder/,
    );
  });

  test('a program is unavailable when the disk is full', async () => {
    process.env.VMWRIGHT_MIN_FREE_MB = String(Number.MAX_SAFE_INTEGER);
    onTestFinished(() => void delete process.env.VMWRIGHT_MIN_FREE_MB);
    const assets = new Assets({ env: { XDG_CACHE_HOME: await folder(), PATH: NO_GO }, platform });
    await expect(assets.path('kwok')).rejects.toThrow(
      /has \d+ MB free, .* set XDG_CACHE_HOME to a folder on another disk/,
    );
  });

  test('a program is unavailable when the Go build fails', async () => {
    const bin = await folder();
    writeFileSync(
      join(bin, 'go'),
      '#!/bin/sh\n[ "$1" = version ] && exit 0\necho no space left on device >&2\nexit 1\n',
      {
        mode: 0o755,
      },
    );
    const env = { XDG_CACHE_HOME: await folder(), PATH: `${bin}:/bin:/usr/bin` };
    await expect(new Assets({ env, platform }).path('vcsim')).rejects.toThrow(
      'source: `go build` in tools/vcsim failed: no space left on device',
    );
  });
});

test('a failed download leaves no files next to the program that is built instead', async () => {
  const mirror = await startMirror(upstream(PROGRAM, 'a'.repeat(64)));
  const bin = await folder();
  const go = `#!/bin/sh\n[ "$1" = version ] && exit 0\nwhile [ "$1" != -o ]; do shift; done\necho built > "$2"\n`;
  writeFileSync(join(bin, 'go'), go, { mode: 0o755 });
  const env = { XDG_CACHE_HOME: await folder(), VMWRIGHT_MIRROR: mirror.url, PATH: `${bin}:/bin:/usr/bin` };
  const path = await new Assets({ env, platform }).path('toxiproxy-server');
  expect(readdirSync(dirname(path))).toEqual(['toxiproxy-server']);
});

describe('concurrent runs', () => {
  test('concurrent runs download a program only once', async () => {
    const release = Promise.withResolvers<void>();
    const mirror = await startMirror(upstream(PROGRAM), (_, response) => {
      void release.promise.then(() => response.end(PROGRAM));
    });
    const env = { XDG_CACHE_HOME: await folder(), VMWRIGHT_MIRROR: mirror.url, PATH: NO_GO };
    const first = startResolve(env);
    await waitForOutput(first, 'downloading toxiproxy-server');
    const second = startResolve(env);
    await waitForOutput(second, 'waiting for another run');
    release.resolve();
    const paths = await Promise.all([first, second].map(({ stdout }) => text(stdout)));
    expect(paths[0]).toMatch(/toxiproxy-server\n$/);
    expect(paths[1]).toBe(paths[0]);
    expect(mirror.requested.filter((path) => path === FILE)).toHaveLength(1);
  });

  test('after a run was killed during a download, the next run does not wait and does not use the partial download', async () => {
    let complete = false;
    const mirror = await startMirror(upstream(PROGRAM), (_, response) => {
      if (complete) response.end(PROGRAM);
      else response.writeHead(200, { 'content-length': PROGRAM.length }).write(PROGRAM.slice(0, 10));
    });
    const cache = await folder();
    const env = { XDG_CACHE_HOME: cache, VMWRIGHT_MIRROR: mirror.url, PATH: NO_GO };
    const killed = startResolve(env);
    await waitForOutput(killed, 'downloading toxiproxy-server');
    killed.kill('SIGKILL');
    await once(killed, 'exit');
    await until(async () => foldersIn(cache).length === 0, { what: 'the partial download is removed' });
    mkdirSync(join(cache, 'vmwright', 'assets', 'toxiproxy.partial-1')); // left by a run that was killed with its supervisor

    complete = true;
    const path = (await text(startResolve(env).stdout)).trim();
    expect(execFileSync(path, { encoding: 'utf8' })).toBe('a program\n');
    expect(foldersIn(cache)).toEqual([basename(dirname(path))]);
  });
});

test('the catalog of programs has the versions that the go.mod files pin', () => {
  const modules = {
    etcd: 'go.etcd.io/etcd/server/v3',
    kubernetes: 'k8s.io/kubernetes',
    kwok: 'sigs.k8s.io/kwok',
    kubevirt: 'kubevirt.io/kubevirt',
    vcsim: 'github.com/vmware/govmomi',
    lua: 'github.com/yuin/gopher-lua',
    toxiproxy: 'github.com/Shopify/toxiproxy/v2',
    promtool: 'github.com/prometheus/prometheus',
    helm: 'helm.sh/helm/v3',
  };
  const pinned = Object.entries(modules).map(([name, module]) => {
    const gomod = readFileSync(join(toolsFolder, name, 'go.mod'), 'utf8');
    return [name, new RegExp(`\\b${RegExp.escape(module)} v(\\S+)`).exec(gomod)?.[1]];
  });
  expect(Object.fromEntries(bundles.map(({ name, version }) => [name, version]))).toEqual(
    Object.fromEntries(pinned),
  );
});

function foldersIn(cacheHome: string): string[] {
  const entries = readdirSync(join(cacheHome, 'vmwright', 'assets'), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Starts a process that resolves toxiproxy-server. */
function startResolve(env: Record<string, string>): ChildProcessWithoutNullStreams {
  const script = fileURLToPath(new URL('../../test/resolve.ts', import.meta.url));
  const child = spawn(process.execPath, [script, 'toxiproxy-server'], { env });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** Waits until a process has written the text to standard error. */
async function waitForOutput(child: ChildProcessWithoutNullStreams, expected: string): Promise<void> {
  let output = '';
  for await (const chunk of child.stderr.iterator({ destroyOnReturn: false })) {
    output += String(chunk);
    if (output.includes(expected)) return;
  }
  throw new Error(`the process exited without printing "${expected}": ${output}`);
}
