import type { Choices } from '@vmwright/simulation';
import type { KindName } from './kinds.ts';

/** An object of a sequence. Its name on the server has the prefix of the sequence. */
export interface Ref {
  readonly kind: KindName;
  readonly name: string;
}

/** Selects one of the observed versions or UIDs of an object: `back` counts from the newest. */
export type Seen = { readonly back: number } | undefined;

export type Operation =
  | {
      readonly do: 'create';
      readonly ref: Ref;
      readonly generate: boolean;
      readonly content: object;
      readonly dryRun: boolean;
    }
  | { readonly do: 'get'; readonly ref: Ref }
  | {
      readonly do: 'list';
      readonly kind: KindName;
      readonly selector: string | undefined;
      readonly field: string | undefined;
      readonly limit: number | undefined;
      readonly metadataOnly: boolean;
      /** Whether to change objects after the first page. */
      readonly changeBetweenPages: boolean;
      /** Resource version to list at, taken from an observed object. */
      readonly at: { readonly back: number; readonly match: 'Exact' | 'NotOlderThan' } | undefined;
    }
  | {
      readonly do: 'apply';
      readonly ref: Ref;
      readonly by: number;
      readonly force: boolean;
      readonly content: object;
      readonly status: boolean;
      readonly version: Seen;
      readonly uid: Seen;
      readonly dryRun: boolean;
    }
  | {
      readonly do: 'merge';
      readonly ref: Ref;
      readonly by: number;
      readonly patch: object;
      readonly subresource: 'status' | undefined;
      readonly version: Seen;
      readonly uid: Seen;
      readonly dryRun: boolean;
    }
  | {
      readonly do: 'json';
      readonly ref: Ref;
      readonly patch: readonly JsonOperation[];
      readonly dryRun: boolean;
    }
  | {
      readonly do: 'delete';
      readonly ref: Ref;
      readonly version: Seen;
      readonly uid: Seen;
      readonly propagation: 'Foreground' | 'Background' | 'Orphan' | undefined;
      readonly dryRun: boolean;
    }
  | { readonly do: 'getScale'; readonly ref: Ref }
  | { readonly do: 'setScale'; readonly ref: Ref; readonly replicas: number; readonly dryRun: boolean }
  | {
      readonly do: 'own';
      readonly ref: Ref;
      readonly owner: Ref;
      readonly blocks: boolean;
      readonly missingOwner: boolean;
    };

export interface JsonOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'test';
  readonly path: string;
  readonly value?: unknown;
}

const NAMES = ['a', 'b', 'c'] as const;
const VALUES = ['1', '2', '3'] as const;
const KEYS = ['x', 'y', 'z'] as const;

export interface Sequence {
  /**
   * Whether the sequence writes the scale subresource. Two results of the real server are then random:
   * - If two managers have the same name, the server keeps either one as the owner of the field `replicas`.
   * - A scale to the current number of replicas may or may not count as a write.
   *
   * So such a sequence contains no apply, and its versions and owners are not compared.
   */
  readonly scaling: boolean;
  readonly operations: readonly Operation[];
}

/** Draws a sequence of operations. */
export function sequence(choices: Choices): Sequence {
  const scaling = choices.oneIn(6);
  const operations = drawn(choices);
  return {
    scaling,
    operations: scaling
      ? operations.map((each) => withScale(choices, each))
      : operations.filter((each) => each.do !== 'setScale'),
  };
}

/**
 * Adapts an operation to a sequence with `scaling`. Replaces an apply by a change of the scale, a create or a get.
 * Removes the version precondition of any other operation.
 */
function withScale(choices: Choices, operation: Operation): Operation {
  if (operation.do !== 'apply')
    return 'version' in operation ? { ...operation, version: undefined } : operation;
  const { ref, content, dryRun, status } = operation;
  if (ref.kind !== 'thing') return { do: 'get', ref };
  return status || choices.oneIn(2)
    ? { do: 'setScale', ref, replicas: choices.pick(4), dryRun }
    : { do: 'create', ref, generate: false, content, dryRun };
}

