import { Event } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { Change } from '../apiserver/store.ts';
import { textAt } from './fields.ts';
import type { Replica } from './replica.ts';
import type { Violations } from './violations.ts';
import type { Wire } from './wire.ts';

/**
 * Checks two properties of Events:
 * - A process stores only one Event per object and note. Repeats must extend the series of that Event.
 * - An event that is recorded while no faults are active is stored.
 */
export class EventChecks {
  readonly #server: ApiServer;
  readonly #violations: Violations;
  readonly #expected = new Map<string, string>();
  readonly #before = new Set<string>();

  constructor(server: ApiServer, wire: Wire<Replica>, violations: Violations) {
    this.#server = server;
    this.#violations = violations;
    const stored = new Map<string, string>();
    server.listen(({ resource, before, after }: Change) => {
      if (resource.kind.plural !== Event.plural || before !== undefined || after === undefined) return;
      const { object } = after;
      const by = wire.current?.sender.name;
      const same = `${by} ${textAt(object, 'regarding', 'uid')} ${textAt(object, 'note')}`;
      const first = stored.get(same);
      if (first !== undefined)
        violations.add(
          'events are not duplicated',
          `${by} records "${textAt(object, 'note')}" again as another event`,
        );
      stored.set(same, object.metadata.name);
    });
  }

  /**
   * Registers an event that the program has recorded. An event that was first recorded during faults may be missing: it
   * may have been lost, and the recorder does not send it again while its series lasts.
   * @param calm whether no faults are active
   * @param term aborts at the end of the leader's term. Events that are not stored by then are dropped
   */
  recorded(uid: string, note: string, calm: boolean, term: AbortSignal): void {
    const event = `${uid} ${note}`;
    if (!calm || term.aborted) this.#before.add(event);
    else if (!this.#before.has(event)) {
      this.#expected.set(event, note);
      term.addEventListener('abort', () => this.#expected.delete(event), { once: true });
    }
  }

  check(): void {
    const there = new Set<string>();
    for (const stored of this.#server.objects(Event))
      there.add(`${textAt(stored, 'regarding', 'uid')} ${textAt(stored, 'note')}`);
    for (const [expected, note] of this.#expected)
      if (!there.has(expected))
        this.#violations.add('events are not lost without faults', `"${note}" was never stored`);
  }
}
