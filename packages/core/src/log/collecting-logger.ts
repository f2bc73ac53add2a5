import { jsonLogger } from './json-logger.ts';
import type { Level, Logger, LogLevel } from './logger.ts';

/** One parsed log line. */
export interface LogLine {
  readonly level: Level;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Returns a logger for tests that collects its output as parsed lines. */
export function collectingLogger(level: Level = 'debug'): { logger: Logger & LogLevel; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  return { logger: jsonLogger({ clock: { now: () => 0 }, level, write }), lines };
}
