import { readdirSync, readFileSync } from 'node:fs';
import { markOf } from './command.ts';

/** Clock ticks a second, in which Linux counts CPU time for everybody (USER_HZ). */
const TICKS_PER_SECOND = 100;

/** Whether a process is that machine's: a process id alone may be another's by now. */
export function isMachine(pid: number, id: string): boolean {
  const mark = `\0${markOf(id).join('\0')}\0`;
  return readOr('', `/proc/${pid}/cmdline`).includes(mark);
}

/** All processes of a machine: there is none or one, but for the moment in which two starts decide who it is. */
export function processesOf(id: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isMachine(pid, id));
}

export function pidIn(file: string): number | undefined {
  const pid = Number.parseInt(readOr('', file), 10);
  return pid > 0 ? pid : undefined;
}

/** Seconds of CPU that a process has used so far. */
export function cpuSecondsOf(pid: number): number | undefined {
  const stat = readOr('', `/proc/${pid}/stat`);
  // The second field is the program's name in brackets and may hold anything; what follows it is plain.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system] = [Number(fields[11]), Number(fields[12])];
  return Number.isNaN(user + system) ? undefined : (user + system) / TICKS_PER_SECOND;
}

/** That there is none, or that it is not for us to read, is an answer; that we have no more files to open is none. */
const NOT_THERE: readonly unknown[] = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM'];

function readOr(otherwise: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && NOT_THERE.includes(error.code)) return otherwise;
    throw error;
  }
}
