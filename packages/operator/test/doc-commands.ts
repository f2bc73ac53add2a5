import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { consoleCommands, shapeOf } from '@vmwright/testbed';
import { expect } from 'vitest';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Returns the section of a page below a heading of the second or third level, without its subsections. */
export function sectionOf(text: string, heading: string): string {
  const found = text
    .split(/^(?=##+ )/m)
    .find((section) => section.replace(/^#+ /, '').startsWith(`${heading}\n`));
  if (found === undefined) throw new Error(`the page has no heading "${heading}"`);
  return found;
}

/** Returns the text of a page in `docs`. */
export function page(name: string): string {
  return readFileSync(`${ROOT}docs/${name}`, 'utf8');
}

/**
 * Runs the kubectl commands of a page and compares their output with the documented output.
 * @returns the number of commands
 */
export async function runCommands(
  text: string,
  kubectl: (...args: readonly string[]) => Promise<string>,
): Promise<number> {
  const commands = consoleCommands(text);
  for (const { line, output } of commands) {
    const args = wordsOf(line.replace(/(?<=-f )(?=config\/|docs\/)/, ROOT)).slice(1);
    const actual = (await kubectl(...args)).trimEnd().split('\n');
    expect(actual.map(shapeOf), line).toEqual(output.map(shapeOf));
  }
  return commands.length;
}

/** Splits a command line into words. A word may contain parts in single quotes: `jsonpath='{.a} {.b}'`. */
export function wordsOf(line: string): readonly string[] {
  const words = line.match(/(?:'[^']*'|[^\s'])+/g) ?? [];
  return words.map((word) => word.replaceAll("'", ''));
}
