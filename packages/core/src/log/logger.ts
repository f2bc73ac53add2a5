export type Level = 'debug' | 'info' | 'warn' | 'error';

/** From the most talkative to the quietest. */
export const LEVELS: readonly Level[] = ['debug', 'info', 'warn', 'error'];

export function isLevel(text: string): text is Level {
  return LEVELS.some((level) => level === text);
}

/** What is known beside the message: `{controller, object, error}`. */
export type LogFields = Readonly<Record<string, unknown>>;

/** What of a logger its users see. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** The same, with these fields in every line. */
  child(fields: LogFields): Logger;
}

/** How much is logged, by a logger and all its children, the ones there are and the ones to come. */
export interface LogLevel {
  level: Level;
}

/** Says nothing. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};
