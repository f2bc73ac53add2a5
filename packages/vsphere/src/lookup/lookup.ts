import type { Bound, CallOptions, Calls } from '../calls/calls.ts';
import { AmbiguousError, NotFoundError } from '../errors.ts';
import { nameOf } from '../faults.ts';
import {
  isRef,
  type KnownObject,
  objectSpec,
  type Ref,
  retrieve,
  retrieveBelow,
} from '../properties/properties.ts';

/** A datacenter, and the folders that all in it is in. */
export interface Datacenter {
  readonly ref: Ref<'Datacenter'>;
  readonly name: string;
  readonly vmFolder: Ref<'Folder'>;
  readonly hostFolder: Ref<'Folder'>;
  readonly datastoreFolder: Ref<'Folder'>;
  readonly networkFolder: Ref<'Folder'>;
}

/** What is looked for: how it is called, what it is, and where it is. */
interface Kind {
  readonly word: string;
  /** Those that count as one; of the first, vCenter knows all the others as kinds. */
  readonly types: readonly [string, ...string[]];
  readonly root: Ref;
  /** The root's name in a path that begins with the datacenter. */
  readonly rootName: string;
  /** Whether messages list the names. Clusters are shared; pools, datastores and networks may be another tenant's. @default false */
  readonly isListed?: boolean;
}

export interface TemplateOptions extends CallOptions {
  /** Only what is below it. @default all machines of the datacenter */
  readonly folder?: Ref<'Folder'> | undefined;
  /** Whether a machine that is not a template does not count. @default false */
  readonly onlyTemplates?: boolean | undefined;
}

const TEMPLATE_PROPERTIES = ['name', 'config.template'];
const DATACENTER_PROPERTIES = ['name', 'vmFolder', 'hostFolder', 'datastoreFolder', 'networkFolder'];

/**
 * Finds things by the names that people give. Each takes a name, which is looked for everywhere in the datacenter; or a
 * path in it (`folder/template`, `/template`), or the whole one as vCenter's tools have it (`/DC0/vm/folder/template`); or, but for
 * templates and folders, nothing where there is only one.
 *
 * Errors: NotFoundError and AmbiguousError, in words.
 */
