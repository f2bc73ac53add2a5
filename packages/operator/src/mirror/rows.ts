import { VAPP_LABEL, type VirtualMachine } from './virtual-machine.ts';

/** A row of the table `vms` that is not soft-deleted. */
export interface Row {
  readonly id: string;
  readonly vmName: string;
  /** Empty if the column is null. */
  readonly namespace: string;
  /** UUID of the vApp, without the URN prefix. */
  readonly vapp: string;
  /** Empty if the column is null. */
  readonly status: string;
  /** Milliseconds since 1970; 0 if the column is null. */
  readonly createdAt: number;
}

const VAPP_URN = 'urn:vcloud:vapp:';

/** Returns the UUID part of a vApp's id, which is a URN in the database and a UUID in labels. */
export function vappUuid(id: string): string {
  return (id.startsWith(VAPP_URN) ? id.slice(VAPP_URN.length) : id).toLowerCase();
}

/** Returns the vApp that a VM's label names; undefined without the label. */
export function vappOf({ metadata }: VirtualMachine): string | undefined {
  const label = metadata.labels?.[VAPP_LABEL];
  return label === undefined || label === '' ? undefined : vappUuid(label);
}

/**
 * Returns whether a row describes a VM: names and namespaces must be equal. A row without a namespace matches VMs of
 * its vApp in any namespace. A row with a namespace does not match in other namespaces, because a VM can be copied
 * there with its labels. If the VM has a vApp label, the row must belong to that vApp. A row of another vApp belongs to
 * an earlier VM of the same name.
 */
export function describes(row: Row, vm: VirtualMachine): boolean {
  const { name, namespace = '' } = vm.metadata;
  if (row.vmName !== name) return false;
  const vapp = vappOf(vm);
  if (vapp === undefined) return row.namespace === namespace;
  return row.vapp === vapp && (row.namespace === namespace || row.namespace === '');
}

/** Returns the key of the VM that a row describes: `namespace/name`, or `/name` if the row has no namespace. */
export function vmKey({ namespace, vmName }: Pick<Row, 'namespace' | 'vmName'>): string {
  return `${namespace}/${vmName}`;
}

function isNewer(a: Row, b: Row): boolean {
  return a.createdAt === b.createdAt ? a.id > b.id : a.createdAt > b.createdAt;
}

/** The rows that describe a VM. */
export interface Match {
  /** The newest row, which the mirror updates. */
  readonly row: Row;
  /** Older rows that describe the VM, in no particular order. */
  readonly older: readonly Row[];
}

/**
 * The rows of the table as last read or written, without soft-deleted ones, indexed by the VM that they describe. They
 * are kept in memory because the table has no index on (namespace, vm_name). A lookup in the database would read the
 * whole table.
 */
export class RowIndex {
  readonly #byId = new Map<string, Row>();
  /** Ids of rows by `namespace/name`, or by `/vapp/name` for rows without a namespace. Most keys have one id. */
  readonly #byKey = new Map<string, string | readonly string[]>();

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): Row | undefined {
    return this.#byId.get(id);
  }

  rows(): IterableIterator<Row> {
    return this.#byId.values();
  }

  clear(): void {
    this.#byId.clear();
    this.#byKey.clear();
  }

  /** Adds a row, or replaces the row with the same id. */
  put(row: Row): void {
    const known = this.#byId.get(row.id);
    if (known !== undefined && indexKey(known) !== indexKey(row)) this.delete(row.id);
    this.#byId.set(row.id, row);
    const key = indexKey(row);
    const ids = this.#idsOf(key);
    if (ids.includes(row.id)) return;
    this.#byKey.set(key, ids.length === 0 ? row.id : [...ids, row.id]);
  }

  /** Stores the status that was written to a row. */
  setStatus(id: string, status: string): void {
    const row = this.#byId.get(id);
    if (row !== undefined) this.#byId.set(id, { ...row, status });
  }

  delete(id: string): void {
    const row = this.#byId.get(id);
    if (row === undefined) return;
    this.#byId.delete(id);
    const key = indexKey(row);
    const [first, ...rest] = this.#idsOf(key).filter((each) => each !== id);
    if (first === undefined) this.#byKey.delete(key);
    else this.#byKey.set(key, rest.length === 0 ? first : [first, ...rest]);
  }

  /** Returns the rows that describe a VM; undefined if there is none. */
  match(vm: VirtualMachine): Match | undefined {
    const { name, namespace = '' } = vm.metadata;
    const vapp = vappOf(vm);
    const ids = [
      ...this.#idsOf(`${namespace}/${name}`),
      ...(vapp === undefined ? [] : this.#idsOf(`/${vapp}/${name}`)),
    ];
    const rows = ids.flatMap((id) => this.#byId.get(id) ?? []).filter((row) => describes(row, vm));
    const [first, ...rest] = rows;
    if (first === undefined) return undefined;
    const row = rest.reduce((newest, each) => (isNewer(each, newest) ? each : newest), first);
    return { row, older: rows.filter((each) => each !== row) };
  }

  #idsOf(key: string): readonly string[] {
    const ids = this.#byKey.get(key) ?? [];
    return typeof ids === 'string' ? [ids] : ids;
  }
}

/** Returns the key of a row in the index: the key of its VM, or `/vapp/name` if the row has no namespace. */
function indexKey({ namespace, vapp, vmName }: Row): string {
  return namespace === '' ? `/${vapp}/${vmName}` : vmKey({ namespace, vmName });
}
