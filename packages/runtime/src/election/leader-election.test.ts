import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, on, once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Cluster, startToxiproxy, temporaryFolder } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { afterEach, describe, expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { Lease, type LeaseSpec } from '../kind/builtin/lease.ts';

const PROGRAM = fileURLToPath(new URL('../../test/election-candidate.ts', import.meta.url));

interface Line {
  readonly at: bigint;
  readonly name: string;
  readonly what: string;
}

interface CandidateOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly lease: string;
  readonly name: string;
  /** leaseMs/renewMs/retryMs */
  readonly times: string;
}

/**
 * Durations for tests in which the leader loses the lease. On a busy machine, the leader may lose it too early. The
 * tests tolerate that.
 */
const SHORT = '3000/2000/300';
/** Durations for leaders that must not lose the lease during a test. */
const LONG = '15000/10000/300';

/** A process that takes part in an election, and its output. */
class Candidate {
  readonly lines: Line[] = [];
  readonly #process: ChildProcess;
  readonly #output = new EventEmitter();
  /** Resolves when the process has exited and its output was read to the end. */
  readonly #closed: Promise<unknown>;
  #errors = '';

  constructor(options: CandidateOptions) {
    this.#process = spawn(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        PROGRAM,
        ...Object.entries(options).map(([key, value]) => `--${key}=${value}`),
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    this.#closed = once(this.#process, 'close');
    const { stdout, stderr } = this.#process;
    if (stdout === null || stderr === null)
      throw new Error('the stdout or stderr of the candidate is not a pipe');
    stderr.on('data', (data) => {
      this.#errors += data;
    });
    createInterface(stdout).on('line', (line) => {
      const [at = '', name = '', ...what] = line.split(' ');
      this.lines.push({ at: BigInt(at), name, what: what.join(' ') });
      this.#output.emit('line');
    });
  }

