import { messageOf } from '@vmwright/core';
import { request } from 'undici';
import { TestbedError } from '../errors.ts';

/** Something that shall go wrong in the simulator. */
export type FaultRule = (
  | {
      /** A vim25 method, such as `CloneVM_Task`: the call itself fails. */
      readonly method: string;
    }
  | {
      /** A task, such as `CloneVm`: the call succeeds, and the task it has started fails. */
      readonly task: string;
    }
) & {
  /** A vim25 fault, such as `NoPermission`. */
  readonly fault: string;
  readonly message?: string;
  /** How many matching calls pass first. @default 0 */
  readonly skip?: number;
  /** How often it strikes; 0 is always. @default 0 */
  readonly max?: number;
  /** That it strikes a matching call, more than 0 and at most 1. @default 1 */
  readonly probability?: number;
  /** Only calls on objects of this type, such as `VirtualMachine`. */
  readonly objectType?: string;
  /** Only calls on inventory objects of this name. */
  readonly objectName?: string;
};

export interface FaultState {
  readonly fault: string;
  /** Calls that matched the rule. */
  readonly seen: number;
  /** Calls that were given the fault. */
  readonly injected: number;
}

export interface Delays {
  /** Milliseconds by method (`CloneVM_Task`): the call is answered late, and carried out even if nobody waits any more. */
  readonly methods?: Readonly<Record<string, number>>;
  /** Milliseconds by task (`CloneVm`, `PowerOn`, `PowerOff`, `ReconfigVm`, `Destroy`): it stays `running` for so long. */
  readonly tasks?: Readonly<Record<string, number>>;
}

export interface HostState {
  readonly gpus?: number;
  /** @default 'NVIDIA A100' */
  readonly gpuModel?: string;
  readonly maintenance?: boolean;
  readonly connection?: 'connected' | 'disconnected' | 'notResponding';
  readonly cpuUsageMhz?: number;
  readonly memoryUsageMb?: number;
}

export interface VmState {
  readonly cpuUsageMhz?: number;
  readonly cpuDemandMhz?: number;
  readonly guestMemoryMb?: number;
  readonly hostMemoryMb?: number;
  /** Empty for none. */
  readonly ip?: string;
}

export interface VcsimSession {
  readonly user: string;
  readonly agent: string;
  readonly calls: number;
}

/** What a test can do to the simulated vCenter behind its back. */
export class VcsimControl {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  async fault(rule: FaultRule): Promise<void> {
    await this.#ask('POST', '/faults', rule);
  }

  /** What became of the rules, in the order they were given. */
  async faults(): Promise<readonly FaultState[]> {
    return this.#read('/faults', listOf(isFaultState));
  }

  async clearFaults(): Promise<void> {
    await this.#ask('DELETE', '/faults');
  }

  /** The next `count` calls are answered with this HTTP status and no SOAP. */
  async status(code: number, count = 1): Promise<void> {
    await this.#ask('PUT', '/status', { code, count });
  }

  async clearStatus(): Promise<void> {
    await this.#ask('DELETE', '/status');
  }

  /** Resets all open connections of clients, whatever is under way on them, and tells how many there were. */
  async drop(): Promise<number> {
    return numberIn(await this.#ask('POST', '/drop'), 'dropped');
  }

  /**
   * Replaces the delays of methods, of tasks, or both. A change reaches those who wait already, hence a test that wants
   * to see a running task sets an hour and clears it.
   */
  async delay(delays: Delays): Promise<void> {
    await this.#ask('PUT', '/delays', delays);
  }

  async clearDelays(): Promise<void> {
    await this.#ask('DELETE', '/delays');
  }

  /** For sessions that begin from now on; an idle one ends after one to two timeouts. */
  async sessionTimeout(ms: number): Promise<void> {
    await this.#ask('PUT', '/session-timeout', { ms });
  }

  async sessions(): Promise<readonly VcsimSession[]> {
    return this.#read('/sessions', listOf(isSession));
  }

  /** Ends all sessions at once, also those with a call for updates under way, and tells how many there were. */
  async expireSessions(): Promise<number> {
    return numberIn(await this.#ask('DELETE', '/sessions'), 'expired');
  }

  /** By name (`DC0_C0_H0`) or reference (`host-21`). Watchers are sent updates. */
  async host(name: string, state: HostState): Promise<void> {
    await this.#ask('PATCH', `/hosts/${encodeURIComponent(name)}`, state);
  }

  /** By name (`DC0_C0_RP0_VM0`) or reference (`vm-54`). Watchers are sent updates. */
  async vm(name: string, state: VmState): Promise<void> {
    await this.#ask('PATCH', `/vms/${encodeURIComponent(name)}`, state);
  }

  /** How often each method was called, whatever it was answered. */
  async calls(): Promise<Readonly<Record<string, number>>> {
    return this.#read('/calls', isCounts);
  }

  async resetCalls(): Promise<void> {
    await this.#ask('DELETE', '/calls');
  }

  async #read<T>(path: string, is: (value: unknown) => value is T): Promise<T> {
    const answer = await this.#ask('GET', path);
    if (is(answer)) return answer;
    throw failed(`GET ${path}`, `it answered ${JSON.stringify(answer)}`);
  }

  async #ask(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: object,
  ): Promise<unknown> {
    const what = `${method} ${path}`;
    let status: number;
    let answer: unknown;
    try {
      // One connection a request: a kept one would be dead after the restart that a test has in mind.
      const response = await request(`${this.url}${path}`, {
        method,
        reset: true,
        ...(body && { body: JSON.stringify(body) }),
      });
      status = response.statusCode;
      answer = await response.body.json();
    } catch (error) {
      throw failed(what, messageOf(error), error);
    }
    if (status !== 200) throw failed(what, isRefusal(answer) ? answer.error : `HTTP status ${status}`);
    return answer;
  }
}

function failed(what: string, why: string, cause?: unknown): TestbedError {
  return new TestbedError('REQUEST_FAILED', `vcsim's control port did not carry out ${what}: ${why}`, {
    cause,
  });
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function isRefusal(value: unknown): value is { readonly error: string } {
  return isObject(value) && 'error' in value && typeof value.error === 'string';
}

function isCounts(value: unknown): value is Readonly<Record<string, number>> {
  return isObject(value) && Object.values(value).every((count) => typeof count === 'number');
}

function isFaultState(value: unknown): value is FaultState {
  if (!isObject(value) || !('fault' in value) || !('seen' in value) || !('injected' in value)) return false;
  return (
    typeof value.fault === 'string' && typeof value.seen === 'number' && typeof value.injected === 'number'
  );
}

function isSession(value: unknown): value is VcsimSession {
  if (!isObject(value) || !('user' in value) || !('agent' in value) || !('calls' in value)) return false;
  return typeof value.user === 'string' && typeof value.agent === 'string' && typeof value.calls === 'number';
}

function listOf<T>(is: (value: unknown) => value is T) {
  return (value: unknown): value is readonly T[] => Array.isArray(value) && value.every(is);
}

function numberIn(answer: unknown, field: string): number {
  const number = isCounts(answer) ? answer[field] : undefined;
  if (number !== undefined) return number;
  throw new TestbedError(
    'REQUEST_FAILED',
    `vcsim's control port tells no ${field}: ${JSON.stringify(answer)}`,
  );
}
