import { messageOf, systemCode } from '@vmwright/core';
import { request } from 'undici';
import { TestbedError } from '../errors.ts';

/** Toxiproxy's HTTP API, as far as the testbed needs it: it is told things and asked nothing. */
export class Api {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async serves(): Promise<boolean> {
    return (await this.#send('GET', '/version')).ok;
  }

  async create(path: string, body: object): Promise<void> {
    await this.#tell('POST', path, body);
  }

  async change(path: string, body: object): Promise<void> {
    await this.#tell('PATCH', path, body);
  }

  /** What is not there, or was in a server that is no longer there, is as good as removed. */
  async remove(path: string): Promise<void> {
    try {
      const answer = await this.#send('DELETE', path);
      if (!answer.ok && answer.status !== 404) throw refused('DELETE', path, answer);
    } catch (error) {
      if (systemCode(error) !== 'ECONNREFUSED') throw error;
    }
  }

  async #tell(method: 'POST' | 'PATCH', path: string, body: object): Promise<void> {
    const answer = await this.#send(method, path, body).catch((error) => {
      throw new TestbedError('REQUEST_FAILED', `toxiproxy does not answer: ${messageOf(error)}`, {
        cause: error,
      });
    });
    if (!answer.ok) throw refused(method, path, answer);
  }

  async #send(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Answer> {
    const response = await request(this.#url + path, {
      method,
      reset: true, // a connection a request: tests kill the server, and a kept connection would fail the next one
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    const status = response.statusCode;
    return { status, ok: status >= 200 && status < 300, text: await response.body.text() };
  }
}

interface Answer {
  readonly status: number;
  readonly ok: boolean;
  readonly text: string;
}

function refused(method: string, path: string, { status, text }: Answer): TestbedError {
  return new TestbedError(
    'REQUEST_FAILED',
    `toxiproxy refused ${method} ${path} with ${status}: ${text.trim()}`,
  );
}
