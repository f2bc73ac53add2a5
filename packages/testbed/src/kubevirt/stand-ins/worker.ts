import type { Api, KubeObject } from '../../kubernetes/api.ts';
import { Mirror } from '../../kubernetes/mirror.ts';
import { retry } from './retry.ts';

/**
 * Calls `work` for an object of a kind when the object is added or changed. Ignores changes while a call for the same
 * object is running. Repeats a call that throws, as long as the object exists.
 */
export function startWorker(api: Api, path: string, work: (object: KubeObject) => Promise<void>): Mirror {
  const inProgress = new Set<string>();
  const objects = new Mirror(api, path, ({ metadata: { uid } }) => void run(uid));
  return objects;

  async function run(uid: string): Promise<void> {
    if (inProgress.has(uid)) return;
    inProgress.add(uid);
    await retry(
      async () => {
        const object = objects.get(uid);
        if (object !== undefined) await work(object);
      },
      () => objects.get(uid) !== undefined && !objects.disposed,
    );
    inProgress.delete(uid);
  }
}
