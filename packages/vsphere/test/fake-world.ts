import type { Transport, TransportRequest } from '@vmwright/core';
import { responseOf, VirtualClock } from '@vmwright/core/testing';
import type { VsphereWorld } from '../src/world.ts';

export interface FakeResponse {
  readonly status?: number;
  readonly text: string;
  readonly cookie?: string;
}

/** World with a virtual clock and a server that the test implements as a function. */
export class FakeWorld extends VirtualClock implements VsphereWorld {
  readonly requests: TransportRequest[] = [];
  readonly #server: (request: TransportRequest) => Promise<FakeResponse> | FakeResponse;
  #uuids = 0;

  constructor(server: (request: TransportRequest) => Promise<FakeResponse> | FakeResponse) {
    super(0);
    this.#server = server;
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
