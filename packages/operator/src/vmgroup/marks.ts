import type { CallOptions, Ref, TypedManagedObject, VcenterClient } from '@vmwright/vsphere';
import { instanceUuid } from './names.ts';
import type { VmGroup } from './resource.ts';
import { GroupError } from './trouble.ts';

const CLUSTER = 'vmwright.cluster';
const UID = 'vmwright.uid';
const NAMESPACE = 'vmwright.namespace';
const NAME = 'vmwright.name';
const SLOT = 'vmwright.slot';
const TEMPLATE = 'vmwright.template';
const TEMPLATE_ID = 'vmwright.template-id';

/** Of a custom attribute on folders, which have no configuration to keep marks in. */
export const FOLDER_OWNER = 'vmwright.dev/owner';

/** What is written into a machine's configuration as it is made, so that we know it again whatever was lost. */
export function marksOf(
  cluster: string,
  { metadata, spec }: VmGroup,
  slot: number,
  template: Ref<'VirtualMachine'>,
): Readonly<Record<string, string>> {
  const { uid = '', namespace = '', name } = metadata;
  return {
    [CLUSTER]: cluster,
    [UID]: uid,
    [NAMESPACE]: namespace,
    [NAME]: name,
    [SLOT]: String(slot),
    [TEMPLATE]: spec.template,
    [TEMPLATE_ID]: template.value,
  };
}

/** The marks taken off: an empty value removes a key. */
export const NO_MARKS: Readonly<Record<string, string>> = {
  ...{ [CLUSTER]: '', [UID]: '', [NAMESPACE]: '', [NAME]: '', [SLOT]: '', [TEMPLATE]: '', [TEMPLATE_ID]: '' },
};

export interface Marks {
  readonly cluster: string;
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly slot: number;
  /** What it was made from, in the words of the spec of then, and the same in vCenter's. */
  readonly template: string;
  readonly templateId: string;
}

/**
 * What a machine of ours says of itself. Who copies one by hand copies its marks as well, but not its UUID: a copy is
 * not ours.
 */
export function marksIn({ properties }: TypedManagedObject<'VirtualMachine'>): Marks | undefined {
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

/** The same, as it is at this very moment: an inventory may not have been told yet. @throws GroupError as `certainMarksIn` */
export async function readMarks(
  vcenter: VcenterClient,
  ref: Ref<'VirtualMachine'>,
  options: CallOptions,
): Promise<Marks | undefined> {
  const paths = ['config.instanceUuid', 'config.extraConfig'] as const;
  return certainMarksIn({ ref, properties: await vcenter.read(ref, paths, options) });
}

/** @throws GroupError while vCenter does not tell what it is: it is being made, or its files cannot be reached */
export function certainMarksIn(machine: TypedManagedObject<'VirtualMachine'>): Marks | undefined {
  if (machine.properties['config.instanceUuid'] !== undefined) return marksIn(machine);
  throw new GroupError({
    reason: 'VcenterBusy',
    message: `vCenter does not show what machine ${machine.ref.value} is; it is asked again`,
    isPassing: true,
  });
}

/** Whose a folder is: of which cluster's group. */
export interface FolderOwner {
  readonly cluster: string;
  readonly uid: string;
  readonly namespace: string;
  /** Whether the operator created it: a folder that people have made is not removed. */
  readonly isOurs: boolean;
  /** The group is gone, and its folder stayed because of what others have in it. It is removed once it is empty. */
  readonly isKept?: boolean;
}

export function ownerText({ cluster, uid, namespace, isOurs, isKept }: FolderOwner): string {
  return [cluster, uid, namespace, ...(isOurs ? ['made'] : []), ...(isKept ? ['kept'] : [])].join(' ');
}

export function ownerIn(text: string | undefined): FolderOwner | undefined {
  const [cluster = '', uid = '', namespace = '', ...words] = (text ?? '').split(' ');
  if (uid === '') return undefined;
  return { cluster, uid, namespace, isOurs: words.includes('made'), isKept: words.includes('kept') };
}
