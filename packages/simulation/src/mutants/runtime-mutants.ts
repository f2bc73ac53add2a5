import type { Mutant } from './mutant.ts';

const SRC = 'packages/runtime/src';
const scenario = 'runtime';

/** Mutants of the runtime's queue, cache, controller and client. */
export const RUNTIME_MUTANTS: readonly Mutant[] = [
  {
    name: 'work queue hands out a key that is already being processed',
    file: `${SRC}/queue/work-queue.ts`,
    find: `      case 'processing':
        entry.requeue =`,
    replace: `      case 'processing':
        this.#processing += 1;
        this.#makeReady(entry, now);
        break;
        entry.requeue =`,
    why: 'at most one worker at a time processes a key',
    scenario,
  },
  {
    name: 'work queue drops a key that is added while it is being processed',
    file: `${SRC}/queue/work-queue.ts`,
    find: 'if (requeue === undefined || this.#closed) {',
    replace: 'if (true) {',
    why: 'a change during a reconcile triggers another reconcile',
    scenario,
  },
  {
    name: 'controller drops changes that arrive during a reconcile',
    file: `${SRC}/controller/controller.ts`,
    find: 'if (!run.ownWrites.includes(pending.change)) this.#add(key, { priority: pending.priority });',
    replace: 'void pending;',
    why: 'a change during a reconcile triggers another reconcile',
    scenario,
  },
  {
    name: 'work queue timer is not rescheduled for an earlier key',
    file: `${SRC}/queue/work-queue.ts`,
    find: 'if (first === undefined || (this.#timer !== undefined && this.#timer.at <= first.readyAt)) return;',
    replace: 'if (first === undefined || this.#timer !== undefined) return;',
    why: 'the timer fires for the earliest waiting key',
    scenario,
  },
  {
    name: 'back-off grows when an unrelated event triggers a reconcile',
    file: `${SRC}/queue/backoff.ts`,
    find: 'if (now < known.retryAt) return known.retryAt;',
    replace: '',
    why: 'a failed reconcile that an event triggers during the back-off does not count as a further failure',
    scenario,
  },
  {
    name: 'back-off does not grow',
    file: `${SRC}/queue/backoff.ts`,
    find: 'known.failures += 1;',
    replace: '',
    why: 'an object that keeps failing is retried less and less often',
    scenario,
  },
  {
    name: 'reflector skips the event after a bookmark',
    file: `${SRC}/cache/reflector.ts`,
    find: 'this.#advance(event.resourceVersion);',
    replace: 'this.#advance(String(Number(event.resourceVersion) + 1));',
    why: 'a watch resumes exactly at the last version it received',
    scenario,
  },
  {
    name: 'cache keeps objects that were deleted while the watch was down',
    file: `${SRC}/cache/cache.ts`,
    find: 'for (const change of store.removeUnlisted(prefix, keys, version)) this.#notifyPublished(partition, change);',
    replace: '',
    why: 'an object that is missing from the list was deleted, even if no watch event reported it',
    scenario,
  },
  {
    name: 'watch resumes from a version of an incomplete list',
    file: `${SRC}/cache/reflector.ts`,
    find: "if (listed === undefined) this.#advance(object.metadata.resourceVersion ?? '');",
    replace: "this.#advance(object.metadata.resourceVersion ?? '');",
    why: 'an interrupted list starts again from the beginning',
    scenario,
  },
  {
    name: 'reflector does not relist after 410 Gone',
    file: `${SRC}/cache/reflector.ts`,
    find: 'if (error instanceof GoneError || error instanceof NotFoundError)',
    replace: 'if (error instanceof NotFoundError)',
    why: 'after 410 Gone the client must list again',
    scenario,
  },
  {
    name: 'silent watch stream is never closed',
    file: `${SRC}/cache/reflector.ts`,
    find: 'const IDLE_TIMEOUT_MS = 70_000;',
    replace: 'const IDLE_TIMEOUT_MS = 70_000_000;',
    why: 'a half-open connection reports no error, so only a timeout detects it',
    scenario,
  },
  {
    name: 'cache replaces a newer version with an older one',
    file: `${SRC}/cache/store.ts`,
    find: 'known.version >= version',
    replace: 'known.version === version',
    why: 'own writes stay visible while the watch is behind',
    scenario,
  },
  {
    name: 'own writes are not stored in the cache',
    file: `${SRC}/controller/work.ts`,
    find: 'caches.onWrite(write);',
    replace: '',
    why: 'a reconcile never acts on a state older than its own last write',
    scenario,
  },
  {
    name: 'late response restores a deleted object in the cache',
    file: `${SRC}/cache/cache.ts`,
    find: 'return versionOf(object) > Math.max(...versions);',
    replace: 'return true;',
    why: 'the watch can report a deletion before the response to an earlier write arrives',
    scenario,
  },
  {
    name: 'older event restores an object that this process deleted',
    file: `${SRC}/cache/store.ts`,
    find: 'this.#tombstones.get(uid)',
    replace: "this.#tombstones.get('')",
    why: 'own deletions stay visible while the watch is behind',
    scenario,
  },
  {
    name: 'list that is older than an own deletion clears its tombstone',
    file: `${SRC}/cache/store.ts`,
    find: '!keys.has(key) && version >= lastSeenVersion',
    replace: 'version >= lastSeenVersion',
    why: 'the watch may still report an object that is in the list',
    scenario,
  },
  {
    name: 'own writes enqueue the object',
    file: `${SRC}/controller/controller.ts`,
    find: 'if (!run.ownWrites.includes(pending.change)) this.#add(',
    replace: 'this.#add(',
    why: 'a status write must not trigger another reconcile of the same object',
    scenario,
  },
  {
    name: "unconditional write hides another writer's change",
    file: `${SRC}/controller/controller.ts`,
    find: 'if (conditional && object !== undefined)',
    replace: 'if (object !== undefined)',
    why: 'only a write with a resourceVersion precondition is known to contain no other change',
    scenario,
  },
  {
    name: 'finalizer is added after the first reconcile',
    file: `${SRC}/controller/controller.ts`,
    find: `      object = await setFinalizer(context.client, kind, object, finalizer.name, true);
    }
    return reconcile(object, context);`,
    replace: `      await reconcile(object, context);
      object = await setFinalizer(context.client, kind, this.#cache.get(key) ?? object, finalizer.name, true);
    }
    return reconcile(object, context);`,
    why: 'an external resource must not be leaked when the object is deleted immediately',
    scenario,
  },
  {
    name: 'finalizer is removed before finalize succeeds',
    file: `${SRC}/controller/controller.ts`,
    find: 'if (result !== undefined) return result; // `finalize` asks to be called again',
    replace: '',
    why: 'the object stays until its external resources are gone',
    scenario,
  },
  {
    name: "finalizer write overwrites other owners' finalizers",
    file: `${SRC}/controller/finalizer.ts`,
    find: 'const metadata = { uid, resourceVersion, finalizers: wanted ? [...others, finalizer] : others };',
    replace: 'const metadata = { uid, finalizers: wanted ? [...others, finalizer] : others };',
    why: 'a merge patch replaces the whole list, so the list must be current',
    scenario,
  },
  {
    name: 'status write has no resourceVersion precondition',
    file: `${SRC}/controller/set-status.ts`,
    find: 'const patch = { metadata: { uid, resourceVersion }, status: difference };',
    replace: 'void resourceVersion;\n  const patch = { metadata: { uid }, status: difference };',
    why: 'concurrent changes are not overwritten',
    scenario,
  },
  {
    name: 'client drops the resourceVersion of a status write',
    file: `${SRC}/client/client.ts`,
    find: 'const body = JSON.stringify(patch);',
    replace:
      "const body = JSON.stringify(patch, (field, value) => (field === 'resourceVersion' && subresource !== '' ? undefined : value));",
    why: 'a late write does not restore an old status',
    scenario,
  },
  {
    name: 'create is retried after a lost response',
    file: `${SRC}/client/client.ts`,
    find: "{ method: 'POST', path, body: bodyOf(kind, object), contentType: JSON_TYPE, idempotent: false },",
    replace:
      "{ method: 'POST', path, body: bodyOf(kind, object), contentType: JSON_TYPE, idempotent: true },",
    why: 'the first request may have been executed',
    scenario,
  },
  {
    name: 'fence is checked before the token is available',
    file: `${SRC}/client/requests.ts`,
    find: 'text(outgoing: ApiRequest): Promise<string> {',
    replace: `text(request: ApiRequest): Promise<string> {
    try {
      request.assertLeader?.();
    } catch (error) {
      return Promise.reject(error);
    }
    const outgoing = { ...request, assertLeader: undefined };
`,
    why: 'leadership may be lost between the check and the request',
    scenario,
  },
  {
    name: 'requests continue after leadership is lost',
    file: `${SRC}/controller/work.ts`,
    find: 'signal: fence.signal,',
    replace: '',
    why: 'a write without a response would block the reconcile, and the replica could not become a standby',
    scenario,
  },
  {
    name: 'leadership check always passes',
    file: `${SRC}/controller/work.ts`,
    find: 'assertLeader,\n    now:',
    replace: 'assertLeader: () => undefined,\n    now:',
    why: 'calls to external systems are fenced by this check',
    scenario,
  },
  {
    name: 'predicate drops deletions',
    file: `${SRC}/controller/predicates.ts`,
    find: "if (event.type !== 'changed' || before === undefined) return true;",
    replace: "if (event.type === 'removed') return false;\n  if (before === undefined) return true;",
    why: 'a deletion always triggers a reconcile',
    scenario,
  },
  {
    name: 'predicate treats a re-created object as the same object',
    file: `${SRC}/controller/predicates.ts`,
    find: 'if (before.metadata.uid !== event.object.metadata.uid) return true;',
    replace: '',
    why: 'an object that was deleted and re-created while the watch was down has the same generation',
    scenario,
  },
  {
    name: 'cache keeps objects that the watch reports as deleted',
    file: `${SRC}/cache/cache.ts`,
    find: 'notify(store().remove(keyOf(object.metadata), versionOf(object)));',
    replace: '',
    why: 'an object that is deleted, or no longer matches the selector, leaves the cache immediately',
    scenario,
  },
  {
    name: 'new leader does not enqueue the cached objects',
    file: `${SRC}/controller/controller.ts`,
    find: `    this.queue.open();
    this.#addAll();`,
    replace: '    this.queue.open();',
    why: 'events that arrive while the queue is closed are only in the cache',
    scenario,
  },
  {
    name: 'failed reconcile is not retried',
    file: `${SRC}/controller/controller.ts`,
    find: "if (outcome.cause !== 'terminal' && this.#owns(key)) this.queue.retry(key, { priority, atLeastMs });",
    replace: "if (outcome.cause === 'panic') this.queue.retry(key, { priority, atLeastMs });",
    why: 'each object is reconciled until it succeeds',
    scenario,
  },
  {
    name: 'leadership is released while a job still runs',
    file: `${SRC}/manager/job.ts`,
    find: 'if (share === undefined || work !== undefined) await this.#once(',
    replace: 'if (share === undefined || work !== undefined) void this.#once(',
    why: 'a job runs on one replica at a time',
    scenario,
  },
  {
    name: 'repeated event is not aggregated into a series',
    file: `${SRC}/events/recorder.ts`,
    find: 'if (series !== undefined) {',
    replace: 'if (series !== undefined && series.count < 0) {',
    why: 'a repeated event increments the series',
    scenario,
  },
  {
    name: 'lastTransitionTime changes without a transition',
    file: `${SRC}/conditions/conditions.ts`,
    find: 'before?.status === condition.status ? before.lastTransitionTime : time(now)',
    replace: 'time(now)',
    why: 'lastTransitionTime changes only when the status changes',
    scenario,
  },
];
