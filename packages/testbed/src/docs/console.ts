/** A command of a documentation page, with its documented output. */
export interface ConsoleCommand {
  readonly line: string;
  readonly output: readonly string[];
}

/**
 * Returns the commands of all `console` blocks of a page, in order: lines that begin with `$ `, each followed by its
 * output.
 */
export function consoleCommands(markdown: string): readonly ConsoleCommand[] {
  const blocks = [...markdown.matchAll(/^```console\n(.*?)^```$/gms)].map(([, text = '']) => text);
  return blocks.flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((command) => {
        const [line = '', ...output] = command.trimEnd().split('\n');
        return { line, output };
      }),
  );
}

/** Normalises the parts of an output line that differ between runs: ids, CPU, ages, column widths. */
export function shapeOf(line: string): string {
  return line
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replace(/(<id>\s+)\d+(?=\s+\w+$)/, '$1<cpu>')
    .replace(/\d+(s|m|m\d+s)$/, '<age>')
    .replace(/\s+/g, ' ')
    .trim();
}
