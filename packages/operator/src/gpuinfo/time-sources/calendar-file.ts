import { readFile, stat } from 'node:fs/promises';
import { type Clock, type Gauge, type Logger, messageOf, type Registry, wait } from '@vmwright/runtime';
import { Calendar } from './calendar.ts';
import { parseCalendar } from './parse-calendar.ts';

/**
 * Polling interval of the file. The file is polled, because file notifications stop when the kubelet replaces the
 * symbolic link of a ConfigMap.
 */
const POLL_MS = 1_000;

export interface CalendarFileOptions {
  readonly path: string;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Logger;
  /** Registry for the metric that shows whether the file is valid. */
  readonly registry: Registry;
}

/** Declares the metric of the calendar file. The metric exists only if a calendar file is configured. */
export function calendarMetric(registry: Registry): Gauge {
  const help = '1 if the current calendar file is valid and in use, 0 otherwise';
  return registry.gauge({ name: 'vmwright_gpu_calendar_valid', help }).with({});
}

/** Calendar of planned maintenance in a file. The file is read again when it changes. */
export class CalendarFile {
  readonly #options: CalendarFileOptions;
  readonly #listeners = new Set<() => void>();
  #version: string | undefined;
  #calendar: Calendar | undefined;
  #problem: string | undefined;

  constructor(options: CalendarFileOptions) {
    this.#options = options;
    const isValid = calendarMetric(options.registry);
    options.registry.beforeText(() => isValid.set(this.#problem === undefined ? 1 : 0));
  }

  /** Last valid content; undefined if the file has not been valid yet. */
  get calendar(): Calendar | undefined {
    return this.#calendar;
  }

  /** Why the current content of the file is not in use, as a sentence; undefined if it is valid. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Calls the listener after each change of `calendar` or `problem`. @returns a function that ends the subscription */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Reads the file if it has changed. If the file is invalid, the last valid content stays in use and the problem is
   * logged once.
   */
  async read(): Promise<void> {
    const { path, log } = this.#options;
    const version = await versionOf(path);
    if (version === this.#version) return;
    this.#version = version; // read before the content, so that the next poll notices a change during the read
    let problem: string | undefined;
    try {
      const calendar = new Calendar(parseCalendar(await readFile(path, 'utf8')));
      this.#calendar = calendar;
      log.info({ path, windows: calendar.size }, 'Read the calendar of planned maintenance');
    } catch (error) {
      const effect =
        this.#calendar === undefined ? 'no new reservations are made' : 'using its last valid content';
      problem = `calendar file ${path} is invalid, ${effect}: ${messageOf(error)}`;
      log.warn({ path, effect, error: messageOf(error) }, 'Calendar file is invalid');
    }
    this.#problem = problem;
    for (const listener of this.#listeners) listener();
  }

  /** Polls the file until the signal aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.read();
      await wait(this.#options.clock, POLL_MS, signal).catch(() => undefined);
    }
  }
}

/**
 * Returns a text that changes with the file's inode, size or modification time; the error message if the file cannot be
 * read.
 */
async function versionOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeMs } = await stat(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch (error) {
    return messageOf(error);
  }
}
