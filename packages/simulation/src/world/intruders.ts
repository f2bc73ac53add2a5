/**
 * Errors that nobody catches while a simulation runs: they are the simulated code's, and go to the run instead of to
 * those who otherwise listen (a test runner would take them for its own). One simulation at a time can have them.
 */
export class Intruders implements Disposable {
  readonly #tell: (error: unknown) => void;
  readonly #rejections = process.listeners('unhandledRejection');
  readonly #exceptions = process.listeners('uncaughtException');

  constructor(tell: (error: unknown) => void) {
    this.#tell = tell;
    process.removeAllListeners('unhandledRejection').on('unhandledRejection', this.#tell);
    process.removeAllListeners('uncaughtException').on('uncaughtException', this.#tell);
  }

  [Symbol.dispose](): void {
    process.removeAllListeners('unhandledRejection');
    process.removeAllListeners('uncaughtException');
    for (const listener of this.#rejections) process.on('unhandledRejection', listener);
    for (const listener of this.#exceptions) process.on('uncaughtException', listener);
  }
}
