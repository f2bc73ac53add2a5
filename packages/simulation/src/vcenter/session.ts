import { Collector } from './collector.ts';
import type { VcenterEnvironment } from './environment.ts';
import { managedObjectNotFound, notAuthenticated, VimFault } from './fault.ts';
import type { Registry } from './registry.ts';
import type { Fields } from './request.ts';
import { Selection } from './selection.ts';
import { ContainerView, type View } from './view.ts';
import { type Ref, text } from './xml.ts';

/** A login session with its views and collectors, which end with the session. */
export class Session {
  readonly key: string;
  readonly #userName: string;
  readonly userAgent: string;
  readonly views = new Map<string, View>();
  readonly collectors = new Map<string, Collector>();
  /** Objects that a paged response has not returned yet, by the token of the next page. */
  readonly pages = new Map<string, readonly string[]>();
  readonly #registry: Registry;
  readonly #environment: VcenterEnvironment;

  constructor(
    key: string,
    user: { readonly userName: string; readonly userAgent: string },
    registry: Registry,
    environment: VcenterEnvironment,
    /** Views that exist in every session. */
    shared: readonly View[],
  ) {
    this.key = key;
    this.#userName = user.userName;
    this.userAgent = user.userAgent;
    this.#registry = registry;
    this.#environment = environment;
    for (const view of shared) this.views.set(view.ref.value, view);
  }

  /** The content of a UserSession. */
  get xml(): string {
    const time = '2026-01-01T00:00:00Z';
    return (
      `<key>${this.key}</key><userName>${text(this.#userName)}</userName><fullName></fullName>` +
      `<loginTime>${time}</loginTime><lastActiveTime>${time}</lastActiveTime><locale>en</locale>` +
      `<messageLocale>en</messageLocale><extensionSession>false</extensionSession><ipAddress></ipAddress>` +
      `<userAgent>${text(this.userAgent)}</userAgent><callCount>1</callCount>`
    );
  }

  viewContainer(container: Ref, types: readonly string[]): Ref {
    const entity = this.#registry.get(container);
    if (entity === undefined) throw managedObjectNotFound(container);
    const ref = { type: 'ContainerView', value: this.#registry.newId(`session[${this.key}]view`) };
    this.views.set(ref.value, new ContainerView(ref, this.#registry, entity, types));
    return ref;
  }

  destroyView(ref: Ref): void {
    if (!this.views.delete(ref.value)) throw managedObjectNotFound(ref);
  }

  collect(): Ref {
    const ref = { type: 'PropertyCollector', value: this.#registry.newId(`session[${this.key}]collector`) };
    this.collectors.set(ref.value, new Collector(ref, this.#registry, this.#environment));
    return ref;
  }

  collector(ref: Ref): Collector {
    const collector = this.collectors.get(ref.value);
    if (collector === undefined) throw managedObjectNotFound(ref);
    return collector;
  }

  filter(collector: Ref, spec: Fields): Ref {
    const ref = { type: 'PropertyFilter', value: this.#registry.newId(`session[${this.key}]filter`) };
    this.collector(collector).addFilter(ref.value, this.select(spec));
    return ref;
  }

  destroyFilter(ref: Ref): void {
    const exists = [...this.collectors.values()].some((collector) => collector.removeFilter(ref.value));
    if (!exists) throw managedObjectNotFound(ref);
  }

  select(spec: Fields): Selection {
    return new Selection(spec, this.#registry, this.views);
  }

  destroyCollector(ref: Ref): void {
    this.collector(ref).close(new VimFault('RequestCanceled'));
    this.collectors.delete(ref.value);
  }

  end(): void {
    for (const collector of this.collectors.values()) collector.close(notAuthenticated());
    this.collectors.clear();
  }
}
