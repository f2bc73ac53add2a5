import type { Planted } from './planted.ts';

const SRC = 'packages/runtime/src';
const scenario = 'runtime';

/** In queue, cache, controller and client. */
export const RUNTIME_BUGS: readonly Planted[] = [
  {
    name: 'the queue hands out a key that is being worked on',
    file: `${SRC}/queue/work-queue.ts`,
    find: `      case 'processing':
        entry.requeue =`,
    replace: `      case 'processing':
        this.#processing += 1;
        this.#makeReady(entry, now);
        break;
        entry.requeue =`,
    why: 'one worker a key',
    scenario,
  },
  {
    name: 'the queue drops what is added while it is worked on',
    file: `${SRC}/queue/work-queue.ts`,
    find: 'if (requeue === undefined || this.#closed) {',
    replace: 'if (true) {',
    why: 'a change during a reconcile leads to another',
    scenario,
  },
  {
    name: 'the controller forgets changes told during a reconcile',
    file: `${SRC}/controller/controller.ts`,
    find: 'if (!run.own.includes(change)) this.#add(key, { priority: told });',
    replace: 'void [change, told];',
    why: 'a change during a reconcile leads to another',
    scenario,
  },
  {
    name: 'a timer that is brought forward is not set anew',
    file: `${SRC}/queue/work-queue.ts`,
    find: 'if (first === undefined || (this.#timer !== undefined && this.#timer.at <= first.readyAt)) return;',
    replace: 'if (first === undefined || this.#timer !== undefined) return;',
    why: 'the earliest of those that wait sets the timer',
    scenario,
  },
  {
    name: 'back-off grows with events of strangers',
    file: `${SRC}/queue/backoff.ts`,
    find: 'if (now < known.retryAt) return known.retryAt;',
    replace: '',
    why: 'an object that is woken early is no failure further',
    scenario,
  },
  {
    name: 'back-off does not grow',
    file: `${SRC}/queue/backoff.ts`,
    find: 'known.failures += 1;',
    replace: '',
    why: 'an object that keeps failing is tried ever less often',
    scenario,
  },
  {
    name: 'the reflector passes over the event after a bookmark',
    file: `${SRC}/cache/reflector.ts`,
    find: 'this.#reach(event.resourceVersion);',
    replace: 'this.#reach(String(Number(event.resourceVersion) + 1));',
    why: 'a watch is taken up exactly where it was',
    scenario,
  },
  {
    name: 'what was deleted during an outage stays cached',
    file: `${SRC}/cache/cache.ts`,
    find: 'if (key.startsWith(prefix) && !keys.has(key)) tell(store().remove(key, Number(resourceVersion)));',
    replace: `            void prefix;
            void key;
            void keys;
            void resourceVersion;`,
    why: 'a deletion that no watch has told shows by its absence from the list',
    scenario,
  },
  {
    name: 'a watch resumes from a version that it has not seen',
    file: `${SRC}/cache/reflector.ts`,
    find: "if (listed === undefined) this.#reach(object.metadata.resourceVersion ?? '');",
    replace: "this.#reach(object.metadata.resourceVersion ?? '');",
    why: 'a list that broke off is begun anew',
    scenario,
  },
  {
    name: '410 is taken for any other failure',
    file: `${SRC}/cache/reflector.ts`,
    find: 'if (error instanceof GoneError) this.#resourceVersion = undefined;',
    replace: '',
    why: 'what the server has forgotten is listed again',
    scenario,
  },
  {
    name: 'a silent stream is never given up',
    file: `${SRC}/cache/reflector.ts`,
    find: 'const SILENCE_MS = 70_000;',
    replace: 'const SILENCE_MS = 70_000_000;',
    why: 'a half-open connection does not say that it is one',
    scenario,
  },
  {
    name: 'an older version replaces a newer one in the cache',
    file: `${SRC}/cache/store.ts`,
    find: 'known.version >= version',
    replace: 'known.version === version',
    why: 'own writes stay visible when the watch comes behind',
    scenario,
  },
  {
    name: 'own writes are not put into the cache',
    file: `${SRC}/controller/work.ts`,
    find: 'caches.written(write);',
    replace: '',
    why: 'a reconcile never acts on a state older than its own last write',
    scenario,
  },
  {
    name: 'a late answer brings back what was deleted',
    file: `${SRC}/cache/cache.ts`,
    find: "return versionOf(object) > (this.#reached.get(namespaces === undefined ? '' : namespace) ?? 0);",
    replace: 'return true;',
    why: 'the watch may have told of the deletion before the answer to a write came',
    scenario,
  },
  {
    name: 'what a process has deleted comes back by an older event',
    file: `${SRC}/cache/store.ts`,
    find: 'this.#buried.get(uid)',
    replace: "this.#buried.get('nobody')",
    why: 'own deletions stay visible when the watch comes behind',
    scenario,
  },
  {
    name: 'a list that is older than an own deletion lets it be forgotten',
    file: `${SRC}/cache/store.ts`,
    find: '!keys.has(key) && version >= seen',
    replace: 'version >= seen',
    why: 'what the list still has may be told of once more',
    scenario,
  },
  {
    name: 'own writes wake the object again',
    file: `${SRC}/controller/controller.ts`,
    find: 'if (!run.own.includes(change)) this.#add(',
    replace: 'this.#add(',
    why: 'no loop is fed by its own status',
    scenario,
  },
  {
    name: "a write over a stranger's change is taken for one's own",
    file: `${SRC}/controller/controller.ts`,
    find: 'if (conditional && object !== undefined)',
    replace: 'if (object !== undefined)',
    why: 'only a write that names the version it replaces has nothing else behind it',
    scenario,
  },
  {
    name: 'the finalizer comes after the first reconcile',
    file: `${SRC}/controller/controller.ts`,
    find: `      object = await setFinalizer(context.client, kind, object, finalizer.name, true);
    }
    return reconcile(object, context);`,
    replace: `      await reconcile(object, context);
      object = await setFinalizer(context.client, kind, this.#cache.get(key) ?? object, finalizer.name, true);
    }
    return reconcile(object, context);`,
    why: 'what is made outside is not forgotten when the object is deleted at once',
    scenario,
  },
  {
    name: 'the finalizer goes before finalize has succeeded',
    file: `${SRC}/controller/controller.ts`,
    find: 'if (result !== undefined) return result; // not yet',
    replace: '',
    why: 'gone means gone',
    scenario,
  },
  {
    name: "others' finalizers are written over",
    file: `${SRC}/controller/finalizer.ts`,
    find: 'const metadata = { uid, resourceVersion, finalizers: wanted ? [...others, finalizer] : others };',
    replace: 'const metadata = { uid, finalizers: wanted ? [...others, finalizer] : others };',
    why: 'the list is replaced as a whole, so it must be the one that was seen',
    scenario,
  },
  {
    name: 'a status is written whatever has happened since',
    file: `${SRC}/controller/set-status.ts`,
    find: 'const patch = { metadata: { uid, resourceVersion }, status: difference };',
    replace: 'void resourceVersion;\n  const patch = { metadata: { uid }, status: difference };',
    why: 'what was changed meanwhile is not written over',
    scenario,
  },
  {
    name: 'a status is sent without the version that it names',
    file: `${SRC}/client/client.ts`,
    find: 'const body = JSON.stringify(patch);',
    replace:
      "const body = JSON.stringify(patch, (field, value) => (field === 'resourceVersion' && subresource !== '' ? undefined : value));",
    why: 'a late write does not bring an old status back',
    scenario,
  },
  {
    name: 'a create without an answer is sent again',
    file: `${SRC}/client/client.ts`,
    find: "{ method: 'POST', path, body: bodyOf(kind, object), contentType: JSON_TYPE, idempotent: false },",
    replace:
      "{ method: 'POST', path, body: bodyOf(kind, object), contentType: JSON_TYPE, idempotent: true },",
    why: 'it may have been carried out',
    scenario,
  },
  {
    name: 'the fence is asked before the token comes',
    file: `${SRC}/client/requests.ts`,
    find: 'text(outgoing: Outgoing): Promise<string> {',
    replace: `text(asked: Outgoing): Promise<string> {
    try {
      asked.allow?.();
    } catch (error) {
      return Promise.reject(error);
    }
    const outgoing = { ...asked, assertLeader: undefined };
`,
    why: 'what was allowed may not be any more when the request is sent',
    scenario,
  },
  {
    name: 'calls go on when the lead is lost',
    file: `${SRC}/controller/work.ts`,
    find: 'signal: fence.signal,',
    replace: '',
    why: 'a write without an answer would keep its reconcile from ending, and so the replica from standing by',
    scenario,
  },
  {
    name: 'whoever asks whether he may act is told that he may',
    file: `${SRC}/controller/work.ts`,
    find: 'assertLeader,\n    get log() {',
    replace: 'assertLeader: () => undefined,\n    get log() {',
    why: 'calls to the outside are fenced by it',
    scenario,
  },
  {
    name: 'a predicate drops deletions',
    file: `${SRC}/controller/predicates.ts`,
    find: "if (event.type !== 'changed' || before === undefined) return true;",
    replace: "if (event.type === 'removed') return false;\n  if (before === undefined) return true;",
    why: 'that something is gone is a change',
    scenario,
  },
  {
    name: 'a predicate takes what was created anew for the same object',
    file: `${SRC}/controller/predicates.ts`,
    find: 'if (before.metadata.uid !== event.object.metadata.uid) return true;',
    replace: '',
    why: 'deleted and created anew while the watch was away, it has the same generation',
    scenario,
  },
  {
    name: 'what the watch tells of as deleted stays cached',
    file: `${SRC}/cache/cache.ts`,
    find: 'tell(store().remove(keyOf(object.metadata), versionOf(object)));',
    replace: '',
    why: 'what is deleted, or leaves the selection, is gone from the cache at once',
    scenario,
  },
  {
    name: 'who leads again does not look at what happened meanwhile',
    file: `${SRC}/controller/controller.ts`,
    find: `    this.queue.open();
    for (const key of this.#cache.keys()) this.#add(key, { priority: LOW });`,
    replace: '    this.queue.open();',
    why: 'the queue was closed, and what came then is in the cache alone',
    scenario,
  },
  {
    name: 'a failed reconcile is not tried again',
    file: `${SRC}/controller/controller.ts`,
    find: "if (outcome.cause !== 'terminal' && this.#owns(key)) this.queue.retry(key, { priority, atLeastMs });",
    replace: "if (outcome.cause === 'panic') this.queue.retry(key, { priority, atLeastMs });",
    why: 'called for each object until it succeeds',
    scenario,
  },
  {
    name: 'a job is not waited for when the lead is given up',
    file: `${SRC}/manager/job.ts`,
    find: 'if (share === undefined || work !== undefined) await this.#once(',
    replace: 'if (share === undefined || work !== undefined) void this.#once(',
    why: 'it runs on one replica at a time',
    scenario,
  },
  {
    name: 'the same event is told anew each time',
    file: `${SRC}/events/recorder.ts`,
    find: 'if (series !== undefined) {',
    replace: 'if (series !== undefined && series.count < 0) {',
    why: 'telling the same again makes a series',
    scenario,
  },
  {
    name: 'a transition is told where there was none',
    file: `${SRC}/conditions/conditions.ts`,
    find: 'before?.status === condition.status ? before.lastTransitionTime : time(now)',
    replace: 'time(now)',
    why: 'saying the same again changes nothing',
    scenario,
  },
];