function drawn(choices: Choices): readonly Operation[] {
  const weighted = [
    'thing',
    'thing',
    'thing',
    'configmap',
    'configmap',
    'plain',
    'global',
    'lease',
    'secret',
  ] as const;
  const owning = choices.oneIn(5);
  const blocking = choices.oneIn(2);
  const main = owning ? 'configmap' : choices.one(weighted);
  const length = 10 + choices.pick(6);
  const rest = Array.from({ length }, () =>
    operation(choices, !owning && choices.oneIn(4) ? choices.one(weighted) : main, owning, blocking),
  );
  // Creates objects first, so that most operations find their object.
  const first = { do: 'create', generate: false, dryRun: false } as const;
  const created = (['a', 'b'] as const).map((name) => {
    return { ...first, ref: { kind: main, name }, content: whole(choices, main) };
  });
  const all = [...created, ...rest];
  // The real garbage collector deletes a non-blocking dependent either before or after its owner. If a finalizer keeps
  // the owner, the order is visible. So a sequence with a non-blocking dependent has no finalizers.
  const hasNonBlocking = all.some((each) => each.do === 'own' && !each.blocks);
  return hasNonBlocking ? all.map(withoutFinalizers) : all;
}

function withoutFinalizers(operation: Operation): Operation {
  const strip = (content: object): object =>
    JSON.parse(JSON.stringify(content, (key, value) => (key === 'finalizers' ? undefined : value)));
  if (operation.do === 'merge') return { ...operation, patch: strip(operation.patch) };
  return 'content' in operation ? { ...operation, content: strip(operation.content) } : operation;
}

function operation(choices: Choices, kind: KindName, owning: boolean, blocking: boolean): Operation {
  const ref = { kind, name: choices.one(NAMES) };
  const dryRun = choices.oneIn(10);
  const by = choices.pick(2);
  if (owning && choices.oneIn(3))
    return choices.oneIn(2)
      ? {
          do: 'own',
          // Creates no cycles of owners, because the real garbage collector breaks them, but the model does not.
          ref: { kind, name: choices.one(['b', 'c']) },
          owner: { kind, name: 'a' },
          blocks: blocking,
          missingOwner: choices.oneIn(6),
        }
      : deletion(choices, ref, dryRun);
  switch (choices.pick(kind === 'thing' ? 14 : 10)) {
    case 0:
    case 1:
      return { do: 'create', ref, generate: choices.oneIn(6), content: whole(choices, kind), dryRun };
    case 2:
      return { do: 'get', ref };
    case 3:
      return {
        do: 'list',
        kind,
        selector: choices.one([undefined, 'x=1', 'x!=1', 'x', '!x', 'x in (1,2)', 'x notin (1),y'] as const),
        field: choices.oneIn(4) ? 'metadata.name=' : undefined,
        limit: choices.oneIn(2) ? 1 + choices.pick(2) : undefined,
        metadataOnly: choices.oneIn(4),
        changeBetweenPages: choices.oneIn(3),
        at: choices.oneIn(3)
          ? { back: choices.pick(3), match: choices.one(['Exact', 'NotOlderThan'] as const) }
          : undefined,
      };
    case 4:
    case 5:
    case 6: {
      const force = !choices.oneIn(3);
      const content = whole(choices, kind, true);
      return {
        do: 'apply',
        ref,
        by,
        force,
        content,
        status: false,
        version: seen(choices, 8),
        uid: seen(choices, 10),
        dryRun,
      };
    }
    case 7:
      return merge(choices, ref, by, dryRun, undefined);
    case 8:
      return { do: 'json', ref, patch: jsonPatch(choices, kind), dryRun };
    case 9:
      return deletion(choices, ref, dryRun);
    case 10:
      return choices.oneIn(2)
        ? { do: 'getScale', ref }
        : { do: 'setScale', ref, replicas: choices.pick(4) - (choices.oneIn(10) ? 5 : 0), dryRun };
    case 11: {
      const force = !choices.oneIn(3);
      const content = { status: status(choices) };
      return {
        do: 'apply',
        ref,
        by,
        force,
        content,
        status: true,
        version: seen(choices, 8),
        uid: seen(choices, 10),
        dryRun,
      };
    }
    default:
      return merge(choices, ref, by, dryRun, 'status');
  }
}

