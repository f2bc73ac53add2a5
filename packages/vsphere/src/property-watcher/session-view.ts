import type { Ref } from '../properties/properties.ts';
import { type BoundSession, cleanupOptions } from '../session/session-client.ts';

/** Holds at most one view in vCenter. A replaced view is destroyed, unless it ended with its session. */
export class SessionView {
  #last: { readonly bound: BoundSession; readonly ref: Ref } | undefined;

  async replace(bound: BoundSession, create: () => Promise<Ref>): Promise<Ref> {
    if (this.#last?.bound.login === bound.login) await this.destroy();
    const ref = await create();
    this.#last = { bound, ref };
    return ref;
  }

  async destroy(): Promise<void> {
    const last = this.#last;
    this.#last = undefined;
    await last?.bound.call('DestroyView', last.ref, {}, cleanupOptions()).catch(() => undefined);
  }
}