  /** Waits until the process has printed a line with this prefix. */
  async prints(prefix: string): Promise<void> {
    const ended = new AbortController();
    const end = () => ended.abort();
    void this.#closed.then(end);
    const isPrinted = () => this.lines.some((line) => line.what.startsWith(prefix));
    try {
      if (isPrinted()) return;
      for await (const _ of on(this.#output, 'line', { signal: ended.signal })) if (isPrinted()) return;
    } catch (error) {
      throw new Error(`the process exited without printing ${prefix}: ${this.#errors}`, { cause: error });
    }
  }

  /** Waits until the process has printed this many more `act` lines. */
  async acts(times = 20): Promise<void> {
    const from = this.lines.length;
    const acts = () => this.lines.slice(from).filter(({ what }) => what === 'act').length;
    for await (const _ of on(this.#output, 'line')) if (acts() >= times) return;
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  async ends(): Promise<number | null> {
    await this.#closed;
    return this.#process.exitCode;
  }
}

/** Names of the acting candidates in order of time, without consecutive repetitions. */
function succession(...candidates: Candidate[]): string[] {
  const acts = candidates
    .flatMap(({ lines }) => lines.filter(({ what }) => what === 'act'))
    .sort((a, b) => Number(a.at - b.at));
  return acts.map(({ name }) => name).filter((name, index, names) => name !== names[index - 1]);
}

describe('election with two processes', () => {
  const started: Candidate[] = [];
  let leases = 0;

  afterEach(async () => {
    for (const candidate of started.splice(0)) {
      candidate.signal('SIGKILL');
      await candidate.ends();
    }
  });

  function start(options: CandidateOptions): Candidate {
    const candidate = new Candidate(options);
    started.push(candidate);
    return candidate;
  }

  /** Starts a leader and waits until it acts. Then starts a standby and waits until it has read the lease. */
  async function leaderAndStandby(
    cluster: Cluster,
    namespace: string,
    { kubeconfig = cluster.kubeconfig, times = SHORT } = {},
  ) {
    leases += 1;
    const lease = `lease-${leases}`;
    const leader = start({ kubeconfig, namespace, lease, name: 'first', times });
    await leader.acts();
    // The holder determines how long a lease lasts. So the standby takes over soon from a leader with short durations.
    // With its own long durations, it does not lose the lease afterwards.
    const standby = start({ kubeconfig: cluster.kubeconfig, namespace, lease, name: 'second', times: LONG });
    await standby.prints('follows first_');
    return { leader, standby, lease };
  }

  test('the first process leads and renews the lease, and the second stands by', async ({
    cluster,
    namespace,
  }) => {
    const { leader, standby, lease } = await leaderAndStandby(cluster, namespace, { times: LONG });
    await using client = await connect(cluster.kubeconfig);
    const specs: LeaseSpec[] = [];
    const fieldSelector = `metadata.name=${lease}`;
    for await (const event of client.watch(Lease, { namespace, fieldSelector, sendInitialEvents: true })) {
      if (event.type !== 'BOOKMARK' && event.object.spec) specs.push(event.object.spec);
      if (specs.length === 5) break;
    }
    expect(succession(leader, standby)).toEqual(['first']);
    for (const spec of specs) {
      expect(spec).toMatchObject({ leaseDurationSeconds: 15, leaseTransitions: 0 });
      expect(spec.holderIdentity).toMatch(/^first_/);
      expect(spec.renewTime).toMatch(/T\d\d:\d\d:\d\d\.\d{6}Z$/);
      expect(spec.acquireTime).toBe(specs[0]?.acquireTime);
    }
    expect(new Set(specs.map(({ renewTime }) => renewTime)).size).toBe(5);
  });

  test('the standby takes over when the leader is killed', async ({ cluster, namespace }) => {
    const { leader, standby, lease } = await leaderAndStandby(cluster, namespace);
    leader.signal('SIGKILL');
    await standby.acts();
    expect(succession(leader, standby)).toEqual(['first', 'second']);
    await using client = await connect(cluster.kubeconfig);
    const { spec } = await client.get(Lease, { namespace, name: lease });
    expect(spec).toMatchObject({ leaseTransitions: 1 });
    expect(spec?.holderIdentity).toMatch(/^second_/);
  });

  test('a leader that resumes after SIGSTOP does not act once the standby leads', async ({
    cluster,
    namespace,
  }) => {
    const { leader, standby } = await leaderAndStandby(cluster, namespace);
    leader.signal('SIGSTOP');
    await standby.acts();
    leader.signal('SIGCONT');
    await leader.prints('follows second_');
    await standby.acts();
    expect(succession(leader, standby)).toEqual(['first', 'second']);

    // The former leader competes again.
    standby.signal('SIGTERM');
    await leader.acts();
    expect(succession(leader, standby)).toEqual(['first', 'second', 'first']);
  });

  test.for(['disable', 'halfOpen'] as const)(
    'a leader without a connection to the API server (%s) stops acting before the standby starts',
    async (how, { cluster, namespace }) => {
      await using toxiproxy = await startToxiproxy();
      const proxy = await toxiproxy.proxy({
        name: `api-${how}`,
        upstream: new URL(cluster.access.server).host,
      });
      const kubeconfig = join(await temporaryFolder('election'), `kubeconfig-${how}`);
      const direct = await readFile(cluster.kubeconfig, 'utf8');
      await writeFile(kubeconfig, direct.replace(cluster.access.server, `https://${proxy.address}`));
      const { leader, standby } = await leaderAndStandby(cluster, namespace, { kubeconfig });
      await proxy[how]();
      await leader.prints('ended: lost leadership of lease');
      await standby.acts();
      await proxy.clear();
      await leader.prints('follows second_');
      expect(succession(leader, standby)).toEqual(['first', 'second']);
    },
  );

  test('a leader that gets SIGTERM releases the lease after its last action, and the standby takes over', async ({
    cluster,
    namespace,
  }) => {
    const { leader, standby, lease } = await leaderAndStandby(cluster, namespace, { times: LONG });
    await using client = await connect(cluster.kubeconfig);
    const specs: Lease['spec'][] = [];
    const fieldSelector = `metadata.name=${lease}`;
    for await (const event of client.watch(Lease, { namespace, fieldSelector, sendInitialEvents: true })) {
      if (event.type === 'BOOKMARK') leader.signal('SIGTERM');
      else specs.push(event.object.spec);
      if (specs.at(-1)?.holderIdentity?.startsWith('second_')) break;
    }
    expect(await leader.ends()).toBe(0);
    await standby.acts();
    expect(succession(leader, standby)).toEqual(['first', 'second']);
    expect(specs.at(-2)?.holderIdentity ?? '').toBe('');
    expect(specs.at(-2)).toMatchObject({ leaseDurationSeconds: 1, leaseTransitions: 0 });
    expect(specs.at(-1)).toMatchObject({ leaseDurationSeconds: 15, leaseTransitions: 1 });
    // The leader prints `standing` before it releases the lease, and must not act afterwards.
    const lastAct = leader.lines.findLastIndex(({ what }) => what === 'act');
    const standing = leader.lines.findLastIndex(({ what }) => what === 'standing');
    expect(lastAct).toBeLessThan(standing);
  });
});
