import { copyFile, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TestbedError } from '../errors.ts';
import { Keeper } from '../process/keeper.ts';
import { processIdentity } from '../process/process-identity.ts';
import { requireWritableFolder } from '../process/writable-folder.ts';

/**
 * `.vmwright/`, by which other programs find what `make up` runs: `kubeconfig`, `env` (shell exports) and, as long as
 * all is up, `ready`. These three are removed at the end, however it comes; what else is in the folder is not ours.
 */
export class UpFolder implements AsyncDisposable {
  readonly path: string;
  readonly kubeconfig: string;
  readonly env: string;
  readonly #ready: string;

  /** @param path Elsewhere, for a second `make up` beside the first. */
  constructor(path: string | undefined) {
    this.path = path || fileURLToPath(new URL('../../../../.vmwright', import.meta.url));
    this.kubeconfig = join(this.path, 'kubeconfig');
    this.env = join(this.path, 'env');
    this.#ready = join(this.path, 'ready');
  }

  /** Creates the folder before anything is started. Rejects one that cannot be written or that another `make up` uses. */
  async prepare(): Promise<void> {
    const pid = Number(await readFile(this.#ready, 'utf8').catch(() => ''));
    if (pid !== 0 && processIdentity(pid) !== undefined) {
      throw new TestbedError(
        'FOLDER_BUSY',
        `${this.path} belongs to a \`make up\` that is running (process ${pid}); end it, or set VMWRIGHT_UP_DIR to another folder`,
      );
    }
    const use = { purpose: 'the folder of `make up`', variable: 'VMWRIGHT_UP_DIR' };
    const created = await requireWritableFolder(this.path, use);
    for (const path of created === undefined ? this.#files : [created]) Keeper.shared.removeAtEnd(path);
  }

  async write(kubeconfig: string, variables: Readonly<Record<string, string>>): Promise<void> {
    await copyFile(kubeconfig, this.kubeconfig);
    const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}\n`);
    await writeFile(this.env, lines.join(''), { mode: 0o600 });
    await writeFile(this.#ready, `${process.pid}\n`); // last: who sees it may use the others
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const file of this.#files) await rm(file, { force: true });
    await rmdir(this.path).catch(() => undefined); // not empty: somebody keeps things here
  }

  get #files(): readonly string[] {
    return [this.#ready, this.env, this.kubeconfig];
  }
}

/** For a POSIX shell: single quotes keep everything as it is, but for themselves. */
function quoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}
