import { Deadline, messageOf, type Transport, type TransportResponse } from '@vmwright/core';
import { ConnectionError, InvalidResponseError, UnavailableError, VsphereError } from '../errors.ts';
import { FaultError, nameOf } from '../faults.ts';
import type { ManagedObjectReference } from '../vim25/vim25.generated.ts';
import type { VsphereWorld } from '../world.ts';
import { isCertificateError } from './certificate-error.ts';
import {
  type ArgsOf,
  buildRequest,
  isResultOf,
  type Method,
  parseResponse,
  type ResultOf,
} from './envelope.ts';

export interface CallObserver {
  /**
   * Called after each API call, for metrics.
   * @param code `ok`, the name of the fault, the HTTP status, or `<error>` when no valid response arrived
   */
  onCall(method: string, code: string, durationMs: number): void;
}

export interface SoapClientOptions {
  readonly world: Pick<VsphereWorld, 'monotonic' | 'after'>;
  readonly transport: Transport;
  /** Path of the SOAP endpoint: `/sdk`. */
  readonly path: string;
  readonly userAgent: string;
  readonly observer?: CallObserver | undefined;
}

export interface SoapRequest<M extends Method> {
  readonly method: M;
  readonly self: ManagedObjectReference;
  readonly args: ArgsOf<M>;
  /** Name of the operation in errors. @default the method and the object */
  readonly description?: string | undefined;
  /** Whether the call changes something in vCenter. If so, its effect is unknown when no response arrives. */
  readonly changes: boolean;
  readonly version: string;
  readonly cookie?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Time limit of the whole response, in milliseconds. */
  readonly timeoutMs: number;
  /** Whether the server holds the request open and may respond late. */
  readonly lasting?: boolean | undefined;
  /** Called right before the request is sent. Throws to prevent the send. */
  readonly assertLeader?: (() => void) | undefined;
  /** Text that is removed from error messages. */
  readonly secret?: string | undefined;
}

export interface SoapResponse<M extends Method> {
  readonly result: ResultOf<M>;
  /** Session cookie, when the server sets one. */
  readonly cookie: string | undefined;
}

/** Maximum size of a response with properties of many objects: enough for 10,000 machines with 12 KB each. */
const MAX_PROPERTIES_BYTES = 128 << 20;
/** Maximum size of any other response. */
const MAX_RESPONSE_BYTES = 16 << 20;
const MAX_FILE_BYTES = 1 << 20;
const PROPERTY_METHODS: ReadonlySet<string> = new Set<Method>([
  'RetrievePropertiesEx',
  'ContinueRetrievePropertiesEx',
  'WaitForUpdatesEx',
]);

/** Sends single SOAP calls, without session handling and retries. */
export class SoapClient {
  readonly #options: SoapClientOptions;

  constructor(options: SoapClientOptions) {
    this.#options = options;
  }

