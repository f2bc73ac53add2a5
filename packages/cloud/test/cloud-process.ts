import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { nodeWorld } from '@vmwright/core';
import { CanarySearches, canary, temporaryFolder } from '@vmwright/testbed';
import { CloudClient } from '../src/index.ts';

export const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
export const API_KEY = canary('cloud-key');

export interface CloudProcessOptions {
  /** Additional command line arguments. */
  readonly args?: readonly string[];
  /** Content of the config file. @default machines that boot and stop within milliseconds */
  readonly config?: object;
  /** Lines of the prohibited names file. */
  readonly prohibited?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A line of the audit log. */
export interface AuditLine {
  readonly audit: number;
  readonly event: string;
  readonly id: string;
  readonly name: string;
  readonly key?: string;
  readonly message?: string;
}

export const QUICK = {
  observeEveryMs: 10,
  simulated: {
    bootMs: { min: 5, max: 20 },
    stopMs: { min: 5, max: 20 },
    cpu: { min: 40, max: 40, noise: 0 },
  },
};

/** `vmwright-cloud serve` in its own process, which can be killed and restarted with the same data. */
export class CloudProcess implements AsyncDisposable {
  readonly dir: string;
  readonly data: string;
  readonly config: string;
  readonly prohibited: string;
  readonly audit: AuditLine[] = [];
  /** Standard error of all processes that were started. */
  log = '';
  /** Number of client requests without a response. */
  failedRequests = 0;
  url = '';
  readonly #options: CloudProcessOptions;
  #process: ChildProcess | undefined;
  #closed: Promise<number | null> = Promise.resolve(null);
  #client: CloudClient | undefined;
  readonly #auditListeners = new Set<() => void>();
  readonly #logListeners = new Set<() => void>();

  private constructor(dir: string, options: CloudProcessOptions) {
    this.dir = dir;
    this.data = join(dir, 'cloud.sqlite');
    this.config = join(dir, 'config.json');
    this.prohibited = join(dir, 'prohibited');
    this.#options = options;
    writeFileSync(this.config, JSON.stringify(options.config ?? QUICK));
    writeFileSync(this.prohibited, `${(options.prohibited ?? []).join('\n')}\n`);
  }

  static async start(options: CloudProcessOptions = {}): Promise<CloudProcess> {
    const cloud = new CloudProcess(await temporaryFolder('cloud'), options);
    await cloud.start();
    return cloud;
  }

  get client(): CloudClient {
    if (this.#client === undefined) throw new Error('the cloud is not running');
    return this.#client;
  }

  /** Starts the process and waits until it listens. A restart uses the port of the first start. */
  async start(): Promise<void> {
    const { args = [], env = {} } = this.#options;
    const listen = this.url === '' ? '127.0.0.1:0' : new URL(this.url).host;
    const child = spawn(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        MAIN,
        'serve',
        ...[
          '--listen',
          listen,
          '--data',
          this.data,
          '--config',
          this.config,
          '--prohibited',
          this.prohibited,
        ],
        ...args,
      ],
      { env: { ...process.env, CLOUD_API_KEYS: API_KEY, ...env }, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    this.#process = child;
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.audit.push(JSON.parse(line));
      for (const notify of this.#auditListeners) notify();
    });
    const { promise: listening, resolve, reject } = Promise.withResolvers<string>();
    const stderr: string[] = [];
    createInterface({ input: child.stderr }).on('line', (line) => {
      stderr.push(line);
      this.log += `${line}\n`;
      for (const notify of this.#logListeners) notify();
      const url = /"msg":"Listening","url":"([^"]+)"/.exec(line)?.[1];
      if (url !== undefined) resolve(url);
    });
    this.#closed = once(child, 'close').then(([code, signal]) => {
      reject(new Error(`the cloud exited (${code ?? signal}):\n${stderr.join('\n')}`));
      return code;
    });
    this.url = await listening;
    const observer = {
      answered: (_method: string, _route: string, code: string) => {
        if (code === '<error>') this.failedRequests += 1;
      },
    };
    this.#client = new CloudClient({ world: nodeWorld, url: this.url, apiKey: API_KEY, observer });
  }

  /** Kills the process and waits until all of its output has been read. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.exited();
  }

  /** Waits until the process exits and returns its exit code; null if it was killed by a signal. */
  async exited(): Promise<number | null> {
    const code = await this.#closed;
    await this.#client?.close();
    return code;
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** Sends a request without CloudClient. Adds the API key unless `init` has an Authorization header. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (!headers.has('authorization')) headers.set('authorization', `Bearer ${API_KEY}`);
    return fetch(`${this.url}${path}`, { ...init, headers });
  }

  /** Waits until the audit log has this event. */
  async audited(event: string, id: string): Promise<AuditLine> {
    for (;;) {
      const found = this.audit.find((line) => line.event === event && line.id === id);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#auditListeners.add(resolve));
    }
  }

  /** Waits until the log matches the pattern. */
  async logged(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.log)) await new Promise<void>((resolve) => this.#logListeners.add(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    CanarySearches.current?.text('the log of vmwright-cloud', this.log + JSON.stringify(this.audit));
  }
}
