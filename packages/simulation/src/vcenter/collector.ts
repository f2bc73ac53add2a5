import type { ServerStream, StreamedAnswer, WholeAnswer } from '../world/server.ts';
import type { Entity } from './entity.ts';
import type { VcenterEnvironment } from './environment.ts';
import { VimFault } from './fault.ts';
import type { Registry } from './registry.ts';
import type { Selection } from './selection.ts';
import type { View } from './view.ts';
import { type Ref, reference, response, returnval } from './xml.ts';

const METHOD = 'WaitForUpdatesEx';
/** That nothing has happened. */
const NOTHING = response(METHOD, '');

/** How far a client is that knows a version. */
interface Version {
  /** All changes up to this one were told, of filters that were there. */
  readonly base: number;
  /** The filters that were there: one that is added later is told from the start. */
  readonly filters: ReadonlySet<string>;
  /** Of an answer in parts: what was told already, and up to which change. */
  readonly told: ReadonlyMap<string, number> | undefined;
}

interface Waiting {
  readonly stream: ServerStream;
  readonly from: Version;
  readonly most: number;
  readonly timer: { cancelled: boolean };
}

/** Tells a client what has changed since the version that it knows. */
export class Collector {
  readonly ref: Ref;
  readonly #registry: Registry;
  readonly #environment: VcenterEnvironment;
  readonly #filters = new Map<string, Selection>();
  readonly #versions = new Map<string, Version>();
  #version = 0;
  /** Changes after this one are not told yet. */
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

  /** A call that waits reports the objects of the new filter, perhaps before the client knows the filter. */
  addFilter(id: string, selection: Selection): void {
    this.#filters.set(id, selection);
    this.#see(this.#visible);
  }

  removeFilter(id: string): boolean {
    return this.#filters.delete(id);
  }

  /** Something has changed: it is told now, or a little later. */
  notice(): void {
    const { serial } = this.#registry;
    const lagMs = this.#environment.lagMs();
    if (lagMs === 0) this.#see(serial);
    else this.#environment.after(lagMs, () => this.#see(serial));
  }

  /** @throws VimFault */
  wait(version: string, seconds: number | undefined, most: number): WholeAnswer | StreamedAnswer {
    const from = this.#from(version);
    this.#end(new VimFault('RequestCanceled').body); // who asks anew does not want the old answer
    if (version === '') this.#visible = this.#registry.serial;
    const answer = this.#answer(from, most);
    if (answer !== undefined || seconds === 0) return { status: 200, body: answer ?? NOTHING };
    return {
      status: 200,
      open: (stream) => {
        const timer = this.#environment.after((seconds ?? 3_600) * 1_000, () => this.#end(NOTHING));
        const waiting = { stream, from, most, timer };
        this.#waiting = waiting;
        this.#see(this.#visible); // what has come until the stream stood
        return () => {
          timer.cancelled = true;
          if (this.#waiting === waiting) this.#waiting = undefined;
        };
      },
    };
  }

  /** It is no more; who waits hears so. */
  close(fault: VimFault): void {
    this.#end(fault.body);
  }

  #from(version: string): Version {
    const known = this.#versions.get(version);
    if (version === '') return { base: 0, told: undefined, filters: new Set() };
    const isLast = version === String(this.#version);
    if (known === undefined || (!isLast && this.#environment.forgetsVersions()))
      throw new VimFault('InvalidCollectorVersion');
    return known;
  }

  #see(serial: number): void {
    if (serial > this.#visible) this.#visible = serial;
    if (this.#waiting === undefined) return;
    const answer = this.#answer(this.#waiting.from, this.#waiting.most);
    if (answer !== undefined) this.#end(answer);
  }

  #end(body: string): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) return;
    waiting.timer.cancelled = true;
    waiting.stream.send(body);
    waiting.stream.end();
  }

  /** What there is to tell, as a new version; undefined where there is nothing. */
  #answer(from: Version, most: number): string | undefined {
    const told = new Map(from.told);
    let left = most;
    let isTruncated = false;
    let sets = '';
    for (const [id, selection] of this.#filters) {
      let objects = '';
      const base = from.filters.has(id) ? from.base : 0;
      for (const update of this.#updates(id, selection, { ...from, base })) {
        if (left === 0) {
          isTruncated = true;
          break;
        }
        left -= 1;
        objects += update.xml;
        told.set(`${id} ${update.id}`, this.#visible);
      }
      if (objects !== '')
        sets += `<filterSet><filter type="PropertyFilter">${id}</filter>${objects}</filterSet>`;
    }
    if (sets === '') return undefined;
    const last = String(this.#version);
    this.#version += 1;
    const next = isTruncated
      ? { ...from, told }
      : { base: this.#visible, told: undefined, filters: new Set(this.#filters.keys()) };
    // The last but one is kept for who has not got this answer.
    for (const known of this.#versions.keys()) if (known !== last) this.#versions.delete(known);
    this.#versions.set(String(this.#version), next);
    const truncated = isTruncated ? '<truncated>true</truncated>' : '';
    return response(METHOD, returnval(`<version>${this.#version}</version>${sets}${truncated}`));
  }

  *#updates(
    id: string,
    selection: Selection,
    { base, told }: Version,
  ): Generator<{ id: string; xml: string }, void, undefined> {
    for (const view of selection.views) {
      for (const entity of view.members()) {
        const paths = selection.pathsOf(entity);
        if (paths === undefined) continue;
        const { value } = entity.ref;
        const since = told?.get(`${id} ${value}`) ?? base;
        const xml = this.#update(view, entity, paths, since);
        if (xml !== undefined) yield { id: value, xml };
      }
      if (base === 0 && told === undefined) continue; // to whom nothing was told, nothing can leave
      for (const ref of view.left(base, this.#visible))
        if ((told?.get(`${id} ${ref.value}`) ?? base) !== this.#visible || told === undefined)
          yield { id: ref.value, xml: `<objectSet><kind>leave</kind>${reference('obj', ref)}</objectSet>` };
    }
  }

  #update(view: View, entity: Entity, paths: readonly string[], since: number): string | undefined {
    const cameAt = Math.max(entity.bornAt, view.sinceOf(entity.ref.value));
    if (cameAt > this.#visible) return undefined;
    const isNew = cameAt > since;
    if (!isNew && entity.lastAt <= since) return undefined;
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
