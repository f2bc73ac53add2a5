/**
 * Redirects uncaught exceptions and unhandled rejections to the running simulation until disposed. These errors come
 * from the simulated code. The process's own listeners, for example the test runner's, would treat them as failures of
 * the process. Only one simulation may run at a time.
 */
export class UncaughtErrors implements Disposable {
  readonly #report: (error: unknown) => void;
  readonly #rejections = process.listeners('unhandledRejection');
  readonly #exceptions = process.listeners('uncaughtException');

  constructor(report: (error: unknown) => void) {
    this.#report = report;
    process.removeAllListeners('unhandledRejection').on('unhandledRejection', this.#report);
    process.removeAllListeners('uncaughtException').on('uncaughtException', this.#report);
  }

  [Symbol.dispose](): void {
    process.removeAllListeners('unhandledRejection');
    process.removeAllListeners('uncaughtException');
    for (const listener of this.#rejections) process.on('unhandledRejection', listener);
    for (const listener of this.#exceptions) process.on('uncaughtException', listener);
  }
}
