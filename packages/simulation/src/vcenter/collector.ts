import type { BufferedResponse, ServerStream, StreamedResponse } from '../world/server.ts';
import type { Entity } from './entity.ts';
import type { VcenterEnvironment } from './environment.ts';
import { VimFault } from './fault.ts';
import type { Registry } from './registry.ts';
import type { Selection } from './selection.ts';
import type { View } from './view.ts';
import { type Ref, reference, response, returnval } from './xml.ts';

const METHOD = 'WaitForUpdatesEx';
/** Response without updates. */
const NO_UPDATES = response(METHOD, '');

/** The updates that a client with a given version has received. */
interface Version {
  /** Serial of the last change sent for the filters in `filters`. */
  readonly base: number;
  /**
   * Ids of the filters that existed at the last complete (not truncated) response. For a filter that was added later,
   * the next response contains all its objects, not only the changed ones.
   */
  readonly filters: ReadonlySet<string>;
  /** After a truncated response: for each object already sent, the serial up to which its changes were sent. */
  readonly sent: ReadonlyMap<string, number> | undefined;
}

interface Waiting {
  readonly stream: ServerStream;
  readonly from: Version;
  readonly maxUpdates: number;
  readonly timer: { cancelled: boolean };
}

/** Model of a PropertyCollector, which sends a client the changes since the client's version. */
export class Collector {
  readonly ref: Ref;
  readonly #registry: Registry;
  readonly #environment: VcenterEnvironment;
  readonly #filters = new Map<string, Selection>();
  readonly #versions = new Map<string, Version>();
  #version = 0;
  /** Serial of the last change that the collector reports; later changes are delayed. */
  #visible = 0;
  #waiting: Waiting | undefined;

  constructor(ref: Ref, registry: Registry, environment: VcenterEnvironment) {
    this.ref = ref;
    this.#registry = registry;
    this.#environment = environment;
  }

  /** Number of filters. */
  get size(): number {
    return this.#filters.size;
  }

  /**
   * Adds a filter. If a WaitForUpdatesEx call is waiting, its response reports the objects of the filter, possibly
   * before the client has the response of CreateFilter.
   */
  addFilter(id: string, selection: Selection): void {
    this.#filters.set(id, selection);
    this.#advance(this.#visible);
  }

  removeFilter(id: string): boolean {
    return this.#filters.delete(id);
  }

  /** Called after each change. Makes the change visible now or after the lag. */
  onChange(): void {
    const { serial } = this.#registry;
    const lagMs = this.#environment.lagMs();
    if (lagMs === 0) this.#advance(serial);
    else this.#environment.after(lagMs, () => this.#advance(serial));
  }