function merge(
  choices: Choices,
  ref: Ref,
  by: number,
  dryRun: boolean,
  subresource: 'status' | undefined,
): Operation {
  const metadata = {
    ...(choices.oneIn(3) && {
      labels: { [choices.one(KEYS)]: choices.oneIn(3) ? null : choices.one(VALUES) },
    }),
    ...(choices.oneIn(6) && { annotations: { [choices.one(KEYS)]: choices.one(VALUES) } }),
    ...(choices.oneIn(4) && { finalizers: finalizers(choices) }),
  };
  const mixed = subresource === 'status' ? choices.oneIn(6) : true;
  const patch = {
    ...(mixed && Object.keys(metadata).length > 0 && { metadata }),
    ...(mixed && content(choices, ref.kind)),
    ...((subresource === 'status' || choices.oneIn(5)) &&
      ref.kind === 'thing' && { status: status(choices, subresource === 'status') }),
  };
  return {
    do: 'merge',
    ref,
    by,
    patch: nulled(choices, patch),
    subresource,
    version: seen(choices, 4),
    uid: seen(choices, 8),
    dryRun,
  };
}

/** Replaces some fields by null, which removes them. */
function nulled(choices: Choices, patch: object): object {
  if (!choices.oneIn(3)) return patch;
  const result: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(patch)) {
    if (name !== 'spec' && name !== 'data') {
      result[name] = part;
      continue;
    }
    const inner: Record<string, unknown> = {};
    for (const [field, value] of Object.entries(part)) inner[field] = choices.oneIn(2) ? null : value;
    result[name] = inner;
  }
  return result;
}

function deletion(choices: Choices, ref: Ref, dryRun: boolean): Operation {
  const propagation =
    ref.kind === 'configmap'
      ? choices.one([undefined, 'Background', 'Foreground', 'Orphan'] as const)
      : undefined;
  return { do: 'delete', ref, version: seen(choices, 4), uid: seen(choices, 4), propagation, dryRun };
}

function seen(choices: Choices, oneIn: number): Seen {
  return choices.oneIn(oneIn) ? { back: choices.oneIn(2) ? 0 : 1 + choices.pick(2) } : undefined;
}

function jsonPatch(choices: Choices, kind: KindName): readonly JsonOperation[] {
  const paths: readonly [string, ...string[]] =
    kind === 'configmap' || kind === 'secret'
      ? ['/data/x', '/data/y', '/data']
      : kind === 'lease'
        ? ['/spec/leaseDurationSeconds', '/spec/leaseTransitions']
        : ['/spec/level', '/metadata/labels/x', '/spec/labels/x', '/spec/tags/0', '/spec/nested/b/c'];
  return Array.from({ length: 1 + choices.pick(2) }, () => {
    const op = choices.one(['add', 'test', 'replace', 'remove'] as const);
    const path = choices.one(paths);
    return op === 'remove' ? { op, path } : { op, path, value: valueAt(choices, path, kind) };
  });
}

function valueAt(choices: Choices, path: string, kind: KindName): unknown {
  if (path === '/data') return { [choices.one(KEYS)]: text(choices, kind) };
  if (path.startsWith('/data/')) return text(choices, kind);
  if (path.startsWith('/spec/le')) return 1 + choices.pick(3);
  return choices.one(VALUES);
}

function text(choices: Choices, kind: KindName): string {
  const value = choices.one(VALUES);
  return kind === 'secret' ? Buffer.from(value).toString('base64') : value;
}

function finalizers(choices: Choices): readonly string[] {
  return choices.one<readonly string[]>([[], ['test.dev/a'], ['test.dev/b'], ['test.dev/a', 'test.dev/b']]);
}

function whole(choices: Choices, kind: KindName, applied = false): object {
  return {
    metadata: {
      ...(choices.oneIn(2) && {
        labels: { [choices.one(KEYS)]: choices.oneIn(12) ? 'not good' : choices.one(VALUES) },
      }),
      ...(choices.oneIn(5) && { annotations: { [choices.one(KEYS)]: choices.one(VALUES) } }),
      ...(choices.oneIn(5) && {
        finalizers: applied ? ['test.dev/a', 'test.dev/b'].slice(choices.pick(2)) : finalizers(choices),
      }),
    },
    ...content(choices, kind, applied),
    ...(kind === 'thing' && choices.oneIn(6) && { status: status(choices) }),
  };
}

