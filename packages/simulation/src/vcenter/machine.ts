import { text, val } from './xml.ts';

export type Power = 'poweredOn' | 'poweredOff' | 'suspended';

/** A virtual machine or a template. Immutable. */
export interface Machine {
  readonly id: string;
  readonly name: string;
  /** Id of the containing folder. */
  readonly folder: string;
  readonly instanceUuid: string;
  readonly isTemplate: boolean;
  readonly power: Power;
  readonly host: string;
  readonly cpus: number;
  readonly memoryMb: number;
  /** Whether CPUs can be added while the machine runs. */
  readonly canAddCpus: boolean;
  /** Whether memory can be added while the machine runs. */
  readonly canAddMemory: boolean;
  readonly extraConfig: Readonly<Record<string, string>>;
  readonly ip: string | undefined;
}

export interface MachineChange {
  /** Undefined for a new machine. */
  readonly before: Machine | undefined;
  /** Undefined for a removed machine. */
  readonly after: Machine | undefined;
  readonly cause: Cause;
  /** Id of the task that made the change; undefined if no task made it. */
  readonly task: string | undefined;
  /** Whether the machine was only unregistered: its files remain, and it can be registered again. */
  readonly isUnregistered?: boolean;
}

/**
 * Cause of a change:
 * - `request`: an API call, or the end of a guest shutdown that an API call requested.
 * - `somebody`: a third party that bypasses the API.
 * - `itself`: the setup of the model, before any client connects.
 */
export type Cause = 'request' | 'somebody' | 'itself';

/** Functions that return a property of a machine as XML, by property path. They return undefined if it is unset. */
export const PROPERTIES: Readonly<Record<string, (machine: Machine) => string | undefined>> = {
  name: ({ name }) => val.string(name),
  parent: ({ folder }) => val.ref({ type: 'Folder', value: folder }),
  'config.instanceUuid': ({ instanceUuid }) => val.string(instanceUuid),
  'config.template': ({ isTemplate }) => val.boolean(isTemplate),
  'config.hardware.numCPU': ({ cpus }) => val.int(cpus),
  'config.hardware.memoryMB': ({ memoryMb }) => val.int(memoryMb),
  'config.cpuHotAddEnabled': ({ canAddCpus }) => val.boolean(canAddCpus),
  'config.memoryHotAddEnabled': ({ canAddMemory }) => val.boolean(canAddMemory),
  'config.extraConfig': ({ extraConfig }) =>
    val.list('OptionValue', Object.entries(extraConfig).map(option).join('')),
  'runtime.powerState': ({ power }) => val.word('VirtualMachinePowerState', power),
  'runtime.host': ({ host }) => val.ref({ type: 'HostSystem', value: host }),
  'guest.ipAddress': ({ ip }) => (ip === undefined ? undefined : val.string(ip)),
};

function option([key, value]: [string, string]): string {
  const content = `<key>${text(key)}</key><value xsi:type="xsd:string">${text(value)}</value>`;
  return `<OptionValue xsi:type="OptionValue">${content}</OptionValue>`;
}
