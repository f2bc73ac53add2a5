/** What the model of the API server takes from the world around it. */
export interface ServerEnvironment {
  /** Milliseconds since 1970, by the server's clock. */
  now(): number;
  uuid(): string;
  /** Lets something happen after so many milliseconds, unless `cancelled` is set meanwhile. */
  after(ms: number, act: () => void): { cancelled: boolean };
  /** How long a controller of Kubernetes itself takes for its next step. */
  controllerDelay(): number;
  /** Told of each change, for the trace. */
  note(what: string): void;
  /** Told of each refusal, so that it shows which ever came: `the API server said 409`. */
  count(what: string): void;
  /** Told of each request that the model cannot answer: the run is worth nothing then. */
  unmodelled(sentence: string): void;
}
