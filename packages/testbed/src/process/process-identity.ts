import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Returns the start time of a process as the operating system reports it, or undefined if the process does not exist or
 * is a zombie. A process is identified by its pid and its start time together, because pids are reused.
 */
export function processIdentity(pid: number): string | undefined {
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
}

function fromProc(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field is the command name in parentheses and may contain any character, so parsing starts after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const startTime = fields[19];
  return state === 'Z' ? undefined : startTime;
}

function fromPs(pid: number): string | undefined {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}
