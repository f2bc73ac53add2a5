import { copyFile, mkdir, readFile, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TestbedError } from '../errors.ts';
import { Keeper } from '../process/keeper.ts';
import { processIdentity } from '../process/process-identity.ts';
import { requireWritableFolder } from '../process/writable-folder.ts';

/** What `make up` publishes in its folder. */
export interface UpContents {
  readonly kubeconfig: string;
  /** Exported by `env`. */
  readonly variables: Readonly<Record<string, string>>;
  /** Name to path of the programs that `env` puts on the PATH. */
  readonly programs: Readonly<Record<string, string>>;
  /** Part to log file. */
  readonly logs: Readonly<Record<string, string>>;
}

/**
 * `.vmwright/`, where other programs find what `make up` runs: `kubeconfig`, `env` (shell exports), `bin` (programs), `logs`
 * and, while everything is up, `ready`. All of these are removed when `make up` ends; other files in the folder stay.
 */
export class UpFolder implements AsyncDisposable {
  readonly path: string;
  readonly kubeconfig: string;
  readonly env: string;
  readonly bin: string;
  readonly logs: string;
  /** See `Requests`. */
  readonly requests: string;
  readonly ready: string;

  /** @param path Elsewhere, for a second `make up` beside the first. */
  constructor(path: string | undefined) {
    this.path = path || fileURLToPath(new URL('../../../../.vmwright', import.meta.url));
    this.kubeconfig = join(this.path, 'kubeconfig');
    this.env = join(this.path, 'env');
    this.bin = join(this.path, 'bin');
    this.logs = join(this.path, 'logs');
    this.requests = join(this.path, 'requests');
    this.ready = join(this.path, 'ready');
  }

  /** The process of the `make up` that uses the folder, if one does. */
  async owner(): Promise<number | undefined> {
    const pid = Number(await readFile(this.ready, 'utf8').catch(() => ''));
    return pid !== 0 && processIdentity(pid) !== undefined ? pid : undefined;
  }

  /** Creates the folder before anything is started. Rejects one that cannot be written or that another `make up` uses. */
  async prepare(): Promise<void> {
    const pid = await this.owner();
    if (pid !== undefined) {
      throw new TestbedError(
        'FOLDER_BUSY',
        `${this.path} belongs to a \`make up\` that is running (process ${pid}); end it, or set VMWRIGHT_UP_DIR to another folder`,
      );
    }
    const use = { purpose: 'the folder of `make up`', variable: 'VMWRIGHT_UP_DIR' };
    const created = await requireWritableFolder(this.path, use);
    for (const path of created === undefined ? this.#contents : [created]) Keeper.shared.removeAtEnd(path);
    for (const path of this.#contents) await rm(path, { recursive: true, force: true }); // of one that was killed
    for (const folder of [this.bin, this.logs, this.requests]) await mkdir(folder);
  }

  async write({ kubeconfig, variables, programs, logs }: UpContents): Promise<void> {
    await copyFile(kubeconfig, this.kubeconfig);
    for (const [name, path] of Object.entries(programs)) await symlink(path, join(this.bin, name));
    for (const [name, path] of Object.entries(logs)) await symlink(path, join(this.logs, `${name}.log`));
    const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}\n`);
    const path = `export PATH=${quoted(this.bin)}:"$PATH"\n`;
    await writeFile(this.env, [...lines, path].join(''), { mode: 0o600 });
    await writeFile(this.ready, `${process.pid}\n`); // last: whoever sees it may use the others
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const path of this.#contents) await rm(path, { recursive: true, force: true });
    await rmdir(this.path).catch(() => undefined); // not empty: it holds files of others
  }

  get #contents(): readonly string[] {
    return [this.ready, this.env, this.kubeconfig, this.bin, this.logs, this.requests];
  }
}

/** For a POSIX shell: single quotes keep every other character as it is. */
function quoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}
