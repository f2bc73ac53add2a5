import { field, type KubeObject } from '@vmwright/testbed';
import { GROUPS, type WithVcenter } from '../../packages/operator/test/with-vcenter.ts';

const PATIENCE_MS = 120_000;

/** In seconds from the moment at which the groups were about to be created. */
interface Times {
  /** When its first machine ran. */
  first?: number;
  /** When all did. */
  done?: number;
}

export type Race = ReadonlyMap<string, Readonly<Required<Times>>>;

/**
 * Creates groups of so many replicas, all at once, and tells when each of them got on, as who looks at their status sees
 * it: by one watch for all, since looking costs the API server something that is then missing to the operator.
 */
export async function race(bench: WithVcenter, wanted: Readonly<Record<string, number>>): Promise<Race> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const { api } = bench.controlPlane.cluster;
  const times = new Map<string, Times>(Object.keys(wanted).map((name) => [name, {}]));
  const last = new Map<string, KubeObject>();
  const started = performance.now();
  const created = Promise.all(
    Object.entries(wanted).map(([name, replicas]) => bench.group(name, { replicas })),
  );
  created.catch(() => undefined); // told below; until then it must not end the run
  try {
    for await (const { object } of api.watch(GROUPS, signal)) {
      const { name } = object.metadata;
      const its = times.get(name);
      if (its === undefined) continue;
      last.set(name, object);
      const now = (performance.now() - started) / 1000;
      const ready = Number(field(object, 'status', 'readyReplicas') ?? 0);
      if (ready > 0) its.first ??= now;
      if (ready === wanted[name] && field(object, 'status', 'phase') === 'RUNNING') its.done ??= now;
      const finished = finishedIn(times);
      if (finished !== undefined) return finished;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  await created;
  const late = [...times].filter(([, { done }]) => done === undefined).map(([name]) => name);
  const said = late.map((name) => `${name}: ${field(last.get(name), 'status', 'lastMessage')}`);
  throw new Error(`not done in ${PATIENCE_MS / 1000} s: ${said.join('; ')}; see ${bench.operator.log}`);
}

function finishedIn(times: ReadonlyMap<string, Times>): Race | undefined {
  const finished = new Map<string, Required<Times>>();
  for (const [name, { first, done }] of times) {
    if (first === undefined || done === undefined) return undefined;
    finished.set(name, { first, done });
  }
  return finished;
}

/** Deletes groups and waits until nothing is left of them. */
export async function clear(bench: WithVcenter, names: Iterable<string>): Promise<void> {
  const { api } = bench.controlPlane.cluster;
  await Promise.all(
    [...names].map(async (name) => {
      await api.delete(`${GROUPS}/${name}`);
      await bench.gone(name);
    }),
  );
}
