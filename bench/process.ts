import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

/** CPU time and memory of a process. */
export interface Usage {
  /** CPU time since the start, in seconds. */
  readonly cpu: number;
  /** Current resident memory in MB. */
  readonly rss: number;
  /** Part of `rss` that belongs to this process alone, in MB. The rest is shared, mainly pages of the executable. */
  readonly own: number;
  /** Maximum of `rss` since the start. */
  readonly peak: number;
}

/** Returns the CPU time that a process has used, in seconds. */
export function cpuOf(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

export function usageOf(pid: number | undefined): Usage {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = (field: string) => Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
  return {
    cpu: cpuOf(pid),
    rss: megabytes('VmRSS'),
    own: megabytes('RssAnon'),
    peak: megabytes('VmHWM'),
  };
}

/** Returns the number of a process's TCP connections to a port. */
export function connectionsOf(pid: number | undefined, port: number): number {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
      return /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? [];
    }),
  );
  const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const sockets = ['tcp', 'tcp6'].flatMap((file) =>
    readFileSync(`/proc/${pid}/net/${file}`, 'utf8').split('\n'),
  );
  return sockets.filter((line) => {
    const fields = line.trim().split(/\s+/);
    return fields[2]?.endsWith(remote) && inodes.has(fields[9] ?? '');
  }).length;
}
