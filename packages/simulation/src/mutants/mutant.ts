/** A bug that is inserted into the source of one file when the file is loaded. The file on disk stays unchanged. */
export interface Mutant {
  /** What goes wrong. Unique; shown in the generated table and used as key in `seeds.json`. */
  readonly name: string;
  /** Path of the file to change, relative to the repository root. */
  readonly file: string;
  /** Code to replace. It must occur exactly once in the file; any whitespace matches any other whitespace. */
  readonly find: string;
  readonly replace: string;
  /** Why the original code is needed: its purpose, or the harm that the mutant does. */
  readonly why: string;
  /** Name of the scenario that must find the mutant. */
  readonly scenario: string;
}

/** Returns the source with the mutant in it. @throws when `find` does not occur exactly once in the source */
export function mutate(source: string, { name, file, find, replace }: Mutant): string {
  const parts = source.split(anyWhitespace(find));
  if (parts.length !== 2)
    throw new Error(
      `mutant "${name}": its "find" text must occur exactly once in ${file}, but occurs ${parts.length - 1} times; update the text`,
    );
  return parts.join(replace);
}

/** Ignores differences in whitespace, so that a formatter cannot break a mutant. */
function anyWhitespace(text: string): RegExp {
  return new RegExp(text.split(/\s+/).map(RegExp.escape).join('\\s+'));
}
