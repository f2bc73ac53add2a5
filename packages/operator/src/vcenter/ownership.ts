import { createHash } from 'node:crypto';
import type { CallOptions, Ref, TypedManagedObject, VcenterClient } from '@vmwright/vsphere';
import { ReportedError } from './errors.ts';

const CLUSTER = 'vmwright.cluster';
const UID = 'vmwright.uid';
const NAMESPACE = 'vmwright.namespace';
const NAME = 'vmwright.name';
const SLOT = 'vmwright.slot';
const TEMPLATE = 'vmwright.template';
const TEMPLATE_ID = 'vmwright.template-id';

/** Name of the custom attribute that records the owner of a folder. Folders have no extraConfig. */
export const FOLDER_OWNER = 'vmwright.dev/owner';

/** Owner and origin of a machine, as its ownership labels record them. */
export interface Ownership {
  /** Id of the Kubernetes cluster. */
  readonly cluster: string;
  /** UID, namespace and name of the owner object. */
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly slot: number;
  /** Template of the machine, as the spec named it when the machine was cloned. */
  readonly template: string;
  /** Reference of that template. */
  readonly templateId: string;
}

/**
 * Returns the ownership labels of a machine. The clone request writes them to the extraConfig of the machine. So the
 * operator recognises the machine even if the operator's own state is lost.
 */
export function ownershipLabels(ownership: Ownership): Readonly<Record<string, string>> {
  return {
    [CLUSTER]: ownership.cluster,
    [UID]: ownership.uid,
    [NAMESPACE]: ownership.namespace,
    [NAME]: ownership.name,
    [SLOT]: String(ownership.slot),
    [TEMPLATE]: ownership.template,
    [TEMPLATE_ID]: ownership.templateId,
  };
}

/** extraConfig that removes the ownership labels: vCenter deletes a key with an empty value. */
export const NO_OWNERSHIP: Readonly<Record<string, string>> = {
  [CLUSTER]: '',
  [UID]: '',
  [NAMESPACE]: '',
  [NAME]: '',
  [SLOT]: '',
  [TEMPLATE]: '',
  [TEMPLATE_ID]: '',
};

/**
 * Returns the `instanceUuid` of a machine: a name-based UUID (version 5), known before the machine exists.
 * @param uid UID of the VmGroup
 * @param slot number of the machine in the group
 */
export function instanceUuid(uid: string, slot: number): string {
  const bytes = createHash('sha1').update(`vmwright.dev/vmgroup/${uid}/${slot}`).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/**
 * Returns the ownership of a machine; undefined if the operator does not own the machine. If people copy a machine, the
 * copy has the same labels but another UUID, so the operator does not own the copy.
 */
export function ownershipOf({ properties }: TypedManagedObject<'VirtualMachine'>): Ownership | undefined {
  const values = new Map<string, string>();
  for (const { key, value } of properties['config.extraConfig'] ?? [])
    if (typeof value === 'string') values.set(key, value);
  const uid = values.get(UID) ?? '';
  const slot = Number(values.get(SLOT) ?? Number.NaN);
  if (uid === '' || !Number.isInteger(slot)) return undefined;
  if (properties['config.instanceUuid'] !== instanceUuid(uid, slot)) return undefined;
  return {
    cluster: values.get(CLUSTER) ?? '',
    uid,
    namespace: values.get(NAMESPACE) ?? '',
    name: values.get(NAME) ?? '',
    slot,
    template: values.get(TEMPLATE) ?? '',
    templateId: values.get(TEMPLATE_ID) ?? '',
  };
}

/**
 * Reads the ownership of a machine from vCenter, because the inventory may lag behind vCenter.
 * @throws ReportedError in the same cases as `knownOwnershipOf`
 */
export async function readOwnership(
  client: VcenterClient,
  ref: Ref<'VirtualMachine'>,
  options: CallOptions,
): Promise<Ownership | undefined> {
  const paths = ['config.instanceUuid', 'config.extraConfig'] as const;
  return knownOwnershipOf({ ref, properties: await client.read(ref, paths, options) });
}

/**
 * Returns the same as `ownershipOf`, but throws if the configuration of the machine is unknown. `ownershipOf` would
 * return undefined, as for a machine that the operator does not own.
 * @throws ReportedError if vCenter does not show the configuration: the machine is being created, or its files are
 * unavailable
 */
export function knownOwnershipOf(machine: TypedManagedObject<'VirtualMachine'>): Ownership | undefined {
  if (machine.properties['config.instanceUuid'] !== undefined) return ownershipOf(machine);
  throw new ReportedError({
    reason: 'VcenterBusy',
    message: `vCenter does not show the configuration of machine ${machine.ref.value} yet; retrying automatically`,
    isProgressing: true,
  });
}

/** Owner of a folder, as the custom attribute `FOLDER_OWNER` records it. */
export interface FolderOwner {
  readonly cluster: string;
  readonly uid: string;
  readonly namespace: string;
  /** Whether the operator created the folder. A folder that people created is never removed. */
  readonly isOurs: boolean;
  /**
   * Whether the folder contained foreign objects when its group was deleted. The folder was kept then, and is removed
   * once it is empty.
   */
  readonly isKept?: boolean;
}

/** Returns the value of the custom attribute for an owner. */
export function folderOwnerText({ cluster, uid, namespace, isOurs, isKept }: FolderOwner): string {
  return [cluster, uid, namespace, ...(isOurs ? ['made'] : []), ...(isKept ? ['kept'] : [])].join(' ');
}

/** Parses the value of the custom attribute; undefined for a folder without an owner. */
export function folderOwnerFrom(text: string | undefined): FolderOwner | undefined {
  const [cluster = '', uid = '', namespace = '', ...words] = (text ?? '').split(' ');
  if (uid === '') return undefined;
  return { cluster, uid, namespace, isOurs: words.includes('made'), isKept: words.includes('kept') };
}
