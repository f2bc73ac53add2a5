import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export function page(name: string): string {
  return readFileSync(`${ROOT}docs/${name}`, 'utf8');
}

/**
 * Runs the commands of a page, and holds what they say to what the page says.
 * @returns how many there were
 */
export async function play(
  text: string,
  kubectl: (...args: readonly string[]) => Promise<string>,
): Promise<number> {
  const [, block = ''] = /```console\n([\s\S]*?)```/.exec(text) ?? [];
  const commands = block.split(/^\$ /m).slice(1);
  for (const command of commands) {
    const [line = '', ...told] = command.trimEnd().split('\n');
    const args = line.replace('config/', `${ROOT}config/`).split(' ').slice(1);
    const said = (await kubectl(...args)).trimEnd().split('\n');
    expect(said.map(shape), line).toEqual(told.map(shape));
  }
  return commands.length;
}

/** What differs from one run to the next is of the same kind. */
export function shape(line: string): string {
  return line
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replace(/(<id>\s+)\d+/, '$1<cpu>')
    .replace(/\d+s$/, '<age>')
    .replace(/\s+/g, ' ');
}
