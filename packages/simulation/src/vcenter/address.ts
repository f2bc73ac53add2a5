import type { Answer, Arrived, ModelServer, WholeAnswer } from '../world/server.ts';
import { methodIn } from './request.ts';
import type { Vcenter } from './vcenter.ts';

/** Calls that a process makes before it knows that its login has succeeded. */
const LOGGING_IN: ReadonlySet<string> = new Set([
  '',
  'RetrieveServiceContent',
  'Login',
  'RetrievePropertiesEx',
]);

/** An address that leads to a vCenter, and for a while to another one, as after a mistake in DNS. */
export class Address implements ModelServer {
  isElsewhere = false;
  readonly #home: Vcenter;
  readonly #other: Vcenter;
  /** Processes that have used a session at home. One that has not cannot tell the two apart, and gets an error instead. */
  readonly #known = new Set<string>();

  constructor(home: Vcenter, other: Vcenter) {
    this.#home = home;
    this.#other = other;
  }

  receive(request: Arrived): Answer {
    if (this.isElsewhere)
      return this.#known.has(request.headers['user-agent'] ?? '')
        ? this.#other.receive(request)
        : this.refuse(500);
    const agent = request.headers['user-agent'] ?? '';
    const isIn = this.#home.sessions.some(({ userAgent }) => userAgent === agent);
    if (isIn && !LOGGING_IN.has(methodIn(request.body ?? ''))) this.#known.add(agent);
    return this.#home.receive(request);
  }

  refuse(status: 429 | 500): WholeAnswer {
    return this.#home.refuse(status);
  }
}
