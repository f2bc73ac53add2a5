import { type ConsoleCommand, consoleCommands } from '@vmwright/testbed';

/** Command that starts the testbed and the operator. It stays in the foreground: later commands need another shell. */
export const UP = 'make up';

/**
 * Returns the commands of the quick start, which is the section of the README that contains `make up`. Other sections
 * need a cluster or are for contributors.
 * @throws Error if no section contains `make up`
 */
export function quickStart(readme: string): readonly ConsoleCommand[] {
  const sections = readme.split(/^(?=## )/m).map(consoleCommands);
  const found = sections.find((commands) => commands.some(({ line }) => line === UP));
  if (found === undefined) throw new Error(`README.md has no section with the console command \`${UP}\``);
  return found;
}

/**
 * Whether a command only reads a state that the operator changes. A user repeats such a command until its output
 * matches the page. The output of any other command must match at the first attempt.
 */
export function isRepeatable(line: string): boolean {
  return /^(kubectl get|psql) /.test(line);
}
