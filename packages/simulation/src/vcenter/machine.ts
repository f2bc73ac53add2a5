import { text, val } from './xml.ts';

export type Power = 'poweredOn' | 'poweredOff' | 'suspended';

/** A machine, or a template. Never changed in place. */
export interface Machine {
  readonly id: string;
  readonly name: string;
  /** The id of the folder that it is in. */
  readonly folder: string;
  readonly instanceUuid: string;
  readonly isTemplate: boolean;
  readonly power: Power;
  readonly host: string;
  readonly cpus: number;
  readonly memoryMb: number;
  /** What can be added while it runs. */
  readonly canAddCpus: boolean;
  readonly canAddMemory: boolean;
  readonly extraConfig: Readonly<Record<string, string>>;
  readonly ip: string | undefined;
}

export interface MachineChange {
  /** Missing when it has come. */
  readonly before: Machine | undefined;
  /** Missing when it is gone. */
  readonly after: Machine | undefined;
  /** Whether somebody has asked for it by a call, or did it past all clients; or the machine did it by itself. */
  readonly cause: Cause;
  /** The task in which it was done. */
  readonly task: string | undefined;
  /** Whether it has left the inventory only: its files stay, and it can be registered again. */
  readonly isUnregistered?: boolean;
}

export type Cause = 'request' | 'somebody' | 'itself';

/** Its properties as vCenter answers them; undefined for one that is unset. */
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
