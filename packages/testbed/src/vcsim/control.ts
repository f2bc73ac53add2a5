import { messageOf } from '@vmwright/core';
import { request } from 'undici';
import { TestbedError } from '../errors.ts';

/** Rule that injects a fault into the simulator. */
export type FaultRule = (
  | {
      /** vim25 method, such as `CloneVM_Task`. The call itself fails. */
      readonly method: string;
    }
  | {
      /** Task, such as `CloneVm`. The call succeeds, and the task that it starts fails. */
      readonly task: string;
    }
) & {
  /** vim25 fault type, such as `NoPermission`. */
  readonly fault: string;
  readonly message?: string;
  /** Number of matching calls that succeed before the first fault. @default 0 */
  readonly skip?: number;
  /** Maximum number of injected faults; 0 for no limit. @default 0 */
  readonly max?: number;
  /** Probability that a matching call gets the fault, in (0, 1]. @default 1 */
  readonly probability?: number;
  /** Limits the rule to objects of this type, such as `VirtualMachine`. */
  readonly objectType?: string;
  /** Limits the rule to inventory objects with this name. */
  readonly objectName?: string;
};

export interface FaultState {
  readonly fault: string;
  /** Number of calls that matched the rule. */
  readonly seen: number;
  /** Number of calls that got the fault. */
  readonly injected: number;
}

export interface Delays {
  /** Delay of a call in ms, by method (`CloneVM_Task`). The call is executed even if the client disconnects. */
  readonly methods?: Readonly<Record<string, number>>;
  /** Additional time in state `running` in ms, by task (`CloneVm`, `PowerOn`, `PowerOff`, `ReconfigVm`, `Destroy`). */
  readonly tasks?: Readonly<Record<string, number>>;
}

export interface HostState {
  readonly gpus?: number;
  /** @default 'NVIDIA A100' */
  readonly gpuModel?: string;
  /** Way in which the host offers its GPUs to VMs. @default 'passthrough' */
  readonly gpuMode?: 'passthrough' | 'vgpu' | 'graphics';
  readonly maintenance?: boolean;
  readonly connection?: 'connected' | 'disconnected' | 'notResponding';
  readonly cpuUsageMhz?: number;
  readonly memoryUsageMb?: number;
  /** Custom attributes by name. An empty value removes an attribute. The simulator defines missing attributes. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** A PCI device of a VM: either the id of a host device (`0000:af:00.0` is the first GPU), or the profile of a vGPU. */
type VmPciDevice =
  | {
      readonly id: string;
      /**
       * If true, vCenter selected the device at power-on. If false, the configuration of the VM names the device.
       * @default false
       */
      readonly dynamic?: boolean;
    }
  | { readonly vgpu: string };

export interface VmState {
  readonly cpuUsageMhz?: number;
  readonly cpuDemandMhz?: number;
  readonly guestMemoryMb?: number;
  readonly hostMemoryMb?: number;
  /** IP address of the guest; an empty string removes it. */
  readonly ip?: string;
  /** BIOS UUID. */
  readonly uuid?: string;
  readonly instanceUuid?: string;
  /** Host to move the VM to, by name or reference. */
  readonly host?: string;
  /** Replaces the attached PCI devices. */
  readonly pciDevices?: readonly VmPciDevice[];
}

/** A scheduled task. The simulator only reports these values: it never runs the task. */
export interface ScheduledTaskState {
  /** Host or cluster, by name or reference. */
  readonly entity: string;
  /** vim25 method, such as `EnterMaintenanceMode_Task`. */
  readonly method: string;
  /** Time of the next run. @default no further run is scheduled */
  readonly at?: Date;
  /** @default true */
  readonly enabled?: boolean;
  /** Whether the task is running now. @default false */
  readonly running?: boolean;
}

export interface VcsimSession {
  readonly user: string;
  readonly agent: string;
  readonly calls: number;
}

/** Client for the simulator's control port: injects faults and changes the inventory. */
export class VcsimControl {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  async fault(rule: FaultRule): Promise<void> {
    await this.#request('POST', '/faults', rule);
  }

  /** Returns the fault rules and their counters, in the order in which they were added. */
  async faults(): Promise<readonly FaultState[]> {
    return this.#read('/faults', listOf(isFaultState));
  }

