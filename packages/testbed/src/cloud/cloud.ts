import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { healthy } from '../process/healthy.ts';
import { Keeper } from '../process/keeper.ts';
import { Part } from '../process/part.ts';
import { portFor } from '../process/ports.ts';
import { programOf } from '../process/program.ts';

export interface CloudOptions {
  /** @default a free one */
  readonly port?: number;
  /** Its config file. @default machines that boot within milliseconds */
  readonly config?: object;
  /** Names that nobody may use, as lines of its file. */
  readonly prohibited?: readonly string[];
  /** Whether it can be told to fail: `PUT /faults`. @default false */
  readonly faults?: boolean;
}

/** A line of the cloud's own book of what became of its machines. */
export interface Audited {
  readonly event: string;
  readonly id: string;
  readonly name: string;
  readonly time: string;
  /** With which it was created. */
  readonly key?: string;
}

const API_KEY = 'testbed-0123456789abcdef';

const QUICK = {
  observeEveryMs: 20,
  simulated: { bootMs: { min: 10, max: 60 }, stopMs: { min: 10, max: 60 } },
};

interface Files {
  readonly config: string;
  readonly prohibited: string;
}

/** The private cloud: our own server, with simulated machines, on data that outlive a kill. */
export class Cloud implements AsyncDisposable {
  readonly url: string;
  readonly apiKey = API_KEY;
  readonly part: Part;
  readonly #files: Files;

  constructor(url: string, part: Part, files: Files) {
    this.url = url;
    this.part = part;
    this.#files = files;
  }

  /** Asks the cloud something past any client of ours. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const json = init.body === undefined ? {} : { 'content-type': 'application/json' };
    // A kept connection may be to a process that was killed since.
    const headers = { authorization: `Bearer ${API_KEY}`, connection: 'close', ...json };
    return fetch(`${this.url}${path}`, { ...init, headers });
  }

  /** What it has done, from its own log, in order. */
  async audit(): Promise<readonly Audited[]> {
    const lines = (await readFile(this.part.log, 'utf8')).split('\n');
    return lines.flatMap((line) => (line.startsWith('{"audit"') ? [JSON.parse(line)] : []));
  }

  /** Replaces the list of prohibited names. */
  async prohibit(...names: readonly string[]): Promise<void> {
    await writeFile(this.#files.prohibited, `${names.join('\n')}\n`);
  }

  /** Another config file, read when it is started anew, which it is. */
  async reconfigure(config: object): Promise<void> {
    await writeFile(this.#files.config, JSON.stringify(config));
    await this.part.restart();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.part[Symbol.asyncDispose]();
  }
}

export async function startCloud(options: CloudOptions = {}): Promise<Cloud> {
  const { config = QUICK, prohibited = [], faults = false } = options;
  const dir = await Keeper.shared.folder('cloud');
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
    env: { CLOUD_API_KEYS: API_KEY },
    dir,
    ready: () => healthy(`${url}/readyz`),
  });
  return new Cloud(url, part, files);
}
