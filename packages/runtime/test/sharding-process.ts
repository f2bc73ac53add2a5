import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, on, once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./sharding-replica.ts', import.meta.url));

export interface ReplicaArguments {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly run: string;
  readonly name: string;
  /** leaseMs/renewMs/retryMs */
  readonly times: string;
}

/** Write of a reconcile, timed by the clock that all processes share. */
export interface Write {
  readonly at: bigint;
  readonly name: string;
  readonly key: string;
  readonly reconcile: string;
}

/** Output lines of all replicas, in order of arrival. */
export class OutputLog {
  readonly writes: Write[] = [];
  readonly failures: string[] = [];
  /** Numbers of owned shards, of all shards and of members, by replica. */
  readonly ownership = new Map<string, readonly number[]>();
  readonly #lines = new EventEmitter();

  add(line: string): void {
    const [at = '', name = '', event = '', ...rest] = line.split(' ');
    const [key = '', reconcile = ''] = rest;
    if (event === 'write') this.writes.push({ at: BigInt(at), name, key, reconcile });
    else if (event === 'owns') this.ownership.set(name, key.split('/').map(Number));
    else if (event === 'failed') this.failures.push(line);
    this.#lines.emit('line');
  }

  async until(predicate: () => boolean): Promise<void> {
    if (predicate()) return;
    for await (const _ of on(this.#lines, 'line')) if (predicate()) return;
  }
}

/** Process that runs `sharding-replica.ts`. */
export class ReplicaProcess {
  readonly name: string;
  readonly #process: ChildProcess;
  /** Resolves when the process has exited and its output was read to the end. */
  readonly #closed: Promise<unknown>;

  constructor(options: ReplicaArguments, output: OutputLog) {
    this.name = options.name;
    const args = Object.entries(options).map(([key, value]) => `--${key}=${value}`);
    this.#process = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#closed = once(this.#process, 'close');
    if (this.#process.stdout === null) throw new Error('the process has no standard output');
    createInterface(this.#process.stdout).on('line', (line) => output.add(line));
  }

  signal(signal: NodeJS.Signals): bigint {
    this.#process.kill(signal);
    return process.hrtime.bigint();
  }

  async exited(): Promise<number | null> {
    await this.#closed;
    return this.#process.exitCode;
  }
}

/** Returns overlapping reconciles of an object by two processes. A reconcile lasts from its first to its last write. */
export function overlaps(writes: readonly Write[]): string[] {
  interface Span {
    readonly name: string;
    readonly key: string;
    readonly from: bigint;
    until: bigint;
  }
  const byReconcile = new Map<string, Span>();
  for (const { at, name, key, reconcile } of writes) {
    const id = `${name} ${reconcile}`;
    const span = byReconcile.get(id) ?? { name, key, from: at, until: at };
    if (at > span.until) span.until = at;
    byReconcile.set(id, span);
  }
  const byKey = Map.groupBy(byReconcile.values(), ({ key }) => key);
  const found: string[] = [];
  for (const [key, spans] of byKey) {
    spans.sort((a, b) => Number(a.from - b.from));
    let last: Span | undefined;
    for (const span of spans) {
      if (last !== undefined && span.name !== last.name && span.from <= last.until)
        found.push(`${key}: ${last.name} until ${last.until}, ${span.name} from ${span.from}`);
      if (last === undefined || span.until > last.until) last = span;
    }
  }
  return found;
}
