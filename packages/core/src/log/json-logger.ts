import type { Clock } from '../world/world.ts';
import { LEVELS, type Level, type LogFields, type Logger, type LogLevel } from './logger.ts';
import { plainFields } from './plain.ts';
import { writeToStandardError } from './write-all.ts';

export interface JsonLoggerOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** @default 'info' */
  readonly level?: Level;
  /** Writes one line, including its newline. @default writes to standard error */
  readonly write?: (line: string) => void;
  /** Converts a line to text, without a newline. Receives redacted data only. @default JSON; see also `textLine` */
  readonly format?: (line: FormattedLine) => string;
}

/** Content of a log line: `level`, `time` and `msg`, then the fields. */
export interface FormattedLine {
  readonly level: Level;
  /** Time in RFC 3339 format with milliseconds. */
  readonly time: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/**
 * Returns a logger that writes one line per call, by default a JSON object: `level`, `time`, `msg`, then the fields.
 * The minimum `level` can be changed at any time and applies to all children. Audit lines are written at every level.
 *
 * Guarantees:
 * - When a call returns, its line has been written. So no line is lost when the process exits.
 * - Field names are unique within a line.
 * - Values that look like secrets are redacted (see `plainFields`).
 * - Logging never throws.
 */
export function jsonLogger(options: JsonLoggerOptions): Logger & LogLevel {
  const { clock, write = writeToStandardError, level = 'info', format = JSON.stringify } = options;
  return new JsonLogger({ clock, write, level, format }, {});
}

interface Shared extends LogLevel {
  readonly clock: Pick<Clock, 'now'>;
  readonly write: (line: string) => void;
  readonly format: (line: FormattedLine) => string;
}

class JsonLogger implements Logger, LogLevel {
  readonly #shared: Shared;
  readonly #fields: LogFields;

  constructor(shared: Shared, fields: LogFields) {
    this.#shared = shared;
    this.#fields = fields;
  }

  get level(): Level {
    return this.#shared.level;
  }

  set level(level: Level) {
    this.#shared.level = level;
  }

  debug(fields: LogFields, message: string): void {
    this.#log('debug', fields, message);
  }

  info(fields: LogFields, message: string): void {
    this.#log('info', fields, message);
  }

  warn(fields: LogFields, message: string): void {
    this.#log('warn', fields, message);
  }

  error(fields: LogFields, message: string): void {
    this.#log('error', fields, message);
  }

  audit(fields: LogFields, message: string): void {
    this.#write('info', fields, message);
  }

  child(fields: LogFields): Logger {
    return new JsonLogger(this.#shared, { ...this.#fields, ...withoutReserved(plainFields(fields)) });
  }

  #log(level: Level, fields: LogFields, message: string): void {
    if (LEVELS.indexOf(level) >= LEVELS.indexOf(this.level)) this.#write(level, fields, message);
  }

  #write(level: Level, fields: LogFields, message: string): void {
    const { clock, write, format } = this.#shared;
    const time = new Date(clock.now()).toISOString();
    const own = withoutReserved(plainFields(fields));
    write(`${format({ level, time, msg: message, ...this.#fields, ...own })}\n`);
  }
}

const RESERVED = ['level', 'time', 'msg'];

/**
 * Appends an underscore to fields named `level`, `time` or `msg`, so that they do not replace the line's own fields.
 */
function withoutReserved(fields: Record<string, unknown>): Record<string, unknown> {
  for (const name of RESERVED) {
    if (!(name in fields)) continue;
    fields[`${name}_`] = fields[name];
    delete fields[name];
  }
  return fields;
}
