import { field, type KubeObject } from '@vmwright/testbed';
import { GROUPS, type WithVcenter } from '../../packages/operator/test/with-vcenter.ts';

const TIMEOUT_MS = 120_000;

/** Times in seconds, counted from the first create request. */
interface Times {
  /** First machine is ready. */
  first?: number;
  /** All machines are ready and the group is RUNNING. */
  done?: number;
}

export type Race = ReadonlyMap<string, Readonly<Required<Times>>>;

/**
 * Creates groups concurrently and measures the progress of each group from its status. Uses a single watch for all
 * groups to keep the load on the API server low.
 * @param wanted number of replicas by group name
 */
export async function race(bench: WithVcenter, wanted: Readonly<Record<string, number>>): Promise<Race> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const { api } = bench.controlPlane.cluster;
  const times = new Map<string, Times>(Object.keys(wanted).map((name) => [name, {}]));
  const last = new Map<string, KubeObject>();
  const started = performance.now();
  const created = Promise.all(
    Object.entries(wanted).map(([name, replicas]) => bench.group(name, { replicas })),
  );
  created.catch(() => undefined); // awaited below; prevents an unhandled rejection before then
  try {
    for await (const { object } of api.watch(GROUPS, signal)) {
      const { name } = object.metadata;
      const time = times.get(name);
      if (time === undefined) continue;
      last.set(name, object);
      const now = (performance.now() - started) / 1000;
      const ready = Number(field(object, 'status', 'readyReplicas') ?? 0);
      if (ready > 0) time.first ??= now;
      if (ready === wanted[name] && field(object, 'status', 'phase') === 'RUNNING') time.done ??= now;
      const finished = finishedIn(times);
      if (finished !== undefined) return finished;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  await created;
  const late = [...times].filter(([, { done }]) => done === undefined).map(([name]) => name);
  const messages = late.map((name) => `${name}: ${field(last.get(name), 'status', 'lastMessage')}`);
  throw new Error(
    `groups not RUNNING after ${TIMEOUT_MS / 1000} s: ${messages.join('; ')}; see ${bench.operator.log}`,
  );
}

function finishedIn(times: ReadonlyMap<string, Times>): Race | undefined {
  const finished = new Map<string, Required<Times>>();
  for (const [name, { first, done }] of times) {
    if (first === undefined || done === undefined) return undefined;
    finished.set(name, { first, done });
  }
  return finished;
}

/** Deletes groups and waits until they and their machines are gone. */
export async function clear(bench: WithVcenter, names: Iterable<string>): Promise<void> {
  const { api } = bench.controlPlane.cluster;
  await Promise.all(
    [...names].map(async (name) => {
      await api.delete(`${GROUPS}/${name}`);
      await bench.gone(name);
    }),
  );
}
