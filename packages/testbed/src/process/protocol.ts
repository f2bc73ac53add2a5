/** Message from a program that uses the testbed, such as a test, to its run supervisor. */
export type Request =
  | ({ readonly type: 'start'; readonly id: number } & Command)
  | { readonly type: 'signal'; readonly id: number; readonly signal: NodeJS.Signals }
  | { readonly type: 'remove-at-end'; readonly path: string };

/** Message from the run supervisor to the program that started it. */
export type Report =
  | { readonly type: 'started'; readonly id: number; readonly pid: number }
  | { readonly type: 'failed'; readonly id: number; readonly message: string }
  | ({ readonly type: 'exited'; readonly id: number } & Exit);

/** Command for the run supervisor to start. */
export interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** File that receives standard output and standard error. */
  readonly log: string;
  /** User to run as, for programs that refuse to run as root. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /**
   * Signal that the supervisor sends during cleanup. For PostgreSQL, it must not be SIGKILL, because SIGKILL would leak
   * shared memory.
   */
  readonly killSignal: NodeJS.Signals;
}

/** Exit code or signal of a process. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}
