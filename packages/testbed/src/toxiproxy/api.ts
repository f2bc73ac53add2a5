import { messageOf, systemCode } from '@vmwright/core';
import { request } from 'undici';
import { TestbedError } from '../errors.ts';

/** Client for the parts of toxiproxy's HTTP API that the testbed uses. */
export class Api {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async serves(): Promise<boolean> {
    return (await this.#send('GET', '/version')).ok;
  }

  async create(path: string, body: object): Promise<void> {
    await this.#sendOrThrow('POST', path, body);
  }

  async change(path: string, body: object): Promise<void> {
    await this.#sendOrThrow('PATCH', path, body);
  }

  /**
   * Removes an object. Also succeeds if the object does not exist or the server is not running: objects are in memory
   * only, so a stopped server has none.
   */
  async remove(path: string): Promise<void> {
    try {
      const response = await this.#send('DELETE', path);
      if (!response.ok && response.status !== 404) throw requestError('DELETE', path, response);
    } catch (error) {
      if (systemCode(error) !== 'ECONNREFUSED') throw error;
    }
  }

  async #sendOrThrow(method: 'POST' | 'PATCH', path: string, body: object): Promise<void> {
    const response = await this.#send(method, path, body).catch((error) => {
      throw new TestbedError('REQUEST_FAILED', `toxiproxy is unreachable: ${messageOf(error)}`, {
        cause: error,
      });
    });
    if (!response.ok) throw requestError(method, path, response);
  }

  async #send(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: object,
  ): Promise<ApiResponse> {
    const response = await request(this.#url + path, {
      method,
      reset: true, // keep-alive is off, because tests kill the server, and a stale connection would fail the next request
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    const status = response.statusCode;
    return { status, ok: status >= 200 && status < 300, text: await response.body.text() };
  }
}

interface ApiResponse {
  readonly status: number;
  readonly ok: boolean;
  readonly text: string;
}

function requestError(method: string, path: string, { status, text }: ApiResponse): TestbedError {
  return new TestbedError(
    'REQUEST_FAILED',
    `toxiproxy rejected ${method} ${path} with status ${status}: ${text.trim()}`,
  );
}