  /**
   * Sends a call and returns its result.
   * @throws FaultError, UnavailableError, ConnectionError, InvalidResponseError, InvalidRequestError, the error of
   *   `assertLeader`, or the reason of the aborted signal
   */
  async call<M extends Method>(request: SoapRequest<M>): Promise<SoapResponse<M>> {
    const { world, observer } = this.#options;
    const { method, self, args, version, signal, changes } = request;
    const body = buildRequest(method, self, args, version);
    signal?.throwIfAborted();
    request.assertLeader?.(); // `beforeSend` repeats this check, because the request may wait for a connection
    const started = world.monotonic();
    const record = (code: string) => observer?.onCall(method, code, world.monotonic() - started);
    const deadline = new Deadline(world, request.timeoutMs, signal);
    try {
      const response = await this.#post(request, body, deadline.signal);
      const text = await response.text();
      return { result: this.#read(request, response.status, text, record), cookie: sessionCookie(response) };
    } catch (error) {
      if (error instanceof VsphereError) throw error;
      if (error instanceof FencedError) throw error.cause;
      record('<error>');
      signal?.throwIfAborted();
      if (isTooLarge(error))
        throw new InvalidResponseError(
          `${describeRequest(request)}: ${messageOf(error)}${effectNote(changes)}`,
          {
            effectUnknown: changes,
          },
        );
      const why = deadline.passed
        ? `no response within ${request.timeoutMs / 1000} s`
        : redact(request.secret, messageOf(error));
      const untrusted = isCertificateError(error);
      // The error has no `cause`: a transport may attach the request to its errors, and the request may contain the
      // password.
      throw new ConnectionError(`${describeRequest(request)}: ${why}${effectNote(changes && !untrusted)}`, {
        effectUnknown: changes,
        untrusted,
      });
    } finally {
      deadline.end();
    }
  }

  /** Fetches a file from the server. @returns its text; undefined if the status is not 200 @throws ConnectionError */
  async getFile(path: string, timeoutMs: number): Promise<string | undefined> {
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
        maxBytes: MAX_FILE_BYTES,
      });
      const text = await response.text();
      return response.status === 200 ? text : undefined;
    } catch (error) {
      const why = deadline.passed ? `no response within ${timeoutMs / 1000} s` : messageOf(error);
      const untrusted = isCertificateError(error);
      throw new ConnectionError(`GET ${path}: ${why}`, { effectUnknown: false, untrusted });
    } finally {
      deadline.end();
    }
  }

  #post<M extends Method>(
    { method, version, cookie, lasting, assertLeader }: SoapRequest<M>,
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
      maxBytes: PROPERTY_METHODS.has(method) ? MAX_PROPERTIES_BYTES : MAX_RESPONSE_BYTES,
      ...(lasting && { lasting }),
      ...(assertLeader && { beforeSend: () => assertLeaderBeforeSend(assertLeader) }),
    });
  }

  #read<M extends Method>(
    request: SoapRequest<M>,
    status: number,
    text: string,
    record: (code: string) => void,
  ): ResultOf<M> {
    const { method, changes, secret } = request;
    const what = describeRequest(request);
    // vCenter sends results with status 200 and faults with status 500. Any other response comes from a proxy or a
    // vCenter that is starting.
    if (status !== 200 && !(status === 500 && text.includes('Envelope'))) {
      record(String(status));
      throw new UnavailableError(`${what}: HTTP status ${status}${effectNote(changes)}`, {
        effectUnknown: changes,
        status,
      });
    }
    const parsed = this.#parse(what, method, text, changes, record);
    if ('result' in parsed) {
      record('ok');
      if (isResultOf(method, parsed.result)) return parsed.result;
      throw new InvalidResponseError(`${what}: the response has no result${effectNote(changes)}`, {
        effectUnknown: changes,
      });
    }
    const { type, detail, message } = parsed.fault;
    record(type);
    throw new FaultError(what, type, detail, redact(secret, message));
  }

  #parse(what: string, method: Method, text: string, changes: boolean, record: (code: string) => void) {
    try {
      return parseResponse(text, method);
    } catch (error) {
      if (!(error instanceof InvalidResponseError)) throw error;
      record('<error>');
      throw new InvalidResponseError(`${what}: ${error.message}${effectNote(changes)}`, {
        effectUnknown: changes,
      });
    }
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'RESPONSE_TOO_LARGE';
}

/** Carries the error of `assertLeader` through the transport, to distinguish it from network errors. */
class FencedError extends Error {}

function assertLeaderBeforeSend(assertLeader: () => void): void {
  try {
    assertLeader();
  } catch (cause) {
    throw new FencedError('the request must not be sent', { cause });
  }
}

function describeRequest<M extends Method>({ description, method, self }: SoapRequest<M>): string {
  return description ?? `${method} on ${nameOf(self)}`;
}

function effectNote(changes: boolean): string {
  return changes ? '; it is unknown whether vCenter carried it out' : '';
}

function redact(secret: string | undefined, text: string): string {
  return secret === undefined || secret === '' ? text : text.replaceAll(secret, '[redacted]');
}

function sessionCookie(response: TransportResponse): string | undefined {
  return /vmware_soap_session=[^;,\s]+/.exec(response.header('set-cookie') ?? '')?.[0];
}
