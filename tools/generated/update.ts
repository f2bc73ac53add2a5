import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Writes a generated file, or removes it. With `--check`, reports that it is out of date and sets the exit code instead.
 * @param path relative to the root of the repository, which is the working directory
 * @param text undefined if the file is not generated any more
 */
export function update(path: string, text: string | undefined): void {
  if (contentOf(path) === text) return;
  if (process.argv[2] === '--check') {
    console.error(`${path} is out of date; run \`make generate\` and commit the result`);
    process.exitCode = 1;
  } else if (text === undefined) rmSync(path);
  else {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

/** Updates files by their path, and removes other files that match the patterns: these are not generated any more. */
export function updateAll(files: ReadonlyMap<string, string>, patterns: readonly string[]): void {
  for (const path of new Set([...files.keys(), ...globSync([...patterns])])) update(path, files.get(path));
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