  async clearFaults(): Promise<void> {
    await this.#request('DELETE', '/faults');
  }

  /** Responds to the next `count` calls with this HTTP status and without a SOAP body. */
  async status(code: number, count = 1): Promise<void> {
    await this.#request('PUT', '/status', { code, count });
  }

  async clearStatus(): Promise<void> {
    await this.#request('DELETE', '/status');
  }

  /** Resets all open client connections, including those with calls in flight. @returns the number of connections */
  async drop(): Promise<number> {
    return numberIn(await this.#request('POST', '/drop'), 'dropped');
  }

  /**
   * Replaces the delays of methods, of tasks, or both. A change also applies to calls and tasks that are already
   * delayed. A test can delay a task by an hour to observe it, and then clear the delay.
   */
  async delay(delays: Delays): Promise<void> {
    await this.#request('PUT', '/delays', delays);
  }

  async clearDelays(): Promise<void> {
    await this.#request('DELETE', '/delays');
  }

  /** Sets the idle timeout of new sessions. An idle session ends after one to two times this timeout. */
  async sessionTimeout(ms: number): Promise<void> {
    await this.#request('PUT', '/session-timeout', { ms });
  }

  async sessions(): Promise<readonly VcsimSession[]> {
    return this.#read('/sessions', listOf(isSession));
  }

  /** Ends all sessions, including those with a pending WaitForUpdatesEx. @returns the number of sessions */
  async expireSessions(): Promise<number> {
    return numberIn(await this.#request('DELETE', '/sessions'), 'expired');
  }

  /** Changes the host with this name (`DC0_C0_H0`) or reference (`host-21`). Property collectors are notified. */
  async host(name: string, state: HostState): Promise<void> {
    await this.#request('PATCH', `/hosts/${encodeURIComponent(name)}`, state);
  }

  /** Changes the VM with this name (`DC0_C0_RP0_VM0`) or reference (`vm-54`). Property collectors are notified. */
  async vm(name: string, state: VmState): Promise<void> {
    await this.#request('PATCH', `/vms/${encodeURIComponent(name)}`, state);
  }

  /** Creates the scheduled task with this name, or replaces it. Property collectors are notified. */
  async scheduleTask(name: string, state: ScheduledTaskState): Promise<void> {
    await this.#request('PUT', `/scheduled-tasks/${encodeURIComponent(name)}`, state);
  }

  async removeScheduledTask(name: string): Promise<void> {
    await this.#request('DELETE', `/scheduled-tasks/${encodeURIComponent(name)}`);
  }

  /** Returns the number of calls of each method, including failed calls. */
  async calls(): Promise<Readonly<Record<string, number>>> {
    return this.#read('/calls', isCounts);
  }

  async resetCalls(): Promise<void> {
    await this.#request('DELETE', '/calls');
  }

  async #read<T>(path: string, is: (value: unknown) => value is T): Promise<T> {
    const response = await this.#request('GET', path);
    if (is(response)) return response;
    throw failed(`GET ${path}`, `unexpected response ${JSON.stringify(response)}`);
  }

  async #request(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: object,
  ): Promise<unknown> {
    const what = `${method} ${path}`;
    let status: number;
    let result: unknown;
    try {
      // Keep-alive is off, because tests restart the simulator, and a stale connection would fail the next request.
      const response = await request(`${this.url}${path}`, {
        method,
        reset: true,
        ...(body && { body: JSON.stringify(body) }),
      });
      status = response.statusCode;
      result = await response.body.json();
    } catch (error) {
      throw failed(what, messageOf(error), error);
    }
    if (status !== 200) throw failed(what, isErrorResponse(result) ? result.error : `HTTP status ${status}`);
    return result;
  }
}

function failed(what: string, reason: string, cause?: unknown): TestbedError {
  return new TestbedError('REQUEST_FAILED', `${what} on vcsim's control port failed: ${reason}`, {
    cause,
  });
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function isErrorResponse(value: unknown): value is { readonly error: string } {
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

function numberIn(response: unknown, field: string): number {
  const number = isCounts(response) ? response[field] : undefined;
  if (number !== undefined) return number;
  throw new TestbedError(
    'REQUEST_FAILED',
    `vcsim's control port returned no ${field}: ${JSON.stringify(response)}`,
  );
}
