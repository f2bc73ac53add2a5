import { Event } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { Change } from '../apiserver/store.ts';
import type { Findings } from './findings.ts';
import type { Life } from './life.ts';
import { textAt } from './read.ts';
import type { Wire } from './wire.ts';

/** Events: what the same process tells twice is a series of one event; what it tells in calm times arrives. */
export class Telling {
  readonly #server: ApiServer;
  readonly #findings: Findings;
  readonly #expected = new Map<string, string>();
  readonly #before = new Set<string>();

  constructor(server: ApiServer, wire: Wire<Life>, findings: Findings) {
    this.#server = server;
    this.#findings = findings;
    const stored = new Map<string, string>();
    server.listen(({ resource, before, after }: Change) => {
      if (resource.kind.plural !== Event.plural || before !== undefined || after === undefined) return;
      const { object } = after;
      const by = wire.current?.sender.name;
      const same = `${by} ${textAt(object, 'regarding', 'uid')} ${textAt(object, 'note')}`;
      const first = stored.get(same);
      if (first !== undefined)
        findings.add(
          'events are not duplicated',
          `${by} tells "${textAt(object, 'note')}" again as another event`,
        );
      stored.set(same, object.metadata.name);
    });
  }

  /**
   * An event that was recorded in bad times, and perhaps lost, is not sent again as long as its series lasts.
   * @param term aborts at the end of the leader's term, with which an event that is not stored by then is given up
   */
  tells(uid: string, note: string, calm: boolean, term: AbortSignal): void {
    const told = `${uid} ${note}`;
    if (!calm || term.aborted) this.#before.add(told);
    else if (!this.#before.has(told)) {
      this.#expected.set(told, note);
      term.addEventListener('abort', () => this.#expected.delete(told), { once: true });
    }
  }

  check(): void {
    const there = new Set<string>();
    for (const event of this.#server.objects(Event))
      there.add(`${textAt(event, 'regarding', 'uid')} ${textAt(event, 'note')}`);
    for (const [expected, note] of this.#expected)
      if (!there.has(expected))
        this.#findings.add('events are not lost without faults', `"${note}" was never stored`);
  }
}
