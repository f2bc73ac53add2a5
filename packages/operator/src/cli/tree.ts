import type { KubeObject } from '@vmwright/runtime';
import type { Family } from './children.ts';
import { at, conditionAt, listAt, textAt } from './fields.ts';

/** A line of the tree: an object, a machine outside the cluster, or a group of equal objects or machines. */
export interface TreeNode {
  /** `VM/web`, `server 5f0f…`, `3 machines: a, b, c`. */
  readonly label: string;
  /** Kind of the object or machine; nodes of one kind can be grouped. */
  readonly kind: string;
  /** Name of the object or machine, for the label of a group. */
  readonly name: string;
  readonly ready: 'True' | 'False' | 'Unknown' | '';
  readonly reason: string;
  readonly message: string;
  /** Time of the last change of `ready`, in RFC 3339; empty if it is unknown. */
  readonly since: string;
  readonly children: readonly TreeNode[];
}

/** Returns the tree of an object, with its children and the machines outside the cluster that its status names. */
export function treeOf({ kind, object, children, isReferenced = false }: Family): TreeNode {
  const { name, namespace } = object.metadata;
  const label = isReferenced ? `${kind}/${name} in ${namespace ?? '-'} (referenced)` : `${kind}/${name}`;
  return {
    label,
    kind,
    name,
    ...stateOf(kind, object),
    children: [...children.map(treeOf), ...outsideOf(kind, object)],
  };
}

type NodeState = Pick<TreeNode, 'ready' | 'reason' | 'message' | 'since'>;

function stateOf(kind: string, object: KubeObject): NodeState {
  const ready = conditionAt(object, 'Ready');
  if (ready !== undefined) {
    const { status, reason, message, lastTransitionTime: since } = ready;
    return { ready: status, reason, message, since };
  }
  const phase = textAt(object, 'status', 'printableStatus') || textAt(object, 'status', 'phase');
  if (kind === 'VolumeSnapshot') return snapshotState(object);
  const isGood = GOOD_PHASES.has(phase);
  return { ready: phase === '' ? '' : isGood ? 'True' : 'False', reason: phase, message: '', since: '' };
}

const GOOD_PHASES: ReadonlySet<string> = new Set(['Running', 'Succeeded', 'Bound']);

function snapshotState(object: KubeObject): NodeState {
  const message = textAt(object, 'status', 'error', 'message');
  const isReady =
    object.metadata.deletionTimestamp === undefined &&
    message === '' &&
    at(object, 'status', 'readyToUse') === true;
  return {
    ready: isReady ? 'True' : 'False',
    reason: isReady ? 'ReadyToUse' : 'NotReady',
    message,
    since: '',
  };
}

/** Returns the machines outside the cluster, as the status of the object reports them. */
function outsideOf(kind: string, object: KubeObject): readonly TreeNode[] {
  if (kind === 'VM') {
    const [id, state] = [textAt(object, 'status', 'vmId'), textAt(object, 'status', 'opStatus')];
    return id === '' ? [] : [machine('server', id, state === 'Running', state)];
  }
  if (kind !== 'VmGroup') return [];
  return listAt(object, 'status', 'replicas').map((replica) => {
    const power = textAt(replica, 'power') || 'not created';
    return machine('machine', textAt(replica, 'name'), power === 'poweredOn', power);
  });
}

function machine(kind: string, name: string, isRunning: boolean, state: string): TreeNode {
  return {
    label: `${kind} ${name}`,
    kind,
    name,
    ready: isRunning ? 'True' : 'False',
    reason: state,
    message: '',
    since: '',
    children: [],
  };
}

/** Maximum number of names in the label of a group. */
const MOST_NAMED = 3;

/**
 * Shortens a tree as `clusterctl describe` does: groups equal children, and removes the message of a child if it only
 * repeats the message of the parent.
 */
export function shorten(node: TreeNode): TreeNode {
  const groups = Map.groupBy(node.children.map(shorten), (child) =>
    child.children.length > 0
      ? child
      : JSON.stringify([child.kind, child.ready, child.reason, child.message]),
  );
  const children = [...groups.values()].flatMap((group) => groupOf(group));
  return { ...node, children: children.map((child) => withoutEcho(child, node)) };
}

function groupOf(nodes: readonly TreeNode[]): readonly TreeNode[] {
  const [first] = nodes;
  if (first === undefined || nodes.length === 1) return nodes;
  const named = nodes.slice(0, MOST_NAMED).map(({ name }) => name);
  const more = nodes.length > MOST_NAMED ? ', …' : '';
  return [{ ...first, label: `${nodes.length} ${first.kind}s: ${named.join(', ')}${more}` }];
}

function withoutEcho(child: TreeNode, parent: TreeNode): TreeNode {
  const isEcho = child.ready === parent.ready && child.message === parent.message && child.message !== '';
  return isEcho ? { ...child, message: '' } : child;
}
