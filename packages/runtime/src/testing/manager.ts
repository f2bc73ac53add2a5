import { collectingLogger, type LogLine, nodeWorld } from '@vmwright/core';
import { kubeconfigAccess } from '../access/kubeconfig.ts';
import { Manager, type ManagerOptions } from '../manager/manager.ts';

/** As a manager's own, but for the way to the cluster, which is the test's. */
export type TestManagerOptions = Without<ManagerOptions, 'access' | 'log'>;

/** `Omit` would make one of the alternatives that a manager has, and allow both at a time. */
type Without<O, K extends PropertyKey> = O extends unknown ? Partial<Omit<O, K>> : never;

/** A manager that runs until it is disposed of. */
export interface RunningManager extends AsyncDisposable {
  readonly manager: Manager;
  /** What it has logged so far. */
  readonly log: readonly LogLine[];
}

/**
 * Starts a program of controllers in this process and waits until its caches are filled:
 *
 *     await using running = await startManager(cluster, { namespaces: [namespace] }, (manager) => {
 *       manager.control({ for: Greeting, reconcile });
 *     });
 *
 * @param cluster where its kubeconfig is: the testbed's `Cluster`, or one limited to the roles that the program ships
 * @throws what `run` throws when the program ends before it is ready
 */
export async function startManager(
  cluster: { readonly kubeconfig: string },
  options: TestManagerOptions,
  build: (manager: Manager) => void,
): Promise<RunningManager> {
  const world = options.world ?? nodeWorld;
  const access = await kubeconfigAccess({ world, path: cluster.kubeconfig });
  const { logger, lines } = collectingLogger();
  const manager = new Manager({ name: 'test', ...options, world, access, log: logger });
  build(manager);
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  await Promise.race([manager.caches.synced(), running]);
  return {
    manager,
    log: lines,
    [Symbol.asyncDispose]: async () => {
      stop.abort(new Error('the test is over'));
      await running;
    },
  };
}
