export type Level = 'debug' | 'info' | 'warn' | 'error';

/** All log levels, from the most to the least verbose. */
export const LEVELS: readonly Level[] = ['debug', 'info', 'warn', 'error'];

export function isLevel(text: string): text is Level {
  return LEVELS.some((level) => level === text);
}

/** Structured data of a log line, for example `{controller, object, error}`. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Structured logger. Messages are short and constant; variable data goes into the fields. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /**
   * Writes a line with the level `info`, whatever the minimum level is: verbosity settings must not hide audit lines.
   */
  audit(fields: LogFields, message: string): void;
  /** Returns a logger that adds these fields to every line. */
  child(fields: LogFields): Logger;
}

/** Minimum level of a logger and all its existing and future children. */
export interface LogLevel {
  level: Level;
}

/** Logger that discards everything. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  audit: () => undefined,
  child: () => silentLogger,
};
