import { collectingLogger, type LogLine, nodeWorld } from '@vmwright/core';
import { kubeconfigAccess } from '../access/kubeconfig.ts';
import { Manager } from '../manager/manager.ts';
import type { ManagerOptions } from '../manager/options.ts';

/** Manager options without `access` and `log`, which `startManager` provides. */
export type TestManagerOptions = Without<ManagerOptions, 'access' | 'log'>;

/** Like `Omit`, but distributive: `Omit` would merge the election and sharding alternatives and allow both together. */
type Without<O, K extends PropertyKey> = O extends unknown ? Partial<Omit<O, K>> : never;

/** Manager that runs until it is disposed. */
export interface RunningManager extends AsyncDisposable {
  readonly manager: Manager;
  /** Lines logged so far. */
  readonly log: readonly LogLine[];
}

/**
 * Starts a manager in this process and waits until its caches have synced:
 *
 *     await using running = await startManager(cluster, { namespaces: [namespace] }, (manager) => {
 *       manager.control({ for: Greeting, reconcile });
 *     });
 *
 * @param cluster the testbed's `Cluster`, or another object with the path of a kubeconfig. That kubeconfig can be one
 *   of a service account with only the program's roles
 * @throws the error of `run` if the manager ends before its caches have synced
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
      stop.abort(new Error('the test has finished'));
      await running;
    },
  };
}
