import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@vmwright/runtime';
import type { Row } from '../bar.ts';
import { quantile } from '../runtime/latency.ts';
import type { Side } from '../runtime/programs.ts';
import { type Environment, PAUSED, RUNNING, STALE, startEnvironment, untilAll } from './bench.ts';
import type { Commit, Table } from './database.ts';
import { setPrintableStatus } from './machines.ts';
import type { Programs } from './programs.ts';

/**
 * Number of VMs. Larger than `IN_FLIGHT`, so that a VM is changed again only after its previous change was accepted.
 */
const VMS = Number(process.env.LAG_VMS ?? 2_000);
const RATE = Number(process.env.LAG_RATE ?? 200);
/** Maximum number of requests in flight. It is reached only if the API server cannot keep up with the rate. */
const IN_FLIGHT = 64;
const SECONDS = Number(process.env.LAG_SECONDS ?? 30);
/** Duration of the warm-up before the measurement. */
const WARM_UP_SECONDS = Math.min(5, SECONDS / 2);
const POLL_MS = 500;
/** Maximum time from the last change to the commit of its row. */
const TIMEOUT_MS = 60_000;

/**
 * Measures the time from a change of a VM to the commit of its row, at a steady rate of changes. Two lags are measured.
 * One begins when the client sends the change. The other begins when the client receives the API server's response.
 * Both end at the row's commit timestamp in PostgreSQL. The true lag is between the two.
 */
export async function* lag(programs: Programs): AsyncGenerator<Row> {
  await using environment = await startEnvironment(VMS, 'small');
  const theirs = await measureRun(programs, environment, 'theirs');
  const ours = await measureRun(programs, environment, 'ours');
  const at = (from: keyof Lag, share: number) => ({
    ours: quantileOf(ours.lags, from, share),
    theirs: quantileOf(theirs.lags, from, share),
  });
  const what = `${RATE} changes/s`;
  yield { name: `${what}: changes that the API server accepted (1/s)`, ours: ours.rate, theirs: theirs.rate };
  yield { name: `${what}: accepted to committed, p50 (ms)`, ...at('accepted', 0.5) };
  yield {
    name: `${what}: accepted to committed, p99 (ms)`,
    ...at('accepted', 0.99),
    bar: { atMost: 100, of: 'ours' },
  };
  yield { name: `${what}: sent to committed, p50 (ms)`, ...at('sent', 0.5) };
  yield { name: `${what}: sent to committed, p99 (ms)`, ...at('sent', 0.99) };
}

/**
 * Time in ms until the commit of a row. `sent` begins when the change was sent, `accepted` when the API server accepted
 * the change.
 */
interface Lag {
  readonly sent: number;
  readonly accepted: number;
}

interface Change {
  readonly vm: number;
  readonly status: string;
  readonly sentAt: number;
  readonly acceptedAt: number;
}

interface Measured {
  /** Changes that the API server accepted per second. Lower than the intended rate if the machine is too busy. */
  readonly rate: number;
  readonly lags: readonly Lag[];
}

async function measureRun(
  { controllers }: Programs,
  environment: Environment,
  side: Side,
): Promise<Measured> {
  const { cluster, table } = environment;
  await table.reset(STALE);
  const start = await controllers(side, cluster, table);
  await using program = start();
  await untilAll(program, table, VMS, RUNNING.row);
  await using commits = new CommitLog(table);
  const all = await changeStatuses(environment);
  await commits.untilKnown(all);
  const changes = all.slice(WARM_UP_SECONDS * RATE);
  const lags = changes.map((each) => {
    const committedAt = commits.of(each);
    if (committedAt === undefined) throw new Error(`a change of VM ${each.vm} was never written`);
    return {
      sent: Math.max(0, committedAt - each.sentAt),
      accepted: Math.max(0, committedAt - each.acceptedAt),
    };
  });
  const times = changes.map(({ acceptedAt }) => acceptedAt).sort((a, b) => a - b);
  const seconds = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1000;
  return { rate: changes.length / seconds, lags };
}

function quantileOf(lags: readonly Lag[], from: keyof Lag, share: number): number {
  return quantile(
    lags.map((each) => each[from]),
    share,
  );
}

/** Changes the VMs in turn at a fixed rate, with at most `IN_FLIGHT` requests in flight. */
async function changeStatuses({ client }: Environment): Promise<readonly Change[]> {
  // After an even number of rounds, every VM has its initial status again. So the run of `ours` starts from the same
  // state as the run of `theirs` before it.
  const rounds = 2 * Math.ceil((SECONDS * RATE) / VMS / 2);
  const started = performance.now();
  const changes: Promise<Change>[] = [];
  for (let i = 0; i < rounds * VMS; i++) {
    const waitMs = started + (i * 1000) / RATE - performance.now();
    if (waitMs > 1) await sleep(waitMs);
    await changes[i - IN_FLIGHT];
    changes.push(change(client, i % VMS, Math.floor(i / VMS) % 2 === 0 ? PAUSED : RUNNING));
  }
  return Promise.all(changes);
}

async function change(client: Client, vm: number, to: typeof RUNNING): Promise<Change> {
  const sentAt = Date.now();
  await setPrintableStatus(client, vm, to.printableStatus);
  return { vm, status: to.row, sentAt, acceptedAt: Date.now() };
}

/** Collects the commits of all rows. The table is read more often than any row changes, so no commit is missed. */
class CommitLog implements AsyncDisposable {
  readonly #table: Table;
  readonly #commits = new Map<number, Commit[]>();
  readonly #reading: Promise<void>;
  #isClosed = false;

  constructor(table: Table) {
    this.#table = table;
    this.#reading = this.#read();
  }

  /** Returns the time at which a change was committed; undefined if no commit of the change is known. */
  of({ vm, status, sentAt }: Change): number | undefined {
    return this.#commits.get(vm)?.find((commit) => commit.status === status && commit.at >= sentAt)?.at;
  }

  async untilKnown(changes: readonly Change[]): Promise<void> {
    const deadline = performance.now() + TIMEOUT_MS;
    while (changes.some((change) => this.of(change) === undefined) && performance.now() < deadline)
      await sleep(POLL_MS);
  }

  async #read(): Promise<void> {
    while (!this.#isClosed) {
      for (const commit of await this.#table.recentCommits()) {
        const known = this.#commits.get(commit.vm);
        if (known === undefined) this.#commits.set(commit.vm, [commit]);
        else if (known.at(-1)?.at !== commit.at) known.push(commit);
      }
      await sleep(POLL_MS);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#reading;
  }
}