  /** @throws VimFault */
  wait(
    version: string,
    seconds: number | undefined,
    maxUpdates: number,
  ): BufferedResponse | StreamedResponse {
    const from = this.#from(version);
    this.#end(new VimFault('RequestCanceled').body); // a new call cancels the previous one
    if (version === '') this.#visible = this.#registry.serial;
    const updates = this.#updatesSince(from, maxUpdates);
    if (updates !== undefined || seconds === 0) return { status: 200, body: updates ?? NO_UPDATES };
    return {
      status: 200,
      open: (stream) => {
        const timer = this.#environment.after((seconds ?? 3_600) * 1_000, () => this.#end(NO_UPDATES));
        const waiting = { stream, from, maxUpdates, timer };
        this.#waiting = waiting;
        this.#advance(this.#visible); // changes may have arrived before the stream was open
        return () => {
          timer.cancelled = true;
          if (this.#waiting === waiting) this.#waiting = undefined;
        };
      },
    };
  }

  /** Ends the waiting call, if any, with a fault. */
  close(fault: VimFault): void {
    this.#end(fault.body);
  }

  #from(version: string): Version {
    const known = this.#versions.get(version);
    if (version === '') return { base: 0, sent: undefined, filters: new Set() };
    const isLast = version === String(this.#version);
    if (known === undefined || (!isLast && this.#environment.forgetsVersions()))
      throw new VimFault('InvalidCollectorVersion');
    return known;
  }

  #advance(serial: number): void {
    if (serial > this.#visible) this.#visible = serial;
    if (this.#waiting === undefined) return;
    const updates = this.#updatesSince(this.#waiting.from, this.#waiting.maxUpdates);
    if (updates !== undefined) this.#end(updates);
  }

  #end(body: string): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) return;
    waiting.timer.cancelled = true;
    waiting.stream.send(body);
    waiting.stream.end();
  }

  /** Returns the updates since a version as a response with a new version, or undefined if there are none. */
  #updatesSince(from: Version, maxUpdates: number): string | undefined {
    const sent = new Map(from.sent);
    let remaining = maxUpdates;
    let isTruncated = false;
    let sets = '';
    for (const [id, selection] of this.#filters) {
      let objects = '';
      const base = from.filters.has(id) ? from.base : 0;
      for (const update of this.#updates(id, selection, { ...from, base })) {
        if (remaining === 0) {
          isTruncated = true;
          break;
        }
        remaining -= 1;
        objects += update.xml;
        sent.set(`${id} ${update.id}`, this.#visible);
      }
      if (objects !== '')
        sets += `<filterSet><filter type="PropertyFilter">${id}</filter>${objects}</filterSet>`;
    }
    if (sets === '') return undefined;
    const last = String(this.#version);
    this.#version += 1;
    const next = isTruncated
      ? { ...from, sent }
      : { base: this.#visible, sent: undefined, filters: new Set(this.#filters.keys()) };
    // Drops all earlier versions except the latest of them. A client that does not receive this response sends that
    // version again.
    for (const known of this.#versions.keys()) if (known !== last) this.#versions.delete(known);
    this.#versions.set(String(this.#version), next);
    const truncated = isTruncated ? '<truncated>true</truncated>' : '';
    return response(METHOD, returnval(`<version>${this.#version}</version>${sets}${truncated}`));
  }

  *#updates(
    id: string,
    selection: Selection,
    { base, sent }: Version,
  ): Generator<{ id: string; xml: string }, void, undefined> {
    for (const view of selection.views) {
      for (const entity of view.members()) {
        const paths = selection.pathsOf(entity);
        if (paths === undefined) continue;
        const { value } = entity.ref;
        const since = sent?.get(`${id} ${value}`) ?? base;
        const xml = this.#update(view, entity, paths, since);
        if (xml !== undefined) yield { id: value, xml };
      }
      if (base === 0 && sent === undefined) continue; // no object was sent before, so none can leave
      for (const ref of view.removedBetween(base, this.#visible))
        if ((sent?.get(`${id} ${ref.value}`) ?? base) !== this.#visible || sent === undefined)
          yield { id: ref.value, xml: `<objectSet><kind>leave</kind>${reference('obj', ref)}</objectSet>` };
    }
  }

  #update(view: View, entity: Entity, paths: readonly string[], since: number): string | undefined {
    const enteredAt = Math.max(entity.addedAt, view.enteredAt(entity.ref.value));
    if (enteredAt > this.#visible) return undefined;
    const isNew = enteredAt > since;
    if (!isNew && entity.lastChangeAt <= since) return undefined;
    let changes = '';
    for (const path of paths) {
      const at = entity.changedAt(path);
      if (!isNew && (at <= since || at > this.#visible)) continue;
      const value = entity.value(path);
      if (value !== undefined || !isNew)
        changes += `<changeSet><name>${path}</name><op>assign</op>${value ?? ''}</changeSet>`;
    }
    if (!isNew && changes === '') return undefined;
    const kind = isNew ? 'enter' : 'modify';
    return `<objectSet><kind>${kind}</kind>${reference('obj', entity.ref)}${changes}</objectSet>`;
  }
}
