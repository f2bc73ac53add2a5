import { type Clock, type Logger, messageOf } from '@vmwright/core';

/** Returns, or resolves, when all is well, if it likes with a remark for who asks verbosely; throws what is not. */
export type Check = () => Remark | Promise<Remark>;

export type Remark = string | undefined | void;

export interface ChecksOptions {
  readonly clock: Pick<Clock, 'after'>;
  readonly logger: Logger;
}

export interface Report {
  readonly healthy: boolean;
  readonly text: string;
}

/** A check that takes longer has failed: a probe does not wait for it either. */
const LONGEST_MS = 5_000;

/** Named checks, and their report as Kubernetes' own components write it. */
export class Checks {
  readonly #name: string;
  readonly #options: ChecksOptions;
  readonly #checks = new Map<string, Check>();

  /** @param name under which they are asked: `healthz`, `readyz` */
  constructor(name: string, options: ChecksOptions) {
    this.#name = name;
    this.#options = options;
  }

  add(name: string, check: Check): void {
    this.#checks.set(name, check);
  }

  has(name: string): boolean {
    return this.#all().has(name);
  }

  /**
   * All of them but those excluded: `ok`, or a line each if something has failed or `verbose` is wanted. The reason of
   * a failure goes to the log and not into the answer, which anybody may ask for.
   */
  async report(excluded: ReadonlySet<string>, verbose: boolean): Promise<Report> {
    const all = [...this.#all()].sort(([a], [b]) => (a < b ? -1 : 1));
    const lines = await Promise.all(
      all.map(async ([name, check]) => {
        if (excluded.has(name)) return { line: `[+]${name} excluded: ok`, passed: true };
        const { passed, remark } = await this.#ask(name, check);
        const ok = remark === undefined ? 'ok' : `ok: ${remark}`;
        return { line: passed ? `[+]${name} ${ok}` : `[-]${name} failed: reason withheld`, passed };
      }),
    );
    const healthy = lines.every(({ passed }) => passed);
    if (healthy && !verbose) return { healthy, text: 'ok' };
    const unknown = [...excluded].filter((name) => !this.has(name));
    const warning = `warn: some health checks cannot be excluded: no matches for ${JSON.stringify(unknown)}`;
    const text = [
      ...lines.map(({ line }) => line),
      ...(unknown.length > 0 ? [warning] : []),
      `${this.#name} check ${healthy ? 'passed' : 'failed'}`,
    ];
    return { healthy, text: `${text.join('\n')}\n` };
  }

  /** One of them alone. */
  async reportOne(name: string): Promise<Report> {
    const check = this.#all().get(name);
    const healthy = check !== undefined && (await this.#ask(name, check)).passed;
    return { healthy, text: healthy ? 'ok' : `${name} failed: reason withheld\n` };
  }

  /** Without any, that we answer is what there is to know. */
  #all(): ReadonlyMap<string, Check> {
    return this.#checks.size > 0 ? this.#checks : PING;
  }

  async #ask(name: string, check: Check): Promise<{ passed: boolean; remark?: string | undefined }> {
    const { clock, logger } = this.#options;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = clock.after(LONGEST_MS, () => reject(new Error(`no result within ${LONGEST_MS / 1000} s`)));
    try {
      const remark = await Promise.race([late, (async () => check())()]);
      return { passed: true, remark: remark ?? undefined };
    } catch (error) {
      logger.info({ check: name, reason: messageOf(error) }, `${this.#name} check failed`);
      return { passed: false };
    } finally {
      timer.cancel();
    }
  }
}

const PING: ReadonlyMap<string, Check> = new Map([['ping', () => undefined]]);
