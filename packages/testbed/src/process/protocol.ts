/** What the program asks of its keeper process. */
export type Request =
  | ({ readonly do: 'start'; readonly id: number } & Command)
  | { readonly do: 'signal'; readonly id: number; readonly signal: NodeJS.Signals }
  | { readonly do: 'remove-at-end'; readonly path: string };

/** What the keeper process tells. */
export type Report =
  | { readonly is: 'started'; readonly id: number; readonly pid: number }
  | { readonly is: 'failed'; readonly id: number; readonly message: string }
  | ({ readonly is: 'exited'; readonly id: number } & Exit);

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** The file that takes its standard output and error. */
  readonly log: string;
  /** Another user to run as, for programs that refuse root. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** What ends it at once when nobody will ever ask again. PostgreSQL leaves shared memory behind on SIGKILL. */
  readonly lastSignal: NodeJS.Signals;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}
