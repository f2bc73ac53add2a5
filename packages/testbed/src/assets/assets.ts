import { access, constants, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '@vmwright/core';
import { TestbedError, type TestbedErrorCode } from '../errors.ts';
import { build } from './build.ts';
import { AssetCache, defaultCacheRoot } from './cache.ts';
import { type Bundle, bundleOf, type Platform, type Program } from './catalog.ts';
import { download, isReleased } from './release.ts';

/** Environment variables that name a folder with programs. The second is also used by controller-runtime's envtest. */
const FOLDER_VARIABLES = ['VMWRIGHT_ASSETS', 'KUBEBUILDER_ASSETS'] as const;

export interface AssetsOptions {
  /** @default process.env */
  readonly env?: NodeJS.ProcessEnv;
  /** @default the current platform */
  readonly platform?: Platform;
}

/**
 * Resolves the testbed's programs. Sources, in this order: a folder named by the environment, the cache, an upstream
 * release (checksum verified), a build from source. If all fail, the error lists the reason for each.
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

  /**
   * Returns the path of a program. Downloads or builds it if needed, which can take minutes; progress goes to stderr.
   */
  async path(program: Program): Promise<string> {
    const reasons: string[] = [];
    const provided = await this.#fromEnvironment(program, reasons);
    if (provided !== undefined) return provided;
    const bundle = bundleOf(program);
    if (!(await this.#cache.has(bundle))) await this.#fillCache(bundle, program, reasons);
    return join(await this.#cache.folder(bundle), program);
  }

  async #fromEnvironment(program: Program, reasons: string[]): Promise<string | undefined> {
    for (const variable of FOLDER_VARIABLES) {
      const folder = this.#env[variable];
      if (!folder) {
        reasons.push(`environment: ${variable} is not set`);
        continue;
      }
      const path = join(folder, program);
      if (await isExecutable(path)) return path;
      reasons.push(`environment: ${variable} is set, but ${path} is not executable`);
    }
    return undefined;
  }

  async #fillCache(bundle: Bundle, program: Program, reasons: string[]): Promise<void> {
    reasons.push(`cache: not in ${this.#cache.root}`);
    // Printed immediately, because it can take a while until a download shows progress.
    process.stderr.write(
      `${bundle.name} ${bundle.version} is not in ${this.#cache.root}; downloading or building it\n`,
    );
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
      process.stderr.write(
        `waiting for another run that downloads or builds ${bundle.name} ${bundle.version}\n`,
      );
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
    `${program} ${bundle.version} is not available:\n${tried}\n` +
      'To fix this, do one of: install Go and make its module proxy reachable; connect to the internet to download the release; ' +
      `set VMWRIGHT_ASSETS to a folder that contains ${[...bundle.programs.keys()].join(', ')}.`,
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

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