export class Lookup {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  datacenter(name?: string, options?: CallOptions): Promise<Datacenter> {
    const wanted = name?.replace(/^\//, '');
    return this.#calls.reading(async (bound) => {
      const root = bound.login.content.rootFolder;
      const all = await retrieveBelow(bound, root, { Datacenter: DATACENTER_PROPERTIES });
      const places = all.flatMap((object) => datacenterFrom(object) ?? []);
      const names = places.map((place) => place.name);
      const found = places.filter((place) => wanted === undefined || place.name === wanted);
      if (found.length > 0) {
        const which = wanted === undefined ? '' : ` '${wanted}'`;
        return only(found, `vCenter has ${found.length} datacenters${which}`, names);
      }
      if (wanted === undefined) throw new NotFoundError('vCenter has no datacenter');
      throw new NotFoundError(`datacenter '${wanted}' not found${among(names)}`);
    }, options);
  }

  /**
   * A template, by its name or path. Errors say nothing of other machines: they may belong to people who do not know of
   * each other.
   */
  template(
    datacenter: Datacenter,
    name: string,
    { folder, onlyTemplates = false, ...options }: TemplateOptions = {},
  ): Promise<Ref<'VirtualMachine'>> {
    return this.#calls.reading(async (bound) => {
      const root = folder ?? datacenter.vmFolder;
      const steps = stepsOf(name, `${datacenter.name}/vm/`);
      const isPath = steps.length > 1 || name.startsWith('/');
      const found = isPath
        ? await this.#templateAt(bound, datacenter, steps, folder)
        : await retrieveBelow(bound, root, { VirtualMachine: TEMPLATE_PROPERTIES });
      const named = found.filter(
        ({ properties }) =>
          (isPath || plain(String(properties.name)) === plain(name)) &&
          (!onlyTemplates || properties['config.template'] === true),
      );
      const [first, ...more] = named;
      const where = `datacenter '${datacenter.name}'`;
      const what = onlyTemplates ? '; a machine that is not a template does not count' : '';
      if (first === undefined) throw new NotFoundError(`template '${name}' not found in ${where}${what}`);
      if (more.length > 0)
        throw new AmbiguousError(
          `${where} has ${named.length} templates '${name}'; give the path of the one that is meant`,
        );
      return typed(first.ref, 'VirtualMachine');
    }, options);
  }

  /** What a path leads to: below the folder, or from the datacenter's machines on, where that is in the folder. */
  async #templateAt(
    bound: Bound,
    { vmFolder }: Datacenter,
    steps: readonly string[],
    folder: Ref<'Folder'> | undefined,
  ): Promise<readonly KnownObject[]> {
    const below = folder === undefined ? undefined : await walk(bound, folder, steps);
    const passed: Ref[] = [];
    const found = below ?? (await walk(bound, vmFolder, steps, (step) => passed.push(step)));
    const isInside =
      below !== undefined || folder === undefined || passed.some((step) => step.value === folder.value);
    if (found?.type !== 'VirtualMachine' || !isInside) return [];
    return retrieve(bound, objectSpec([found], TEMPLATE_PROPERTIES));
  }

  /** What is called so right in a folder. */
  child(folder: Ref<'Folder'>, name: string, options?: CallOptions): Promise<Ref | undefined> {
    return this.#calls.reading((bound) => walk(bound, folder, [name]), options);
  }

  /** A folder of machines. */
  async folder(datacenter: Datacenter, path: string, options?: CallOptions): Promise<Ref<'Folder'>> {
    if (path === '' || path === '/') return datacenter.vmFolder;
    const kind = { word: 'folder', types: ['Folder'], root: datacenter.vmFolder, rootName: 'vm' } as const;
    return typed(await this.#find(datacenter, kind, path, options), 'Folder');
  }

  /** A cluster, or a host that is in none. */
  cluster(datacenter: Datacenter, name?: string, options?: CallOptions): Promise<Ref> {
    const types = ['ComputeResource', 'ClusterComputeResource'] as const;
    const root = datacenter.hostFolder;
    const kind = { word: 'cluster', types, root, rootName: 'host', isListed: true } as const;
    return this.#find(datacenter, kind, name, options);
  }

  /** A resource pool; by the name of a cluster, the pool of the whole cluster. */
  async resourcePool(
    datacenter: Datacenter,
    name?: string,
    options?: CallOptions,
  ): Promise<Ref<'ResourcePool'>> {
    const types = ['ResourcePool', 'VirtualApp', 'ComputeResource', 'ClusterComputeResource'] as const;
    const kind = { word: 'resource pool', types, root: datacenter.hostFolder, rootName: 'host' } as const;
    const found =
      name === undefined
        ? await this.cluster(datacenter, undefined, options)
        : await this.#find(datacenter, kind, name, options);
    if (!found.type.endsWith('ComputeResource')) return { type: 'ResourcePool', value: found.value };
    const [owner] = await this.#calls.reading(
      (bound) => retrieve(bound, objectSpec([found], ['resourcePool'])),
      options,
    );
    return typed(owner?.properties.resourcePool, 'ResourcePool');
  }

  async datastore(datacenter: Datacenter, name?: string, options?: CallOptions): Promise<Ref<'Datastore'>> {
    const root = datacenter.datastoreFolder;
    const kind = { word: 'datastore', types: ['Datastore'], root, rootName: 'datastore' } as const;
    return typed(await this.#find(datacenter, kind, name, options), 'Datastore');
  }

  /** A network, or a port group of a distributed switch. */
  network(datacenter: Datacenter, name?: string, options?: CallOptions): Promise<Ref> {
    const types = ['Network', 'DistributedVirtualPortgroup', 'OpaqueNetwork'] as const;
    const kind = { word: 'network', types, root: datacenter.networkFolder, rootName: 'network' } as const;
    return this.#find(datacenter, kind, name, options);
  }

  /** The machine with this instance UUID, which is unique in a vCenter. */
  async byInstanceUuid(uuid: string, options?: CallOptions): Promise<Ref<'VirtualMachine'> | undefined> {
    return this.#calls.reading(async (bound) => {
      const { searchIndex } = bound.login.content;
      if (searchIndex === undefined) throw new NotFoundError('vCenter has no search index');
      const found = await bound.call('FindByUuid', searchIndex, { uuid, vmSearch: true, instanceUuid: true });
      return found === undefined ? undefined : typed(found, 'VirtualMachine');
    }, options);
  }

  #find(
    datacenter: Datacenter,
    kind: Kind,
    name: string | undefined,
    options: CallOptions | undefined,
  ): Promise<Ref> {
    return this.#calls.reading(async (bound) => {
      if (name !== undefined) {
        const steps = stepsOf(name, `${datacenter.name}/${kind.rootName}/`);
        const found = await walk(bound, kind.root, steps);
        if (found !== undefined && kind.types.includes(found.type)) return found;
        // A path says where it is; a name does not.
        if (steps.length > 1 || name.startsWith('/')) throw missing(kind, name, datacenter);
      }
      return this.#scan(bound, datacenter, kind, name);
    }, options);
  }

  async #scan(bound: Bound, datacenter: Datacenter, kind: Kind, name: string | undefined): Promise<Ref> {
    const all = await retrieveBelow(bound, kind.root, { [kind.types[0]]: ['name'] });
    const names = all.map(({ properties }) => String(properties.name));
    const found = name === undefined ? all : all.filter((_, i) => plain(names[i] ?? '') === plain(name));
    if (found.length === 0) {
      if (name !== undefined) throw missing(kind, name, datacenter);
      throw new NotFoundError(`datacenter '${datacenter.name}' has no ${kind.word}`);
    }
    const many = `datacenter '${datacenter.name}' has ${found.length} ${kind.word}s`;
    return only(found, name === undefined ? many : `${many} '${name}'`, kind.isListed ? names : []).ref;
  }
}

