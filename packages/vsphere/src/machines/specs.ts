import type { Ref } from '../properties/properties.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';

/** What a machine shall be. What is left out stays as it is. */
export interface MachineConfig {
  readonly cpus?: number;
  readonly memoryMb?: number;
  readonly annotation?: string;
  /** Keys of one's own, kept with the machine: an owner's mark, say. An empty value removes a key. */
  readonly extraConfig?: Readonly<Record<string, string>>;
  /** Whatever else; what is said above goes first. */
  readonly config?: Vim25['VirtualMachineConfigSpec'];
}

export interface CloneOptions extends MachineConfig {
  readonly name: string;
  readonly template: Ref<'VirtualMachine'>;
  readonly folder: Ref<'Folder'>;
  /** A template has none of its own, so for one it is needed. */
  readonly resourcePool?: Ref<'ResourcePool'>;
  readonly host?: Ref<'HostSystem'>;
  readonly datastore?: Ref<'Datastore'>;
  /** The id of the storage policy that its disks follow. @default the datastore's */
  readonly storagePolicy?: string;
  /** With disks that build on those of a snapshot of the template. @default a full copy */
  readonly linked?: { readonly snapshot: Ref<'VirtualMachineSnapshot'> };
  /** By which it is known, chosen before it exists, so that a lost answer never makes a second one. */
  readonly instanceUuid?: string;
  /** @default false */
  readonly powerOn?: boolean;
}

export function configSpec({
  cpus,
  memoryMb,
  annotation,
  extraConfig,
  config = {},
}: MachineConfig): Vim25['VirtualMachineConfigSpec'] {
  const marks = Object.entries(extraConfig ?? {}).map(([key, value]) => ({
    _type: 'OptionValue',
    key,
    value,
  }));
  const options = [...(config.extraConfig ?? []), ...marks];
  return {
    ...config,
    ...(cpus !== undefined && { numCPUs: cpus }),
    ...(memoryMb !== undefined && { memoryMB: memoryMb }),
    ...(annotation !== undefined && { annotation }),
    ...(options.length > 0 && { extraConfig: options }),
  };
}

export function cloneSpec(options: CloneOptions): Vim25['VirtualMachineCloneSpec'] {
  const { resourcePool, host, datastore, storagePolicy, linked, instanceUuid, powerOn = false } = options;
  const config = configSpec(options);
  return {
    location: {
      ...(datastore !== undefined && { datastore }),
      ...(linked !== undefined && { diskMoveType: 'createNewChildDiskBacking' }),
      ...(resourcePool !== undefined && { pool: resourcePool }),
      ...(host !== undefined && { host }),
      ...(storagePolicy !== undefined && { profile: [profileSpec(storagePolicy)] }),
    },
    template: false,
    config: { ...config, ...(instanceUuid !== undefined && { instanceUuid }) },
    powerOn,
    ...(linked !== undefined && { snapshot: linked.snapshot }),
  };
}

function profileSpec(profileId: string): Vim25['VirtualMachineDefinedProfileSpec'] {
  return { _type: 'VirtualMachineDefinedProfileSpec', profileId };
}
