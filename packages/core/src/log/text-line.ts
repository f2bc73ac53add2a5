import type { FormattedLine } from './json-logger.ts';

/**
 * Formats a log line for people: `12:00:01 WARN  Watch failed, retrying  kind=vms error="connection refused"`. The date
 * is left out. Strings are quoted if they contain a space, a quote or a control character.
 */
export function textLine({ level, time, msg, ...fields }: FormattedLine): string {
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${valueText(value)}`);
  const head = `${time.slice(11, 19)} ${level.toUpperCase().padEnd(5)} ${oneLine(msg)}`;
  return [head, ...pairs].join('  ');
}

function valueText(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? String(value);
  return /^[^\s"\p{Cc}]+$/u.test(value) ? value : JSON.stringify(value);
}

/** Escapes control characters, so that a message from outside cannot imitate a line or control the terminal. */
function oneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => JSON.stringify(character).slice(1, -1));
}
