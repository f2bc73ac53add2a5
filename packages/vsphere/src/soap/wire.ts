import { Deadline, messageOf, type Transport, type TransportResponse } from '@vmwright/core';
import { ConnectionError, UnavailableError, UnreadableAnswerError, VsphereError } from '../errors.ts';
import { FaultError, nameOf } from '../faults.ts';
import type { ManagedObjectReference } from '../vim25/vim25.generated.ts';
import type { VsphereWorld } from '../world.ts';
import { type ArgsOf, answer, isResultOf, type Method, type ResultOf, request } from './envelope.ts';
import { isUntrusted } from './untrusted.ts';

/** Told of each answer, for metrics. */
export interface CallObserver {
  /** @param code `ok`, the name of the fault, the HTTP status, or `<error>` where no answer has come */
  answered(method: string, code: string, durationMs: number): void;
}

export interface WireOptions {
  readonly world: Pick<VsphereWorld, 'monotonic' | 'after'>;
  readonly transport: Transport;
  /** `/sdk` */
  readonly path: string;
  readonly userAgent: string;
  readonly observer?: CallObserver | undefined;
}

export interface Outgoing<M extends Method> {
  readonly method: M;
  readonly self: ManagedObjectReference;
  readonly args: ArgsOf<M>;
  /** As it reads in an error. @default the method and the object */
  readonly what?: string | undefined;
  /** Whether it changes something, so that without an answer nobody knows whether it has. */
  readonly changes: boolean;
  readonly version: string;
  readonly cookie?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** For the whole answer. */
  readonly timeoutMs: number;
  /** The answer may be long in coming. */
  readonly lasting?: boolean | undefined;
  /** Called right before it is sent; throws when it must not be. */
  readonly assertLeader?: (() => void) | undefined;
  /** Never to be seen in an error. */
  readonly secret?: string | undefined;
}

export interface Received<M extends Method> {
  readonly result: ResultOf<M>;
  /** The session, where the server gives one. */
  readonly cookie: string | undefined;
}

/** Limit of an answer with properties of many objects: 10,000 machines of 12 KB. */
const PROPERTIES_BYTES = 128 << 20;
/** Limit of any other answer. */
const ANSWER_BYTES = 16 << 20;
const FILE_BYTES = 1 << 20;
const OF_PROPERTIES: ReadonlySet<string> = new Set<Method>([
  'RetrievePropertiesEx',
  'ContinueRetrievePropertiesEx',
  'WaitForUpdatesEx',
]);

/** Sends one call and reads its answer; knows nothing of sessions. */
export class Wire {
  readonly #options: WireOptions;

  constructor(options: WireOptions) {
    this.#options = options;
  }

