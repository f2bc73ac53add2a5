import { copyFile, mkdir, readFile, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TestbedError } from '../errors.ts';
import { processIdentity } from '../process/process-identity.ts';
import { RunSupervisor } from '../process/run-supervisor.ts';
import { requireWritableFolder } from '../process/writable-folder.ts';

/** Contents of the folder of `make up`. */
export interface UpContents {
  readonly kubeconfig: string;
  /** Environment variables that `env` exports. */
  readonly variables: Readonly<Record<string, string>>;
  /** Programs that `env` puts on the PATH: name to path. */
  readonly programs: Readonly<Record<string, string>>;
  /** Log files: part name to path. */
  readonly logs: Readonly<Record<string, string>>;
}

/**
 * The folder `.vmwright/`, through which other programs use the parts of `make up`. It contains `kubeconfig`, `env`
 * (shell exports), `bin` (programs) and `logs`. The file `ready` exists while everything is running. All of these are
 * removed when `make up` ends. Other files in the folder are kept.
 */
export class UpFolder implements AsyncDisposable {
  readonly path: string;
  readonly kubeconfig: string;
  readonly env: string;
  readonly bin: string;
  readonly logs: string;
  /** Folder for requests from other shells; see `Requests`. */
  readonly requests: string;
  readonly ready: string;

  /** @param path folder to use instead of `.vmwright`, for a second `make up` next to the first */
  constructor(path: string | undefined) {
    this.path = path || fileURLToPath(new URL('../../../../.vmwright', import.meta.url));
    this.kubeconfig = join(this.path, 'kubeconfig');
    this.env = join(this.path, 'env');
    this.bin = join(this.path, 'bin');
    this.logs = join(this.path, 'logs');
    this.requests = join(this.path, 'requests');
    this.ready = join(this.path, 'ready');
  }

  /** Returns the process id of the `make up` that uses the folder, or undefined if none does. */
  async owner(): Promise<number | undefined> {
    const pid = Number(await readFile(this.ready, 'utf8').catch(() => ''));
    return pid !== 0 && processIdentity(pid) !== undefined ? pid : undefined;
  }

  /** Creates the folder. Throws if it is not writable or if another `make up` uses it. */
  async prepare(): Promise<void> {
    const pid = await this.owner();
    if (pid !== undefined) {
      throw new TestbedError(
        'FOLDER_BUSY',
        `${this.path} is in use by another \`make up\` (process ${pid}); stop it, or set VMWRIGHT_UP_DIR to another folder`,
      );
    }
    const use = { purpose: 'the folder of `make up`', variable: 'VMWRIGHT_UP_DIR' };
    const created = await requireWritableFolder(this.path, use);
    for (const path of created === undefined ? this.#contents : [created])
      RunSupervisor.shared.removeAtEnd(path);
    for (const path of this.#contents) await rm(path, { recursive: true, force: true }); // left by a killed `make up`
    for (const folder of [this.bin, this.logs, this.requests]) await mkdir(folder);
  }

  async write({ kubeconfig, variables, programs, logs }: UpContents): Promise<void> {
    await copyFile(kubeconfig, this.kubeconfig);
    for (const [name, path] of Object.entries(programs)) await symlink(path, join(this.bin, name));
    for (const [name, path] of Object.entries(logs)) await symlink(path, join(this.logs, `${name}.log`));
    const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}\n`);
    const path = `export PATH=${quoted(this.bin)}:"$PATH"\n`;
    await writeFile(this.env, [...lines, path].join(''), { mode: 0o600 });
    await writeFile(this.ready, `${process.pid}\n`); // written last, because its existence means that the other files are complete
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const path of this.#contents) await rm(path, { recursive: true, force: true });
    await rmdir(this.path).catch(() => undefined); // fails, and the folder stays, if it contains other files
  }

  get #contents(): readonly string[] {
    return [this.ready, this.env, this.kubeconfig, this.bin, this.logs, this.requests];
  }
}

/** Quotes a value for a POSIX shell. */
function quoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}
