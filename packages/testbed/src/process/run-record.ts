import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processIdentity } from './process-identity.ts';

export const RUN_PREFIX = 'vmwright-run-';
const FILE = 'processes.json';

interface Entry {
  readonly pid: number;
  /** Tells a process from a later one that got the same number. */
  readonly identity: string;
}

interface Recorded {
  readonly keeper: Entry;
  readonly parts: readonly Entry[];
}

/**
 * Which processes belong to a run, on disk. The keeper clears up after the program; this is for the day when both were
 * killed at once (out of memory, `kill -9` of everything): the next run finds the record and clears up after them.
 */
export class RunRecord {
  readonly dir: string;
  readonly #keeper: Entry;
  readonly #parts = new Map<number, Entry>();

  constructor(dir: string) {
    this.dir = dir;
    this.#keeper = { pid: process.pid, identity: processIdentity(process.pid) ?? '' };
    this.#write();
  }

  add(pid: number): void {
    const identity = processIdentity(pid);
    if (identity !== undefined) this.#parts.set(pid, { pid, identity });
    this.#write();
  }

  remove(pid: number): void {
    this.#parts.delete(pid);
    this.#write();
  }

  #write(): void {
    const recorded: Recorded = { keeper: this.#keeper, parts: [...this.#parts.values()] };
    const file = join(this.dir, FILE);
    try {
      writeFileSync(`${file}.new`, JSON.stringify(recorded));
      renameSync(`${file}.new`, file);
    } catch {
      // A full disk or a folder somebody removed: the parts must still be started, watched and ended.
    }
  }
}

/** Ends what runs whose keeper is gone have left behind. */
export function clearAbandonedRuns(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(RUN_PREFIX)) continue;
    const dir = join(tmpdir(), name);
    const recorded = read(join(dir, FILE));
    if (recorded === undefined || alive(recorded.keeper)) continue;
    try {
      for (const part of recorded.parts.toReversed()) if (alive(part)) process.kill(-part.pid, 'SIGKILL');
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    } catch {
      // Another user's run, or another run clears it up at this very moment: not ours to insist on.
    }
  }
}

function alive({ pid, identity }: Entry): boolean {
  return processIdentity(pid) === identity;
}

function read(file: string): Recorded | undefined {
  try {
    const recorded: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return isRecorded(recorded) ? recorded : undefined;
  } catch {
    return undefined; // not ours, or being made at this moment
  }
}

function isRecorded(value: unknown): value is Recorded {
  if (typeof value !== 'object' || value === null || !('keeper' in value) || !('parts' in value))
    return false;
  return isEntry(value.keeper) && Array.isArray(value.parts) && value.parts.every(isEntry);
}

function isEntry(value: unknown): value is Entry {
  if (typeof value !== 'object' || value === null || !('pid' in value) || !('identity' in value))
    return false;
  return typeof value.pid === 'number' && typeof value.identity === 'string';
}
