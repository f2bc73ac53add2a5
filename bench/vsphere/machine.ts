/** What is read of a machine, on both sides: what the controller of VmGroups follows. */
export const MACHINE = [
  ...([
    'name',
    'config.instanceUuid',
    'config.extraConfig',
    'config.template',
    'runtime.powerState',
  ] as const),
  ...(['runtime.host', 'config.hardware.numCPU', 'config.hardware.memoryMB', 'guest.ipAddress'] as const),
  ...(['config.cpuHotAddEnabled', 'config.memoryHotAddEnabled'] as const),
];
