/** Clock, timers, ids and reporting for the API server model. */
export interface ServerEnvironment {
  /** Milliseconds since 1970, by the server's clock. */
  now(): number;
  uuid(): string;
  /** Runs `act` after `ms` milliseconds, unless `cancelled` is set before then. */
  after(ms: number, act: () => void): { cancelled: boolean };
  /** Delay in milliseconds before a built-in controller (the garbage collector) takes its next step. */
  controllerDelay(): number;
  /** Adds a change to the trace. */
  note(what: string): void;
  /** Called for each error response, to count which status codes occurred. */
  count(what: string): void;
  /**
   * Called for each request that the model does not support. Must end the run, because the result of the run would be
   * meaningless.
   */
  unmodelled(message: string): void;
}
