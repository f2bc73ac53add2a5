import { access, constants, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '@vmwright/core';
import { TestbedError, type TestbedErrorCode } from '../errors.ts';
import { build } from './build.ts';
import { AssetCache, defaultCacheRoot } from './cache.ts';
import { type Bundle, bundleOf, type Platform, type Program } from './catalog.ts';
import { download, isReleased } from './release.ts';

/** Folders with programs of one's own, before anything else; the second is what Go's test tools use. */
const FOLDERS = ['VMWRIGHT_ASSETS', 'KUBEBUILDER_ASSETS'] as const;

export interface AssetsOptions {
  /** @default process.env */
  readonly env?: NodeJS.ProcessEnv;
  /** @default this machine's */
  readonly platform?: Platform;
}

/**
 * Finds the testbed's programs: in a folder named by the environment, in the cache, as a release of upstream (checksum
 * verified), or built from source. The first that has it wins; when none has, the error says why for each.
 */
export class Assets {
  readonly #env: NodeJS.ProcessEnv;
  readonly #platform: Platform;
  readonly #cache: AssetCache;

  constructor({ env = process.env, platform = thisPlatform() }: AssetsOptions = {}) {
    this.#env = env;
    this.#platform = platform;
    this.#cache = new AssetCache(defaultCacheRoot(env), platform);
  }

  /** The path of a program, made available if need be (which may take minutes, with progress on standard error). */
  async path(program: Program): Promise<string> {
    const reasons: string[] = [];
    const given = await this.#given(program, reasons);
    if (given !== undefined) return given;
    const bundle = bundleOf(program);
    if (!(await this.#cache.has(bundle))) await this.#make(bundle, program, reasons);
    return join(await this.#cache.folder(bundle), program);
  }

  async #given(program: Program, reasons: string[]): Promise<string | undefined> {
    for (const variable of FOLDERS) {
      const folder = this.#env[variable];
      if (!folder) {
        reasons.push(`environment: ${variable} is not set`);
        continue;
      }
      const path = join(folder, program);
      if (await executable(path)) return path;
      reasons.push(`environment: ${variable} is set, but ${path} is no program`);
    }
    return undefined;
  }

  async #make(bundle: Bundle, program: Program, reasons: string[]): Promise<void> {
    reasons.push(`cache: not in ${this.#cache.root}`);
    // At once: asking for a release can take a while before the first byte of it comes.
    process.stderr.write(`${bundle.name} ${bundle.version} is not in ${this.#cache.root}; getting it\n`);
    const make = async (folder: string) => {
      if (await this.#download(bundle, folder, reasons)) return;
      try {
        await build(bundle, folder, this.#env);
      } catch (error) {
        if (!(error instanceof TestbedError)) throw error;
        reasons.push(`source: ${error.message}`);
        throw unavailable(error.code, bundle, program, reasons);
      }
    };
    await this.#cache.fill(bundle, make, () => {
      process.stderr.write(`waiting for another run that makes ${bundle.name} ${bundle.version}\n`);
    });
  }

  async #download(bundle: Bundle, folder: string, reasons: string[]): Promise<boolean> {
    const mirror = this.#env.VMWRIGHT_MIRROR;
    if (!isReleased(bundle, this.#platform)) {
      const { os, arch } = this.#platform;
      reasons.push(`release: upstream publishes no ${bundle.name} for ${os}-${arch}`);
      return false;
    }
    try {
      await download(bundle, folder, { platform: this.#platform, mirror });
      return true;
    } catch (error) {
      reasons.push(`release: ${messageOf(error)}`);
      for (const file of await readdir(folder)) await rm(join(folder, file), { recursive: true });
      return false;
    }
  }
}

function unavailable(
  code: TestbedErrorCode,
  bundle: Bundle,
  program: Program,
  reasons: readonly string[],
): TestbedError {
  const tried = reasons.map((reason) => `  - ${reason}`).join('\n');
  return new TestbedError(
    code,
    `${program} ${bundle.version} is not to be had:\n${tried}\n` +
      'Do one of these: install Go and have its module proxy reachable; be online for the release; ' +
      `or set VMWRIGHT_ASSETS to a folder that holds ${[...bundle.programs.keys()].join(', ')}.`,
  );
}

function thisPlatform(): Platform {
  const os = process.platform;
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  if ((os !== 'linux' && os !== 'darwin') || (arch !== 'amd64' && arch !== 'arm64')) {
    throw new TestbedError(
      'ASSET_UNAVAILABLE',
      `the testbed runs on Linux and macOS (x64, arm64), not on ${os}-${arch}`,
    );
  }
  return { os, arch };
}

async function executable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
