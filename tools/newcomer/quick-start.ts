import { type ConsoleCommand, consoleCommands } from '@vmwright/testbed';

/** Command that starts everything and stays in the foreground of the first terminal. */
export const UP = 'make up';

/**
 * Returns the commands of the quick start: those of the README's section that contains `make up`, and of no other, because the rest
 * of the page needs a cluster or is for contributors.
 * @throws Error if no section contains `make up`
 */
export function quickStart(readme: string): readonly ConsoleCommand[] {
  const sections = readme.split(/^(?=## )/m).map(consoleCommands);
  const found = sections.find((commands) => commands.some(({ line }) => line === UP));
  if (found === undefined) throw new Error(`README.md has no section with the console command \`${UP}\``);
  return found;
}

/**
 * Whether a command only reads what the operator works on, so that a user would run it again until it shows what the page shows. Any
 * other command must print it at the first attempt.
 */
export function isRepeatable(line: string): boolean {
  return /^(kubectl get|psql) /.test(line);
}
