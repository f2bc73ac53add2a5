import type { BufferedResponse, ModelRequest, ModelResponse, ModelServer } from '../world/server.ts';
import { methodIn } from './request.ts';
import type { Vcenter } from './vcenter.ts';

/** Calls that a client makes before its login has succeeded. */
const LOGGING_IN: ReadonlySet<string> = new Set([
  '',
  'RetrieveServiceContent',
  'Login',
  'RetrievePropertiesEx',
]);

/**
 * An address that normally leads to one vCenter. While `isRedirected`, it leads to another one, as after a wrong DNS
 * change.
 */
export class Address implements ModelServer {
  isRedirected = false;
  readonly #home: Vcenter;
  readonly #other: Vcenter;
  /**
   * User agents of clients that have used a session at the original vCenter. Other clients cannot notice the
   * redirection, so they get an error instead of a response from the other vCenter.
   */
  readonly #connected = new Set<string>();

  constructor(home: Vcenter, other: Vcenter) {
    this.#home = home;
    this.#other = other;
  }

  receive(request: ModelRequest): ModelResponse {
    if (this.isRedirected)
      return this.#connected.has(request.headers['user-agent'] ?? '')
        ? this.#other.receive(request)
        : this.reject(500);
    const agent = request.headers['user-agent'] ?? '';
    const isLoggedIn = this.#home.sessions.some(({ userAgent }) => userAgent === agent);
    if (isLoggedIn && !LOGGING_IN.has(methodIn(request.body ?? ''))) this.#connected.add(agent);
    return this.#home.receive(request);
  }

  reject(status: 429 | 500): BufferedResponse {
    return this.#home.reject(status);
  }
}
