import { type Clock, type Logger, messageOf } from '@vmwright/core';

/** Health check. It passes unless it throws; a returned remark is shown in verbose reports. */
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

/** Timeout of a check, after which it counts as failed. */
const TIMEOUT_MS = 5_000;

/** Named health checks, reported in the format of Kubernetes components. */
export class Checks {
  readonly #name: string;
  readonly #options: ChecksOptions;
  readonly #checks = new Map<string, Check>();

  /** @param name endpoint of the checks: `healthz` or `readyz` */
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
   * Runs all checks except the excluded ones. The report is `ok` if all checks pass and `verbose` is false; otherwise
   * it has one line per check. The reason of a failure is only logged, because the endpoint needs no authentication.
   */
  async report(excluded: ReadonlySet<string>, verbose: boolean): Promise<Report> {
    const all = [...this.#all()].sort(([a], [b]) => (a < b ? -1 : 1));
    const lines = await Promise.all(
      all.map(async ([name, check]) => {
        if (excluded.has(name)) return { line: `[+]${name} excluded: ok`, passed: true };
        const { passed, remark } = await this.#run(name, check);
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

  /** Runs a single check. */
  async reportOne(name: string): Promise<Report> {
    const check = this.#all().get(name);
    const healthy = check !== undefined && (await this.#run(name, check)).passed;
    return { healthy, text: healthy ? 'ok' : `${name} failed: reason withheld\n` };
  }

  /** Returns the added checks or, if there are none, a check that always passes. */
  #all(): ReadonlyMap<string, Check> {
    return this.#checks.size > 0 ? this.#checks : PING;
  }

  async #run(name: string, check: Check): Promise<{ passed: boolean; remark?: string | undefined }> {
    const { clock, logger } = this.#options;
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const timer = clock.after(TIMEOUT_MS, () => reject(new Error(`no result within ${TIMEOUT_MS / 1000} s`)));
    try {
      const remark = await Promise.race([timeout, (async () => check())()]);
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
