/** Properties that both sides read: those that the VmGroup controller watches. */
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
