import { type Bound, regardless } from '../calls/calls.ts';
import type { Ref } from '../properties/properties.ts';

/** A view that is made anew now and then: the one before ends with its session, or else is destroyed. */
export class SessionView {
  #last: { readonly bound: Bound; readonly ref: Ref } | undefined;

  async replace(bound: Bound, make: () => Promise<Ref>): Promise<Ref> {
    if (this.#last?.bound.login === bound.login) await this.destroy();
    const ref = await make();
    this.#last = { bound, ref };
    return ref;
  }

  async destroy(): Promise<void> {
    const last = this.#last;
    this.#last = undefined;
    await last?.bound.call('DestroyView', last.ref, {}, regardless()).catch(() => undefined);
  }
}
