import type { IncomingMessage } from 'node:http';
import type { Clock } from '@vmwright/core';
import type { QueuedKey } from '../queue/work-queue.ts';
import { type HttpResponse, methodNotAllowed, RequestError } from '../server/http-response.ts';
import { recordCpuProfile } from './cpu-profile.ts';
import { takeHeapSnapshot } from './heap-snapshot.ts';

/** Data that the debug endpoints show. */
export interface DebugOptions {
  readonly clock: Pick<Clock, 'after'>;
  /**
   * Whether this replica leads, or is a member of the sharding. It then rejects heap snapshots, which would block it
   * until it loses its Lease.
   */
  readonly isLeading: () => boolean;
  /** Returns the queued keys of each controller. */
  readonly queues: () => Readonly<Record<string, readonly QueuedKey[]>>;
  /** Returns the in-flight operations, keyed by the name that was passed to `Manager.showOperations`. */
  readonly operations: () => Readonly<Record<string, readonly object[]>>;
}

const PATHS = ['/debug/queues', '/debug/operations', '/debug/profile', '/debug/heap'] as const;
/** Path of a debug endpoint. */
export type DebugPath = (typeof PATHS)[number];

export function isDebugPath(path: string): path is DebugPath {
  return PATHS.some((each) => each === path);
}

const DEFAULT_SECONDS = 10;
const MAX_SECONDS = 60;

/**
 * Serves the debug endpoints of a running program. All servers of the program share one instance, so that only one
 * profile or heap snapshot is recorded at a time.
 *
 * - `/debug/queues` and `/debug/operations` return JSON.
 * - `/debug/profile?seconds=10` samples the CPU and returns a file for Chrome's developer tools.
 * - `/debug/heap` returns a heap snapshot, which contains every Secret in memory. A leader rejects the request: taking
 *   a snapshot blocks the process for seconds, and the leader would lose its Lease.
 */
export class DebugEndpoints {
  readonly #options: DebugOptions;
  #isRecording = false;

  constructor(options: DebugOptions) {
    this.#options = options;
  }

  /** Answers a request that the caller has authorized. @throws RequestError */
  async respond(
    path: DebugPath,
    request: Pick<IncomingMessage, 'method' | 'socket'>,
    query: URLSearchParams,
  ): Promise<HttpResponse> {
    if (request.method !== 'GET') return methodNotAllowed('GET');
    switch (path) {
      case '/debug/queues':
        return json(this.#options.queues());
      case '/debug/operations':
        return json(this.#options.operations());
      case '/debug/profile':
        return this.#exclusively(() => this.#profile(query, request));
      case '/debug/heap':
        return this.#exclusively(() => this.#heap());
    }
  }

  /**
   * Rejects a second recording while one is in progress. The recording of a heap snapshot ends when its stream has
   * closed, because the snapshot stays in memory until then.
   */
  async #exclusively(record: () => Promise<HttpResponse>): Promise<HttpResponse> {
    if (this.#isRecording)
      throw new RequestError(409, 'a profile or a heap snapshot is being recorded; try again later\n');
    this.#isRecording = true;
    const end = () => {
      this.#isRecording = false;
    };
    try {
      const response = await record();
      if (typeof response.text === 'string') end();
      else response.text.once('close', end);
      return response;
    } catch (error) {
      end();
      throw error;
    }
  }

  async #profile(query: URLSearchParams, { socket }: Pick<IncomingMessage, 'socket'>): Promise<HttpResponse> {
    const text = query.get('seconds') ?? String(DEFAULT_SECONDS);
    const seconds = Number(text);
    if (!(seconds >= 1 && seconds <= MAX_SECONDS))
      throw new RequestError(400, `seconds is "${text}"; it must be a number from 1 to ${MAX_SECONDS}\n`);
    const { promise: passed, resolve } = Promise.withResolvers<void>();
    const timer = this.#options.clock.after(seconds * 1_000, resolve);
    socket.once('close', resolve); // a client that disconnects does not keep the profiler running
    try {
      return file('vmwright.cpuprofile', await recordCpuProfile(passed));
    } finally {
      timer.cancel();
      socket.off('close', resolve);
    }
  }

  async #heap(): Promise<HttpResponse> {
    if (this.#options.isLeading())
      throw new RequestError(
        409,
        'this replica leads, and a heap snapshot would block it until it loses its Lease; ask a standby replica\n',
      );
    return file('vmwright.heapsnapshot', takeHeapSnapshot());
  }
}

function json(body: object): HttpResponse {
  return { status: 200, text: `${JSON.stringify(body, null, 2)}\n`, contentType: 'application/json' };
}

function file(name: string, content: HttpResponse['text']): HttpResponse {
  const headers = { 'content-disposition': `attachment; filename="${name}"` };
  return { status: 200, text: content, contentType: 'application/json', headers };
}
