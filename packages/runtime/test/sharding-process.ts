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

/** A write of a reconcile, by the clock that all processes share. */
export interface Act {
  readonly at: bigint;
  readonly name: string;
  readonly key: string;
  readonly reconcile: string;
}

/** All that some replicas have said, in the order in which it was heard. */
export class Protocol {
  readonly acts: Act[] = [];
  readonly failures: string[] = [];
  /** By name: shards owned, of how many, among how many members. */
  readonly shares = new Map<string, readonly number[]>();
  readonly #heard = new EventEmitter();

  hear(line: string): void {
    const [at = '', name = '', what = '', ...rest] = line.split(' ');
    const [key = '', reconcile = ''] = rest;
    if (what === 'act') this.acts.push({ at: BigInt(at), name, key, reconcile });
    else if (what === 'share') this.shares.set(name, key.split('/').map(Number));
    else if (what === 'failed') this.failures.push(line);
    this.#heard.emit('line');
  }

  async until(is: () => boolean): Promise<void> {
    if (is()) return;
    for await (const _ of on(this.#heard, 'line')) if (is()) return;
  }
}

/** A process of `sharding-replica.ts`. */
export class ReplicaProcess {
  readonly name: string;
  readonly #process: ChildProcess;

  constructor(options: ReplicaArguments, protocol: Protocol) {
    this.name = options.name;
    const args = Object.entries(options).map(([key, value]) => `--${key}=${value}`);
    this.#process = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    if (this.#process.stdout === null) throw new Error('a process without output');
    createInterface(this.#process.stdout).on('line', (line) => protocol.hear(line));
  }

  signal(signal: NodeJS.Signals): bigint {
    this.#process.kill(signal);
    return process.hrtime.bigint();
  }

  async ends(): Promise<number | null> {
    if (this.#process.exitCode === null && this.#process.signalCode === null)
      await once(this.#process, 'exit');
    return this.#process.exitCode;
  }
}

/** Reconciles of one object by two processes that overlap, from a reconcile's first write to its last. */
export function overlaps(acts: readonly Act[]): string[] {
  interface Span {
    readonly name: string;
    readonly key: string;
    readonly from: bigint;
    until: bigint;
  }
  const byReconcile = new Map<string, Span>();
  for (const { at, name, key, reconcile } of acts) {
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
