import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '@vmwright/core';
import { EnvHttpProxyAgent, fetch } from 'undici';
import { run } from '../process/run.ts';
import type { Bundle, Platform, Program, Release } from './catalog.ts';
import { ProgressLine } from './progress.ts';

export interface ReleaseOptions {
  readonly platform: Platform;
  /** Base URL of a mirror that serves upstream's files under `<mirror>/<host>/<path>`. */
  readonly mirror?: string | undefined;
}

/** Returns whether upstream publishes every program of the bundle for the platform. */
export function isReleased(bundle: Bundle, platform: Platform): boolean {
  return [...bundle.programs.keys()].every((program) => bundle.release?.(program, platform) !== undefined);
}

/** Downloads the programs of a bundle into `folder` and verifies each against the checksum that upstream publishes. */
export async function download(bundle: Bundle, folder: string, options: ReleaseOptions): Promise<void> {
  const web = new Web(options.mirror);
  try {
    for (const program of bundle.programs.keys()) {
      const release = bundle.release?.(program, options.platform);
      if (release === undefined) throw new Error(`no release of ${program} for this platform`);
      await downloadProgram(web, bundle, program, release, join(folder, program));
    }
  } finally {
    await web.close();
  }
}

async function downloadProgram(web: Web, bundle: Bundle, program: Program, release: Release, target: string) {
  const expected = release.checksum.read(await web.text(release.checksum.url));
  if (expected === undefined) throw new Error(`${release.checksum.url} has no checksum for ${program}`);
  const file = `${target}.download`;
  {
    using line = new ProgressLine(`downloading ${program} ${bundle.version}`);
    await web.save(release.url, file, (bytes, total) => {
      line.detail = `${megabytes(bytes)}${total === undefined ? '' : ` of ${megabytes(total)}`} MB`;
    });
  }
  const actual = await sha256Of(file);
  if (actual !== expected) {
    throw new Error(
      `${release.url} has SHA-256 ${actual} instead of the published ${expected}; the download was discarded`,
    );
  }
  if (release.member === undefined) await rename(file, target);
  else await extract(file, release.member, target);
  await chmod(target, 0o755);
}

async function extract(archive: string, member: string, target: string): Promise<void> {
  const folder = dirname(archive);
  await run('tar', ['-xzf', archive, '-C', folder, member]);
  const [top = member] = member.split('/');
  await rename(join(folder, member), `${target}.extracted`);
  await rm(join(folder, top), { recursive: true, force: true });
  await rename(`${target}.extracted`, target);
  await rm(archive);
}

/** HTTP client for downloads that honours proxies and the mirror. */
export class Web {
  readonly #agent = new EnvHttpProxyAgent({
    connect: { timeout: 5_000 },
    headersTimeout: 15_000,
    bodyTimeout: 30_000,
  });
  readonly #mirror: string | undefined;

  constructor(mirror: string | undefined) {
    this.#mirror = mirror?.replace(/\/+$/, '');
  }

  async text(url: string): Promise<string> {
    return (await this.#get(url)).text();
  }

  async save(
    url: string,
    file: string,
    onProgress: (bytes: number, total: number | undefined) => void,
  ): Promise<void> {
    const response = await this.#get(url);
    if (response.body === null) throw new Error(`${url} returned no body`);
    const length = response.headers.get('content-length');
    const total = length === null ? undefined : Number(length);
    let bytes = 0;
    const body = Readable.fromWeb(response.body).on('data', (chunk: Uint8Array) => {
      bytes += chunk.byteLength;
      onProgress(bytes, total);
    });
    await pipeline(body, createWriteStream(file));
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  async #get(url: string) {
    const { host, pathname } = new URL(url);
    const address = this.#mirror === undefined ? url : `${this.#mirror}/${host}${pathname}`;
    const response = await fetch(address, { dispatcher: this.#agent }).catch((error) => {
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
      throw new Error(`${address}: ${messageOf(cause)}`, { cause: error });
    });
    if (!response.ok) throw new Error(`${address} returned status ${response.status}`);
    return response;
  }
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