  /**
   * @throws FaultError, UnavailableError, ConnectionError, UnreadableAnswerError, InvalidRequestError, and what `assertLeader`
   *   throws; the signal's reason once that has aborted
   */
  async call<M extends Method>(outgoing: Outgoing<M>): Promise<Received<M>> {
    const { world, observer } = this.#options;
    const { method, self, args, version, signal, changes } = outgoing;
    const body = request(method, self, args, version);
    signal?.throwIfAborted();
    outgoing.assertLeader?.(); // and again when it has a connection to be sent over: it may wait for one
    const started = world.monotonic();
    const tell = (code: string) => observer?.answered(method, code, world.monotonic() - started);
    const deadline = new Deadline(world, outgoing.timeoutMs, signal);
    try {
      const response = await this.#post(outgoing, body, deadline.signal);
      const text = await response.text();
      return { result: this.#read(outgoing, response.status, text, tell), cookie: cookieIn(response) };
    } catch (caught) {
      if (caught instanceof VsphereError) throw caught;
      if (caught instanceof NotAllowed) throw caught.cause;
      tell('<error>');
      signal?.throwIfAborted();
      if (isTooLarge(caught))
        throw new UnreadableAnswerError(`${nameIn(outgoing)}: ${messageOf(caught)}${doubt(changes)}`, {
          effectUnknown: changes,
        });
      const why = deadline.passed
        ? `no answer within ${outgoing.timeoutMs / 1000} s`
        : without(outgoing.secret, messageOf(caught));
      const untrusted = isUntrusted(caught);
      // Without the cause: what a transport hangs on its errors may be the request, with what is secret in it.
      throw new ConnectionError(`${nameIn(outgoing)}: ${why}${doubt(changes && !untrusted)}`, {
        effectUnknown: changes,
        untrusted,
      });
    } finally {
      deadline.end();
    }
  }

  /** A file that the server has, where it has it. */
  async file(path: string, timeoutMs: number): Promise<string | undefined> {
    const { world, transport, userAgent } = this.#options;
    const deadline = new Deadline(world, timeoutMs, undefined);
    try {
      const headers = { 'user-agent': userAgent };
      const { signal } = deadline;
      const response = await transport.request({
        method: 'GET',
        path,
        headers,
        signal,
        maxBytes: FILE_BYTES,
      });
      const text = await response.text();
      return response.status === 200 ? text : undefined;
    } catch (caught) {
      const why = deadline.passed ? `no answer within ${timeoutMs / 1000} s` : messageOf(caught);
      const untrusted = isUntrusted(caught);
      throw new ConnectionError(`GET ${path}: ${why}`, { effectUnknown: false, untrusted });
    } finally {
      deadline.end();
    }
  }

  #post<M extends Method>(
    { method, version, cookie, lasting, assertLeader }: Outgoing<M>,
    body: string,
    signal: AbortSignal,
  ): Promise<TransportResponse> {
    const { transport, path, userAgent } = this.#options;
    return transport.request({
      method: 'POST',
      path,
      headers: {
        'content-type': 'text/xml; charset=utf-8',
        soapaction: `urn:vim25/${version}`,
        'user-agent': userAgent,
        ...(cookie !== undefined && { cookie }),
      },
      body,
      signal,
      maxBytes: OF_PROPERTIES.has(method) ? PROPERTIES_BYTES : ANSWER_BYTES,
      ...(lasting && { lasting }),
      ...(assertLeader && { beforeSend: () => refuseUnless(assertLeader) }),
    });
  }

  #read<M extends Method>(
    outgoing: Outgoing<M>,
    status: number,
    text: string,
    tell: (code: string) => void,
  ): ResultOf<M> {
    const { method, changes, secret } = outgoing;
    const what = nameIn(outgoing);
    // Faults come with 500; anything else is not from vCenter's SOAP.
    if (status !== 200 && !(status === 500 && text.includes('Envelope'))) {
      tell(String(status));
      throw new UnavailableError(`${what}: HTTP status ${status}${doubt(changes)}`, {
        effectUnknown: changes,
        status,
      });
    }
    const said = this.#understood(what, method, text, changes, tell);
    if ('result' in said) {
      tell('ok');
      if (isResultOf(method, said.result)) return said.result;
      throw new UnreadableAnswerError(`${what}: the answer lacks what was asked for`, {
        effectUnknown: changes,
      });
    }
    const { type, detail, message } = said.fault;
    tell(type);
    throw new FaultError(what, type, detail, without(secret, message));
  }

  #understood(what: string, method: Method, text: string, changes: boolean, tell: (code: string) => void) {
    try {
      return answer(text, method);
    } catch (error) {
      if (!(error instanceof UnreadableAnswerError)) throw error;
      tell('<error>');
      throw new UnreadableAnswerError(`${what}: ${error.message}${doubt(changes)}`, {
        effectUnknown: changes,
      });
    }
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'RESPONSE_TOO_LARGE';
}

/** Carries what `assertLeader` has thrown past those who tell failures of the network. */
class NotAllowed extends Error {}

function refuseUnless(assertLeader: () => void): void {
  try {
    assertLeader();
  } catch (cause) {
    throw new NotAllowed('not allowed', { cause });
  }
}

function nameIn<M extends Method>({ what, method, self }: Outgoing<M>): string {
  return what ?? `${method} on ${nameOf(self)}`;
}

function doubt(changes: boolean): string {
  return changes ? '; whether vCenter has carried it out is unknown' : '';
}

function without(secret: string | undefined, text: string): string {
  return secret === undefined || secret === '' ? text : text.replaceAll(secret, '[redacted]');
}

function cookieIn(response: TransportResponse): string | undefined {
  return /vmware_soap_session=[^;,\s]+/.exec(response.header('set-cookie') ?? '')?.[0];
}
