export const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

export type Level = (typeof LEVELS)[number];

export function isLevel(text: string): text is Level {
  return LEVELS.some((level) => level === text);
}

/** What is known beside the message. Never a key, nor the headers of a request. */
type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

export interface LogOptions {
  readonly clock: { now(): number };
  /** The quietest that is still written. */
  readonly level: Level;
  readonly write: (line: string) => void;
}

/** Writes a JSON object a line. */
export function jsonLog({ clock, level: least, write }: LogOptions): Log {
  const at = (level: Level) => {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(least)) return () => undefined;
    return (fields: LogFields, msg: string) => {
      const time = new Date(clock.now()).toISOString();
      write(`${JSON.stringify({ time, level, msg, ...fields })}\n`);
    };
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
