import type { Ref } from '../properties/properties.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';

/** Desired configuration of a machine. Omitted fields stay unchanged. */
export interface MachineConfig {
  readonly cpus?: number;
  readonly memoryMb?: number;
  readonly annotation?: string;
  /** Custom keys that vCenter stores with the machine, such as ownership labels. An empty value removes the key. */
  readonly extraConfig?: Readonly<Record<string, string>>;
  /** Other settings. The fields above override them. */
  readonly config?: Vim25['VirtualMachineConfigSpec'];
}

export interface CloneOptions extends MachineConfig {
  readonly name: string;
  readonly template: Ref<'VirtualMachine'>;
  readonly folder: Ref<'Folder'>;
  /** Resource pool of the clone. Required when cloning from a template. @default the pool of the source machine */
  readonly resourcePool?: Ref<'ResourcePool'>;
  readonly host?: Ref<'HostSystem'>;
  readonly datastore?: Ref<'Datastore'>;
  /** Storage policy ID for the disks. @default the policy of the datastore */
  readonly storagePolicy?: string;
  /** Creates a linked clone, based on a snapshot of the template. @default a full clone */
  readonly linked?: { readonly snapshot: Ref<'VirtualMachineSnapshot'> };
  /**
   * Instance UUID of the clone. If the response is lost, the caller can look the clone up by this UUID instead of
   * creating a second one.
   */
  readonly instanceUuid?: string;
  /** Whether the clone is powered on. @default false */
  readonly powerOn?: boolean;
}

export function configSpec({
  cpus,
  memoryMb,
  annotation,
  extraConfig,
  config = {},
}: MachineConfig): Vim25['VirtualMachineConfigSpec'] {
  const entries = Object.entries(extraConfig ?? {}).map(([key, value]) => ({
    _type: 'OptionValue',
    key,
    value,
  }));
  const options = [...(config.extraConfig ?? []), ...entries];
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
