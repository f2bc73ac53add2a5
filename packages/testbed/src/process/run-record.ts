import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processIdentity } from './process-identity.ts';

export const RUN_PREFIX = 'vmwright-run-';
const FILE = 'processes.json';

interface Entry {
  readonly pid: number;
  /** Identity that distinguishes the process from a later process with the same pid. */
  readonly identity: string;
}

/** Content of `processes.json`. */
interface RecordedRun {
  /** The run supervisor. */
  readonly keeper: Entry;
  readonly parts: readonly Entry[];
}

/**
 * On-disk record of the processes of a run. Normally the run supervisor cleans up. If the supervisor was killed
 * together with the program, for example because memory ran out, the next run reads the record and cleans up.
 */
export class RunRecord {
  readonly dir: string;
  readonly #supervisor: Entry;
  readonly #parts = new Map<number, Entry>();

  constructor(dir: string) {
    this.dir = dir;
    this.#supervisor = { pid: process.pid, identity: processIdentity(process.pid) ?? '' };
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
    const run: RecordedRun = { keeper: this.#supervisor, parts: [...this.#parts.values()] };
    const file = join(this.dir, FILE);
    try {
      writeFileSync(`${file}.new`, JSON.stringify(run));
      renameSync(`${file}.new`, file);
    } catch {
      // Ignored, because parts must start and stop even if the disk is full or the folder was removed.
    }
  }
}

/** Kills the parts and removes the folders of runs that no longer have a running supervisor. */
export function clearAbandonedRuns(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(RUN_PREFIX)) continue;
    const dir = join(tmpdir(), name);
    const run = read(join(dir, FILE));
    if (run === undefined || isAlive(run.keeper)) continue;
    try {
      for (const part of run.parts.toReversed()) if (isAlive(part)) process.kill(-part.pid, 'SIGKILL');
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    } catch {
      // The run belongs to another user, or another run is cleaning it up concurrently.
    }
  }
}

function isAlive({ pid, identity }: Entry): boolean {
  return processIdentity(pid) === identity;
}

function read(file: string): RecordedRun | undefined {
  try {
    const run: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return isRecordedRun(run) ? run : undefined;
  } catch {
    return undefined; // not a record, or not written yet
  }
}

function isRecordedRun(value: unknown): value is RecordedRun {
  if (typeof value !== 'object' || value === null || !('keeper' in value) || !('parts' in value))
    return false;
  return isEntry(value.keeper) && Array.isArray(value.parts) && value.parts.every(isEntry);
}

function isEntry(value: unknown): value is Entry {
  if (typeof value !== 'object' || value === null || !('pid' in value) || !('identity' in value))
    return false;
  return typeof value.pid === 'number' && typeof value.identity === 'string';
}
