import { readdirSync, readFileSync } from 'node:fs';
import { identityArgs } from './command.ts';

/** USER_HZ: clock ticks per second, the unit of CPU times in /proc. */
const TICKS_PER_SECOND = 100;

/** Returns whether a process belongs to a machine. A pid from a file may have been reused by another process. */
export function isProcessOf(pid: number, id: string): boolean {
  const identity = `\0${identityArgs(id).join('\0')}\0`;
  return readIfAccessible(`/proc/${pid}/cmdline`).includes(identity);
}

/** Returns the pids of a machine. There is at most one, except while two concurrent starts compete for the pid file. */
export function processesOf(id: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isProcessOf(pid, id));
}

export function readPid(file: string): number | undefined {
  const pid = Number.parseInt(readIfAccessible(file), 10);
  return pid > 0 ? pid : undefined;
}

/** Returns the CPU time that a process has used, in seconds; undefined if the process does not exist. */
export function cpuSecondsOf(pid: number): number | undefined {
  const stat = readIfAccessible(`/proc/${pid}/stat`);
  // The second field, the program name in parentheses, may contain spaces, so the split starts after the last ')'.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system] = [Number(fields[11]), Number(fields[12])];
  return Number.isNaN(user + system) ? undefined : (user + system) / TICKS_PER_SECOND;
}

/**
 * Errors that mean that the file is missing or not readable. Others, such as too many open files, must not be ignored.
 */
const INACCESSIBLE: readonly unknown[] = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM'];

/** Reads a file. Returns an empty text if the file is missing or not readable. */
function readIfAccessible(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && INACCESSIBLE.includes(error.code)) return '';
    throw error;
  }
}
