import { jsonLogger } from './json-logger.ts';
import type { Level, Logger, LogLevel } from './logger.ts';

/** A line as it would have been written. */
export interface LogLine {
  readonly level: Level;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** For tests: keeps what is logged, in the form in which it would be written. */
export function collectingLogger(level: Level = 'debug'): { logger: Logger & LogLevel; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  return { logger: jsonLogger({ clock: { now: () => 0 }, level, write }), lines };
}
