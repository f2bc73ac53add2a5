import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * `.vmwright/`, by which other programs find what `make up` runs: `kubeconfig`, `env` (shell exports) and, as long as
 * all is up, `ready`.
 */
export class UpFolder implements AsyncDisposable {
  readonly path: string;

  /** @param path Elsewhere, for a second `make up` beside the first. */
  constructor(path: string | undefined) {
    this.path = path || fileURLToPath(new URL('../../../../.vmwright', import.meta.url));
  }

  get kubeconfig(): string {
    return join(this.path, 'kubeconfig');
  }

  get env(): string {
    return join(this.path, 'env');
  }

  async write(kubeconfig: string, variables: Readonly<Record<string, string>>): Promise<void> {
    await mkdir(this.path, { recursive: true });
    await copyFile(kubeconfig, this.kubeconfig);
    const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}\n`);
    await writeFile(this.env, lines.join(''), { mode: 0o600 });
    await writeFile(join(this.path, 'ready'), `${process.pid}\n`); // last: who sees it may use the others
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

/** For a POSIX shell: single quotes keep everything as it is, but for themselves. */
function quoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}
