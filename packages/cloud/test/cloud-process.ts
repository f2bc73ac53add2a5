import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { nodeWorld } from '@vmwright/core';
import { temporaryFolder } from '@vmwright/testbed';
import { CloudClient } from '../src/index.ts';

export const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
export const API_KEY = 'a-key-for-tests-0123456789';

export interface CloudProcessOptions {
  /** More of the command line. */
  readonly args?: readonly string[];
  /** The config file. @default machines that boot and stop within milliseconds */
  readonly config?: object;
  /** Lines of the file of prohibited names. */
  readonly prohibited?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A line of the audit log. */
export interface Audited {
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

/** `vmwright-cloud serve` as a process of its own, which can be killed and started again on the same data. */
export class CloudProcess implements AsyncDisposable {
  readonly dir: string;
  readonly data: string;
  readonly config: string;
  readonly prohibited: string;
  readonly audit: Audited[] = [];
  /** Of all its processes. */
  log = '';
  /** How many requests of its clients had no answer. */
  unanswered = 0;
  url = '';
  readonly #options: CloudProcessOptions;
  #process: ChildProcess | undefined;
  #closed: Promise<number | null> = Promise.resolve(null);
  #client: CloudClient | undefined;
  readonly #auditors = new Set<() => void>();
  readonly #readers = new Set<() => void>();

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

  /** Starts it (again), and waits until it serves. It keeps the port that it was given first. */
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
      for (const look of this.#auditors) look();
    });
    const { promise: serving, resolve, reject } = Promise.withResolvers<string>();
    const said: string[] = [];
    createInterface({ input: child.stderr }).on('line', (line) => {
      said.push(line);
      this.log += `${line}\n`;
      for (const look of this.#readers) look();
      const url = /"msg":"listening","url":"([^"]+)"/.exec(line)?.[1];
      if (url !== undefined) resolve(url);
    });
    this.#closed = once(child, 'close').then(([code, signal]) => {
      reject(new Error(`the cloud has ended (${code ?? signal}):\n${said.join('\n')}`));
      return code;
    });
    this.url = await serving;
    const observer = {
      answered: (_method: string, _route: string, code: string) => {
        if (code === '<error>') this.unanswered += 1;
      },
    };
    this.#client = new CloudClient({ world: nodeWorld, url: this.url, apiKey: API_KEY, observer });
  }

  /** Ends it as a power cut would, and has read all that it said. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.exited();
  }

  /** Its exit code, once it has ended; null when a signal has ended it. */
  async exited(): Promise<number | null> {
    const code = await this.#closed;
    await this.#client?.close();
    return code;
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** Sends bytes of its own making, as any program may. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (!headers.has('authorization')) headers.set('authorization', `Bearer ${API_KEY}`);
    return fetch(`${this.url}${path}`, { ...init, headers });
  }

  /** Resolves as soon as the audit log has such a line. */
  async audited(event: string, id: string): Promise<Audited> {
    for (;;) {
      const found = this.audit.find((line) => line.event === event && line.id === id);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#auditors.add(resolve));
    }
  }

  /** Resolves as soon as the log has such a line. */
  async logged(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.log)) await new Promise<void>((resolve) => this.#readers.add(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
