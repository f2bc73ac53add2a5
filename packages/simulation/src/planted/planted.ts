/** A bug that is put into the code of one file, as it is loaded and never on disk. */
export interface Planted {
  /** What goes wrong, as it reads in the table. */
  readonly name: string;
  /** From the repository's root. */
  readonly file: string;
  /** Occurs exactly once in the file, with whatever whitespace where it has some. */
  readonly find: string;
  readonly replace: string;
  /** What the right code is there for. */
  readonly why: string;
  /** In which scenario it must be found. */
  readonly scenario: string;
}

/** The source with the bug in it. @throws when the code is not (or no longer) what the bug was written for */
export function plantedIn(source: string, { name, file, find, replace }: Planted): string {
  const parts = source.split(anyWhitespace(find));
  if (parts.length !== 2)
    throw new Error(
      `the planted bug "${name}" needs its text exactly once in ${file}, where it is ${parts.length - 1} times; bring it up to date`,
    );
  return parts.join(replace);
}

/** A formatter may break lines elsewhere tomorrow. */
function anyWhitespace(text: string): RegExp {
  return new RegExp(text.split(/\s+/).map(RegExp.escape).join('\\s+'));
}
