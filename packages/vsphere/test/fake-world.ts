import type { Transport, TransportRequest } from '@vmwright/core';
import { responseOf } from '@vmwright/core/testing';
import type { VsphereWorld } from '../src/world.ts';

interface FakeTimer {
  readonly at: number;
  readonly callback: () => void;
}

export interface FakeResponse {
  readonly status?: number;
  readonly text: string;
  readonly cookie?: string;
}

/** A world with a manual clock and a function as server. */
export class FakeWorld implements VsphereWorld {
  readonly requests: TransportRequest[] = [];
  readonly #server: (request: TransportRequest) => Promise<FakeResponse> | FakeResponse;
  readonly #timers = new Set<FakeTimer>();
  #time = 0;
  #uuids = 0;

  constructor(server: (request: TransportRequest) => Promise<FakeResponse> | FakeResponse) {
    this.#server = server;
  }

  monotonic(): number {
    return this.#time;
  }

  after(ms: number, callback: () => void) {
    const timer = { at: this.#time + ms, callback };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  random(): number {
    return 0.5;
  }

  uuid(): string {
    return `uuid-${++this.#uuids}`;
  }

  connect(): Transport {
    return {
      request: async (request) => {
        this.requests.push(request);
        const aborted = new Promise<never>((_, reject) => {
          request.signal?.addEventListener('abort', () => reject(request.signal?.reason), { once: true });
        });
        const { status = 200, text, cookie } = await Promise.race([this.#server(request), aborted]);
        return responseOf({ status, body: text, headers: { 'set-cookie': cookie } });
      },
      close: async () => undefined,
    };
  }

  /** Advances the clock and runs the due timers in order. */
  advance(ms: number): void {
    const end = this.#time + ms;
    for (;;) {
      const [next] = [...this.#timers].filter(({ at }) => at <= end).sort((one, other) => one.at - other.at);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#time = Math.max(this.#time, next.at);
      next.callback();
    }
    this.#time = end;
  }

  /** Advances the clock from timer to timer until the promise settles. */
  async runUntilSettled<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
    };
    promise.then(settle, settle);
    while (!isSettled) {
      for (let i = 0; i < 50; i++) await Promise.resolve();
      if (isSettled) break;
      const next = Math.min(...[...this.#timers].map(({ at }) => at));
      if (next === Number.POSITIVE_INFINITY) throw new Error('the promise is pending and no timer is set');
      this.advance(next - this.#time);
    }
    return promise;
  }
}

/** Returns the name of the called method. */
export function methodIn({ body = '' }: TransportRequest): string {
  return /<soapenv:Body><(\w+)/.exec(body)?.[1] ?? '';
}

export function soap(content: string): string {
  return (
    '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"' +
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">' +
    `<soapenv:Body>${content}</soapenv:Body></soapenv:Envelope>`
  );
}

export function faultResponse(type: string, message = ''): FakeResponse {
  const detail = `<detail><${type}Fault xsi:type="${type}"/></detail>`;
  const fault = `<faultcode>ServerFaultCode</faultcode><faultstring>${message}</faultstring>${detail}`;
  return { status: 500, text: soap(`<soapenv:Fault>${fault}</soapenv:Fault>`) };
}

/** Returns a server that handles version discovery and login, and passes other requests to `rest`. */
export function withLogin(
  rest: (request: TransportRequest) => Promise<FakeResponse> | FakeResponse,
  {
    apiVersion = '8.0.3.0',
    versions,
    instanceUuid,
  }: {
    readonly apiVersion?: string;
    readonly versions?: string;
    readonly instanceUuid?: string;
  } = {},
) {
  let sessions = 0;
  return (request: TransportRequest): Promise<FakeResponse> | FakeResponse => {
    if (request.method === 'GET')
      return versions === undefined ? { status: 404, text: '' } : { text: versions };
    switch (methodIn(request)) {
      case 'RetrieveServiceContent':
        return { text: soap(content(apiVersion, instanceUuid)) };
      case 'Login': {
        const session = `<returnval><key>session-${++sessions}</key><userName>u</userName></returnval>`;
        const cookie = `vmware_soap_session="session-${sessions}"; Path=/; HttpOnly`;
        return { text: soap(`<LoginResponse>${session}</LoginResponse>`), cookie };
      }
      default:
        return rest(request);
    }
  };
}

function content(apiVersion: string, instanceUuid: string | undefined): string {
  const refs = ['rootFolder:Folder', 'propertyCollector:PropertyCollector', 'viewManager:ViewManager'];
  const before = refs.map(ref).join('');
  const after = ['sessionManager:SessionManager', 'searchIndex:SearchIndex'].map(ref).join('');
  const uuid = instanceUuid === undefined ? '' : `<instanceUuid>${instanceUuid}</instanceUuid>`;
  const about = `<about><apiVersion>${apiVersion}</apiVersion>${uuid}</about>`;
  return `<RetrieveServiceContentResponse><returnval>${before}${about}${after}</returnval></RetrieveServiceContentResponse>`;
}

function ref(text: string): string {
  const [name, type] = text.split(':');
  return `<${name} type="${type}">${name}</${name}>`;
}
