import { isA, type Properties } from '@vmwright/vsphere';
import type { Maintenance } from './compute-facts.ts';

/** Default name of the custom attribute with the start of a host's maintenance. */
export const MAINTENANCE_ATTRIBUTE = 'vmwright.dev/maintenance-start';

/** Names of operations that stop or interrupt the machines of a host: in lower case, without the suffix `_Task`. */
const OPERATIONS: ReadonlySet<string> = new Set([
  ...['entermaintenancemode', 'reboothost', 'shutdownhost', 'powerdownhosttostandby', 'disconnecthost'],
  // The same operations under the short names that some clients store.
  ...['reboot', 'shutdown', 'powerdowntostandby', 'disconnect'],
]);
/** Types of objects for which maintenance can be scheduled. A task for a cluster concerns all its hosts. */
const ENTITIES: ReadonlySet<string> = new Set(['HostSystem', 'ClusterComputeResource', 'ComputeResource']);
const RFC3339 = /^\d{4}-\d\d-(\d\d)[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;
/** Maximum length of an invalid attribute value in a warning. */
const MAX_VALUE_LENGTH = 64;

/** Planned maintenance, according to a scheduled task of vCenter. */
export interface PlannedTask extends Maintenance {
  /** References of hosts or clusters. A cluster stands for all its hosts. */
  readonly entities: readonly string[];
}

/**
 * Returns the host maintenance that a scheduled task performs. Undefined if the task does something else, or if it
 * neither runs nor will run (for example, because it is disabled).
 */
export function plannedTask(task: Partial<Properties['ScheduledTask']>): PlannedTask | undefined {
  const action = task['info.action'];
  if (action === undefined || !isA(action, 'MethodAction')) return undefined;
  const operation = action.name.slice(action.name.lastIndexOf('.') + 1).replace(/_Task$/i, '');
  if (!OPERATIONS.has(operation.toLowerCase())) return undefined;
  const entities = [task['info.entity'], task['info.taskObject']]
    .flatMap((entity) => (entity !== undefined && ENTITIES.has(entity.type) ? [entity.value] : []))
    .filter((value, index, all) => all.indexOf(value) === index);
  const startsAt = startOf(task);
  if (entities.length === 0 || startsAt === undefined) return undefined;
  return { entities, startsAt, source: `vCenter scheduled task '${task['info.name'] ?? ''}'` };
}

function startOf(task: Partial<Properties['ScheduledTask']>): number | undefined {
  // A running task counts as well: a host enters maintenance mode only when all machines have left it, which can take
  // hours.
  if (task['info.state'] === 'running') return task['info.prevRunTime']?.getTime() ?? 0;
  return task['info.enabled'] === true ? task['info.nextRunTime']?.getTime() : undefined;
}

/** Result of reading the custom attribute of a host. Both fields are undefined if the attribute is empty. */
export interface AttributeMaintenance {
  readonly maintenance?: Maintenance;
  /** Why the value cannot be used. */
  readonly warning?: string;
}

/** Parses the custom attribute of a host: an RFC 3339 time or `now`. */
export function attributeMaintenance(attribute: string, value: string): AttributeMaintenance {
  const text = value.trim();
  const source = `custom attribute '${attribute}'`;
  if (text === '') return {};
  if (text.toLowerCase() === 'now') return { maintenance: { startsAt: 0, source } };
  const startsAt = parseTime(text.toUpperCase());
  if (!Number.isNaN(startsAt)) return { maintenance: { startsAt, source } };
  const shown = text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text;
  return {
    warning: `${source} is '${shown}', which is neither a time such as 2030-01-31T22:00:00Z nor 'now'; correct or clear it`,
  };
}

/** Parses an RFC 3339 time. @returns milliseconds since the epoch, or NaN */
function parseTime(text: string): number {
  const [, day] = RFC3339.exec(text) ?? [];
  // Days that the month does not have are rejected: `Date` accepts February 30 as March 2.
  const date = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  if (day === undefined || date.getUTCDate() !== Number(day)) return Number.NaN;
  return Date.parse(text.replace(' ', 'T'));
}