/** From child to child. */
async function walk(
  bound: Bound,
  root: Ref,
  steps: readonly string[],
  onStep?: (at: Ref) => void,
): Promise<Ref | undefined> {
  const { searchIndex } = bound.login.content;
  let at: Ref | undefined = root;
  for (const name of steps) {
    if (searchIndex === undefined || at === undefined) return undefined;
    at = await bound.call('FindChild', searchIndex, { entity: at, name });
    if (at !== undefined) onStep?.(at);
  }
  return at;
}

/** `/DC0/vm/a/b`, `a/b` and `/a/b` are the same. */
function stepsOf(path: string, root: string): readonly string[] {
  const bare = path.replace(/^\/+|\/+$/g, '');
  return (bare.startsWith(root) ? bare.slice(root.length) : bare).split('/');
}

/** vCenter keeps these three escaped in names. */
function plain(name: string): string {
  return name.replace(/%2f/gi, '/').replace(/%5c/gi, '\\').replace(/%25/g, '%');
}

function missing({ word }: Kind, name: string, datacenter: Datacenter): NotFoundError {
  return new NotFoundError(`${word} '${name}' not found in datacenter '${datacenter.name}'`);
}

function only<T>(found: readonly T[], many: string, names: readonly string[]): T {
  const [first, ...more] = found;
  if (first !== undefined && more.length === 0) return first;
  throw new AmbiguousError(`${many}: say which by its path${among(names)}`);
}

function among(names: readonly string[]): string {
  const shown = [...new Set(names)].sort();
  if (shown.length === 0) return '';
  return ` (there are ${shown.slice(0, 8).join(', ')}${shown.length > 8 ? ', and more' : ''})`;
}

function datacenterFrom({ ref, properties }: KnownObject): Datacenter | undefined {
  const { name, vmFolder, hostFolder, datastoreFolder, networkFolder } = properties;
  if (!isRef(ref, 'Datacenter') || typeof name !== 'string') return undefined;
  if (!isRef(vmFolder, 'Folder') || !isRef(hostFolder, 'Folder')) return undefined;
  if (!isRef(datastoreFolder, 'Folder') || !isRef(networkFolder, 'Folder')) return undefined;
  return { ref, name, vmFolder, hostFolder, datastoreFolder, networkFolder };
}

function typed<T extends string>(ref: unknown, type: T): Ref<T> {
  if (isRef(ref, type)) return ref;
  throw new NotFoundError(`a ${type} was looked for, and a ${describe(ref)} was found`);
}

function describe(ref: unknown): string {
  return typeof ref === 'object' && ref !== null && 'type' in ref && 'value' in ref
    ? nameOf({ type: String(ref.type), value: String(ref.value) })
    : 'thing without a reference';
}
