import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { TableRow } from '../database/table.ts';
import type { Schedule } from '../world/schedule.ts';
import { SimulatedVm, VAPP_LABEL } from './virtual-machine.ts';

/** The VM that a row describes, as of a resource version. */
export interface View {
  readonly version: number;
  /** Virtual time of the version. */
  readonly atMs: number;
  /** Undefined if the row describes no existing VM. */
  readonly vm: StoredObject | undefined;
}

interface Entry {
  readonly version: number;
  readonly atMs: number;
  readonly key: string;
  readonly vm: StoredObject | undefined;
}

const VAPP_URN = 'urn:vcloud:vapp:';

/** All versions of all VMs, as they were stored in the API server. */
export class Timeline {
  readonly #entries = new Map<string, Entry[]>();

  constructor(server: ApiServer, schedule: Schedule) {
    server.listen(({ resource, key, number, before, after }) => {
      if (resource.kind.kind !== SimulatedVm.kind) return;
      const name = (after ?? before)?.object.metadata.name ?? '';
      const entries = this.#entries.get(name) ?? [];
      this.#entries.set(name, entries);
      entries.push({ version: number, atMs: schedule.now, key, vm: after?.object });
    });
  }

  /** Returns the VMs that a row described over time. The first view has the version 0 and no VM. */
  views(row: TableRow): readonly View[] {
    const views: View[] = [{ version: 0, atMs: 0, vm: undefined }];
    const current = new Map<string, StoredObject>();
    for (const { version, atMs, key, vm } of this.#entries.get(row.vmName ?? '') ?? []) {
      if (vm === undefined) current.delete(key);
      else current.set(key, vm);
      const described = [...current.values()].find((each) => describes(row, each));
      if (described !== views.at(-1)?.vm) views.push({ version, atMs, vm: described });
    }
    return views;
  }
}

/**
 * Whether a row describes a VM. The names must match. If the VM has no vApp label, the namespaces must match, too. If
 * it has the label, the vApp must match, and the row's namespace must match or be null.
 */
export function describes({ vmName, namespace, vappId }: TableRow, { metadata }: StoredObject): boolean {
  if (vmName !== metadata.name) return false;
  const label = metadata.labels?.[VAPP_LABEL];
  if (label === undefined) return namespace === metadata.namespace;
  return vappId === VAPP_URN + label && (namespace === metadata.namespace || namespace === null);
}

export function urnOf(vapp: string): string {
  return VAPP_URN + vapp;
}
