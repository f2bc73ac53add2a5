import { messageOf } from '@vmwright/core';
import {
  customValueOf,
  FaultError,
  type Inventory,
  type InventoryChange,
  type ManagedObject,
  type Properties,
  type TypedManagedObject,
  type VcenterClient,
} from '@vmwright/vsphere';
import type { Maintenance } from './compute-facts.ts';
import { attributeMaintenance, type PlannedTask, plannedTask } from './host-maintenance.ts';

const TASK = [
  ...(['info.name', 'info.enabled', 'info.action', 'info.entity', 'info.taskObject', 'info.state'] as const),
  ...(['info.nextRunTime', 'info.prevRunTime'] as const),
];

export interface HostPlansOptions {
  readonly client: Pick<VcenterClient, 'inventory'>;
  /** Name of the custom attribute with the start of a host's maintenance. */
  readonly attribute: string;
  /** Called when the plans of any host may have changed. */
  readonly onChange: () => void;
  /** Called when `isLive` may have changed. */
  readonly onLiveness: () => void;
}

/** The parts of a host from which `HostPlans` computes its planned maintenance. */
type PlannedHost = Pick<TypedManagedObject<'HostSystem'>, 'ref'> & {
  readonly properties: Partial<Pick<Properties['HostSystem'], 'parent' | 'customValue'>>;
};

/**
 * Planned maintenance of the hosts of a vCenter, from scheduled tasks and the custom attribute. The vCenter user may
 * lack the permission to read these plans. So they have their own watch, and the watch of hosts and machines works
 * without them.
 */
export class HostPlans implements Disposable {
  readonly #options: HostPlansOptions;
  readonly #inventory: Inventory;
  /** Planned tasks by the reference of the host or cluster; undefined after a change, until they are computed again. */
  #tasks: ReadonlyMap<string, readonly PlannedTask[]> | undefined;
  /**
   * Keys of the custom attributes with the configured name. vCenter can have several custom attributes with the same
   * name, for different types of objects.
   */
  #keys: readonly number[] | undefined;
  /** Why vCenter rejects the watch; undefined if it does not. */
  #problem: string | undefined;

  constructor(options: HostPlansOptions) {
    this.#options = options;
    this.#inventory = options.client.inventory({
      properties: { ScheduledTask: TASK, CustomFieldsManager: ['field'] },
      lists: ({ scheduledTaskManager, customFieldsManager }) => [
        ...(scheduledTaskManager === undefined
          ? []
          : [{ owner: scheduledTaskManager, path: 'scheduledTask' }]),
        ...(customFieldsManager === undefined ? [] : [{ owner: customFieldsManager }]),
      ],
    });
    this.#inventory.onChange((change) => {
      if (!isRelevant(change)) return;
      this.#tasks = undefined;
      this.#keys = undefined;
      options.onChange();
    });
    this.#inventory.onLiveness(options.onLiveness);
  }

  /** Whether the plans are current. Also true if vCenter does not allow the user to read them. */
  get isLive(): boolean {
    return this.#inventory.isLive || this.#problem !== undefined;
  }

  /**
   * Records whether vCenter rejects the watch of the plans. Must be called only while the watch of hosts and machines
   * is live: otherwise an outage would count as a rejection.
   */
  checkRejected(): void {
    const { isLive, interruption } = this.#inventory;
    const isRejected = !isLive && interruption instanceof FaultError;
    const problem = isRejected
      ? `planned maintenance in vCenter cannot be read: ${messageOf(interruption)}`
      : undefined;
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#options.onChange();
  }

  /** Returns the planned maintenance of a host, earliest first, and warnings about maintenance that cannot be read. */
  of({ ref, properties: { parent, customValue } }: PlannedHost): {
    readonly maintenance: readonly Maintenance[];
    readonly warnings: readonly string[];
  } {
    this.#tasks ??= this.#readTasks();
    this.#keys ??= this.#readKeys();
    const tasks = [ref.value, parent?.value ?? ''].flatMap((entity) => this.#tasks?.get(entity) ?? []);
    const attributes = this.#keys
      .flatMap((key) => customValueOf(customValue, key) ?? [])
      .map((value) => attributeMaintenance(this.#options.attribute, value));
    const maintenance = [
      ...[...new Set(tasks)].map(({ startsAt, source }) => ({ startsAt, source })),
      ...attributes.flatMap((attribute) => attribute.maintenance ?? []),
    ];
    return {
      maintenance: maintenance.toSorted(
        (one, other) => one.startsAt - other.startsAt || (one.source < other.source ? -1 : 1),
      ),
      warnings: [
        ...(this.#problem === undefined ? [] : [this.#problem]),
        ...attributes.flatMap(({ warning }) => warning ?? []),
      ],
    };
  }

  #readTasks(): ReadonlyMap<string, readonly PlannedTask[]> {
    const planned = this.#inventory
      .list('ScheduledTask')
      .flatMap(({ properties }) => plannedTask(properties) ?? [])
      .flatMap((task) => task.entities.map((entity) => ({ entity, task })));
    const byEntity = Map.groupBy(planned, ({ entity }) => entity);
    return new Map([...byEntity].map(([entity, all]) => [entity, all.map(({ task }) => task)]));
  }

  #readKeys(): readonly number[] {
    return this.#inventory
      .list('CustomFieldsManager')
      .flatMap(({ properties }) => properties.field ?? [])
      .filter(
        ({ name, managedObjectType = '' }) =>
          name === this.#options.attribute && ['', 'HostSystem'].includes(managedObjectType),
      )
      .map(({ key }) => key);
  }

  [Symbol.dispose](): void {
    this.#inventory[Symbol.dispose]();
  }
}

/** Returns whether a change may concern a host. Most scheduled tasks, such as snapshots of machines, do not. */
function isRelevant(change: InventoryChange): boolean {
  const objects = change.kind === 'changed' ? [change.object, change.before] : [change.object];
  return objects.some((object) => !isTask(object) || plannedTask(object.properties) !== undefined);
}

function isTask(object: ManagedObject): object is ManagedObject & TypedManagedObject<'ScheduledTask'> {
  return object.ref.type === 'ScheduledTask';
}