function content(choices: Choices, kind: KindName, applied = false): object {
  switch (kind) {
    case 'thing':
      return { spec: spec(choices, applied) };
    case 'plain':
    case 'global':
      return {
        spec: {
          ...(choices.oneIn(2) && { level: choices.pick(4) }),
          ...(choices.oneIn(2) && { labels: keyed(choices, kind) }),
        },
      };
    case 'lease':
      return {
        spec: {
          ...(choices.oneIn(2) && { holderIdentity: choices.one(['', 'me', 'you']) }),
          ...(choices.oneIn(2) && { leaseDurationSeconds: choices.pick(3) }),
          ...(choices.oneIn(2) && { renewTime: `2026-01-01T00:00:0${choices.pick(5)}.000000Z` }),
          ...(choices.oneIn(2) && { leaseTransitions: choices.pick(4) - (choices.oneIn(8) ? 4 : 0) }),
        },
      };
    default:
      return choices.oneIn(6)
        ? {}
        : { data: { ...keyed(choices, kind), ...(choices.oneIn(20) && { 'bad key': text(choices, kind) }) } };
  }
}

function keyed(choices: Choices, kind: KindName): Record<string, string> {
  const result: Record<string, string> = {};
  for (const key of KEYS) if (choices.oneIn(2)) result[key] = text(choices, kind);
  return result;
}

function spec(choices: Choices, applied: boolean): object {
  const some = () => choices.oneIn(3);
  const disks = NAMES.filter(() => choices.oneIn(2)).map((name) => ({
    name,
    ...(choices.oneIn(2) && { size: choices.pick(3) }),
    ...(choices.oneIn(3) && { note: choices.one(VALUES) }),
  }));
  return {
    ...(some() && { level: choices.pick(12) }),
    ...(some() && { power: choices.oneIn(10) ? 'Full' : choices.one(['High', 'Low']) }),
    ...(choices.oneIn(6) && { nick: choices.one(['ab', 'abc', 'too long']) }),
    ...(some() && { disks: choices.oneIn(2) ? disks : disks.toReversed() }),
    ...(some() && { tags: KEYS.filter(() => choices.oneIn(2)) }),
    ...(some() && { steps: [1, 2, 3].filter(() => choices.oneIn(2)) }),
    ...(some() && { labels: keyed(choices, 'thing') }),
    ...(some() && { options: keyed(choices, 'thing') }),
    ...(some() && {
      nested: {
        ...(some() && { a: choices.one(VALUES) }),
        ...(some() && { b: some() ? {} : { c: choices.one(VALUES) } }),
      },
    }),
    ...(some() && {
      extra: choices.one<unknown>([
        { deep: { list: [1, 'a'], on: true } },
        { deep: { on: false } },
        'text',
        7,
      ]),
    }),
    ...(choices.oneIn(4) && { replicas: choices.pick(3) - (choices.oneIn(10) ? 3 : 0) }),
    // An apply contains no unknown field, because the server would reject it. In other writes, the server drops the
    // field.
    ...(!applied && choices.oneIn(6) && { unknown: 'dropped' }),
  };
}

/** @param mayBeInvalid whether the status may violate its schema */
function status(choices: Choices, mayBeInvalid = false): object {
  return {
    ...(choices.oneIn(2) && { phase: mayBeInvalid && choices.oneIn(8) ? 7 : choices.one(VALUES) }),
    ...(choices.oneIn(3) && {
      replicas: mayBeInvalid && choices.oneIn(6) ? choices.one<unknown>(['many', -1]) : choices.pick(3),
    }),
    ...(choices.oneIn(4) && { selector: `app=${choices.one(VALUES)}` }),
    ...(choices.oneIn(2) && {
      conditions: ['Ready', 'Synced']
        .filter(() => choices.oneIn(2))
        .map((type) => ({ type, status: choices.one(['True', 'False']) })),
    }),
  };
}
