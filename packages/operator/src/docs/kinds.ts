import type { DeclaredKind, schema } from '@vmwright/runtime';
import { CONDITIONS as GPUINFO_CONDITIONS } from '../gpuinfo/conditions.ts';
import { GPUInfo } from '../gpuinfo/resource.ts';
import { CONDITIONS as VIRTUAL_MACHINE_CONDITIONS } from '../virtualmachine/conditions.ts';
import { VirtualMachine } from '../virtualmachine/resource.ts';
import { CONDITIONS as VM_CONDITIONS } from '../vm/conditions.ts';
import { VM } from '../vm/resource.ts';
import { CONDITIONS as IMAGE_CONDITIONS } from '../vmdiskimage/conditions.ts';
import { VMDiskImage } from '../vmdiskimage/resource.ts';
import { CONDITIONS as VMGROUP_CONDITIONS } from '../vmgroup/conditions.ts';
import { VmGroup } from '../vmgroup/resource.ts';
import { COMMON_CONDITIONS, type ConditionDoc } from './conditions.ts';
import { type FieldDoc, fieldsOf, type RuleDoc, rulesOf } from './fields.ts';

/** Reference of a kind, for the documentation. */
export interface KindDoc {
  readonly kind: string;
  readonly group: string;
  /** Served versions; the first one is the storage version. */
  readonly versions: readonly string[];
  /** Fields of the stored version. */
  readonly spec: readonly FieldDoc[];
  readonly status: readonly FieldDoc[];
  /** Rules that the API server checks besides types and limits. */
  readonly rules: readonly RuleDoc[];
  readonly conditions: readonly ConditionDoc[];
}

const CONDITIONS: readonly (readonly [DeclaredKind, readonly ConditionDoc[]])[] = [
  [VM, VM_CONDITIONS],
  [VmGroup, VMGROUP_CONDITIONS],
  [VirtualMachine, VIRTUAL_MACHINE_CONDITIONS],
  [VMDiskImage, IMAGE_CONDITIONS],
  [GPUInfo, GPUINFO_CONDITIONS],
];

/** Returns the reference of every kind. */
export function kindDocs(): readonly KindDoc[] {
  return CONDITIONS.map(([kind, conditions]) => {
    const { versions } = kind.declaration;
    const root: schema.SchemaNode = kind.schema;
    const { spec = {}, status = {} } = root.properties ?? {};
    return {
      kind: kind.kind,
      group: kind.group,
      versions: versions
        .toSorted((a, b) => Number(b.storage ?? false) - Number(a.storage ?? false))
        .map(({ name }) => name),
      spec: fieldsOf(spec, 3),
      // Two levels only. Deeper fields of a status are fields of the Pod API, such as those in `placement` of GPUInfo.
      // The description of their parent covers them.
      status: fieldsOf(status, 2),
      rules: [...rulesOf({ ...root, properties: {} }), ...rulesOf(spec)],
      conditions: [...conditions, ...COMMON_CONDITIONS],
    };
  });
}
