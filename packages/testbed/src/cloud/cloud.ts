import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { canary } from '../canaries/canary.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { portFor } from '../process/ports.ts';
import { programOf } from '../process/program.ts';
import { RunSupervisor } from '../process/run-supervisor.ts';

export interface CloudOptions {
  /** @default a free port */
  readonly port?: number;
  /** @default a unique fake key, for which the test run searches all output, to find leaks */
  readonly apiKey?: string;
  /** Content of the config file. @default machines that boot within milliseconds */
  readonly config?: object;
  /** Lines of the file of prohibited names. */
  readonly prohibited?: readonly string[];
  /** Enables fault injection with `PUT /faults`. @default false */
  readonly faults?: boolean;
}

/** Entry of the cloud's audit log. */
export interface Audited {
  readonly event: string;
  readonly id: string;
  readonly name: string;
  readonly time: string;
  /** Idempotency key of the create request. */
  readonly key?: string;
}

const FAST_CONFIG = {
  observeEveryMs: 20,
  simulated: { bootMs: { min: 10, max: 60 }, stopMs: { min: 10, max: 60 } },
};

interface Files {
  readonly config: string;
  readonly prohibited: string;
}

/** The private cloud: our own server with simulated machines. Its data survives a kill of the process. */
export class Cloud implements AsyncDisposable {
  readonly url: string;
  readonly apiKey: string;
  readonly part: Part;
  readonly #files: Files;

  constructor(url: string, apiKey: string, part: Part, files: Files) {
    this.url = url;
    this.apiKey = apiKey;
    this.part = part;
    this.#files = files;
  }

  /** Sends a request to the cloud's REST API without using our client. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const json = init.body === undefined ? {} : { 'content-type': 'application/json' };
    // Keep-alive is off, because a test may have killed the server since the last request.
    const headers = { authorization: `Bearer ${this.apiKey}`, connection: 'close', ...json };
    return fetch(`${this.url}${path}`, { ...init, headers });
  }

  /** Returns the entries of the audit log, oldest first. */
  async audit(): Promise<readonly Audited[]> {
    const lines = (await readFile(this.part.log, 'utf8')).split('\n');
    return lines.flatMap((line) => (line.startsWith('{"audit"') ? [JSON.parse(line)] : []));
  }

  /** Replaces the list of prohibited names. */
  async prohibit(...names: readonly string[]): Promise<void> {
    await writeFile(this.#files.prohibited, `${names.join('\n')}\n`);
  }

  /** Replaces the config file and restarts the cloud. */
  async reconfigure(config: object): Promise<void> {
    await writeFile(this.#files.config, JSON.stringify(config));
    await this.part.restart();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.part[Symbol.asyncDispose]();
  }
}

export async function startCloud(options: CloudOptions = {}): Promise<Cloud> {
  const { apiKey = canary('cloud-key'), config = FAST_CONFIG, prohibited = [], faults = false } = options;
  const dir = await RunSupervisor.shared.folder('cloud');
  const port = await portFor('the private cloud', options.port);
  const url = `http://127.0.0.1:${port}`;
  const files: Files = { config: join(dir, 'config.json'), prohibited: join(dir, 'prohibited') };
  await writeFile(files.config, JSON.stringify(config));
  await writeFile(files.prohibited, `${prohibited.join('\n')}\n`);
  const flags = [
    ...['--listen', `127.0.0.1:${port}`, '--data', join(dir, 'cloud.sqlite')],
    ...['--config', files.config, '--prohibited', files.prohibited],
    ...(faults ? ['--enable-faults'] : []),
  ];
  const part = await Part.start({
    name: 'cloud',
    ...programOf('cloud', 'serve', ...flags),
    env: { CLOUD_API_KEYS: apiKey },
    dir,
    ready: () => healthy(`${url}/readyz`),
  });
  return new Cloud(url, apiKey, part, files);
}
