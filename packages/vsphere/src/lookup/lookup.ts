import { AmbiguousError, NotFoundError } from '../errors.ts';
import { nameOf } from '../faults.ts';
import {
  isRef,
  type ManagedObject,
  objectSpec,
  type Ref,
  retrieve,
  retrieveBelow,
} from '../properties/properties.ts';
import type { BoundSession, CallOptions, SessionClient } from '../session/session-client.ts';

/** A datacenter with its root folders. */
export interface Datacenter {
  readonly ref: Ref<'Datacenter'>;
  readonly name: string;
  readonly vmFolder: Ref<'Folder'>;
  readonly hostFolder: Ref<'Folder'>;
  readonly datastoreFolder: Ref<'Folder'>;
  readonly networkFolder: Ref<'Folder'>;
}

/** A kind of object that can be looked up by name. */
interface ObjectKind {
  /** Name of the kind in messages. */
  readonly label: string;
  /** Accepted types. A search by name lists only objects of the first type and its subtypes. */
  readonly types: readonly [string, ...string[]];
  /** Folder that contains all objects of this kind in the datacenter. */
  readonly root: Ref;
  /** Name of `root` in an absolute path: `vm` in `/DC0/vm/folder`. */
  readonly rootName: string;
  /** Whether messages list the available names. False for objects that may belong to other tenants. @default false */
  readonly listNames?: boolean;
}

export interface TemplateOptions extends CallOptions {
  /** Folder to search. @default the whole datacenter */
  readonly folder?: Ref<'Folder'> | undefined;
  /** Whether machines that are not templates are ignored. @default false */
  readonly onlyTemplates?: boolean | undefined;
}

const TEMPLATE_PROPERTIES = ['name', 'config.template'];
const DATACENTER_PROPERTIES = ['name', 'vmFolder', 'hostFolder', 'datastoreFolder', 'networkFolder'];

/**
 * Finds objects by name. The methods for objects of a datacenter accept one of these forms:
 * - a name, which is searched in the whole datacenter
 * - a path in the datacenter: `folder/template`, `/template`
 * - an absolute inventory path: `/DC0/vm/folder/template`
 *
 * If there is only one object of the kind, the name may be omitted, except for templates and folders.
 *
 * Errors: NotFoundError, AmbiguousError.
 */
export class Lookup {
  readonly #calls: SessionClient;

  constructor(calls: SessionClient) {
    this.#calls = calls;
  }

  datacenter(name?: string, options?: CallOptions): Promise<Datacenter> {
    const bareName = name?.replace(/^\//, '');
    return this.#calls.retryRead(async (bound) => {
      const root = bound.login.content.rootFolder;
      const all = await retrieveBelow(bound, root, { Datacenter: DATACENTER_PROPERTIES });
      const datacenters = all.flatMap((object) => datacenterFrom(object) ?? []);
      const names = datacenters.map((datacenter) => datacenter.name);
      const found = datacenters.filter(
        (datacenter) => bareName === undefined || datacenter.name === bareName,
      );
      if (found.length > 0) {
        const which = bareName === undefined ? '' : ` '${bareName}'`;
        return assertSingle(found, `vCenter has ${found.length} datacenters${which}`, names);
      }
      if (bareName === undefined) throw new NotFoundError('vCenter has no datacenter');
      throw new NotFoundError(`datacenter '${bareName}' not found${availableNames(names)}`);
    }, options);
  }

  /**
   * Finds a template, or a machine to clone. Errors do not mention other machines: they may belong to other tenants.
   */
  template(
    datacenter: Datacenter,
    name: string,
    { folder, onlyTemplates = false, ...options }: TemplateOptions = {},
  ): Promise<Ref<'VirtualMachine'>> {
    return this.#calls.retryRead(async (bound) => {
      const root = folder ?? datacenter.vmFolder;
      const segments = segmentsOf(name, `${datacenter.name}/vm/`);
      const isPath = segments.length > 1 || name.startsWith('/');
      const found = isPath
        ? await this.#templateAt(bound, datacenter, segments, folder)
        : await retrieveBelow(bound, root, { VirtualMachine: TEMPLATE_PROPERTIES });
      const matching = found.filter(
        ({ properties }) =>
          (isPath || unescapeName(String(properties.name)) === unescapeName(name)) &&
          (!onlyTemplates || properties['config.template'] === true),
      );
      const [first, ...more] = matching;
      const where = `datacenter '${datacenter.name}'`;
      const hint = onlyTemplates ? '; machines that are not templates are ignored' : '';
      if (first === undefined) throw new NotFoundError(`template '${name}' not found in ${where}${hint}`);
      if (more.length > 0)
        throw new AmbiguousError(
          `${where} has ${matching.length} templates '${name}'; specify one by its path`,
        );
      return assertType(first.ref, 'VirtualMachine');
    }, options);
  }

  /** Finds a template by a path relative to `folder`, or by a path in the datacenter that leads through `folder`. */
  async #templateAt(
    bound: BoundSession,
    { vmFolder }: Datacenter,
    segments: readonly string[],
    folder: Ref<'Folder'> | undefined,
  ): Promise<readonly ManagedObject[]> {
    const below = folder === undefined ? undefined : await findByPath(bound, folder, segments);
    const visited: Ref[] = [];
    const found = below ?? (await findByPath(bound, vmFolder, segments, (step) => visited.push(step)));
    const isInside =
      below !== undefined || folder === undefined || visited.some((step) => step.value === folder.value);
    if (found?.type !== 'VirtualMachine' || !isInside) return [];
    return retrieve(bound, objectSpec([found], TEMPLATE_PROPERTIES));
  }

  /** Finds a direct child of a folder by name. */
  child(folder: Ref<'Folder'>, name: string, options?: CallOptions): Promise<Ref | undefined> {
    return this.#calls.retryRead((bound) => findByPath(bound, folder, [name]), options);
  }

  /** Finds a VM folder. */
  async folder(datacenter: Datacenter, path: string, options?: CallOptions): Promise<Ref<'Folder'>> {
    if (path === '' || path === '/') return datacenter.vmFolder;
    const kind = { label: 'folder', types: ['Folder'], root: datacenter.vmFolder, rootName: 'vm' } as const;
    return assertType(await this.#find(datacenter, kind, path, options), 'Folder');
  }

  /** Finds a cluster or a standalone host. */
  cluster(datacenter: Datacenter, name?: string, options?: CallOptions): Promise<Ref> {
    const types = ['ComputeResource', 'ClusterComputeResource'] as const;
    const root = datacenter.hostFolder;
    const kind = { label: 'cluster', types, root, rootName: 'host', listNames: true } as const;
    return this.#find(datacenter, kind, name, options);
  }

  /** Finds a resource pool. The name of a cluster stands for its root pool. */
  async resourcePool(
    datacenter: Datacenter,
    name?: string,
    options?: CallOptions,
  ): Promise<Ref<'ResourcePool'>> {
    const types = ['ResourcePool', 'VirtualApp', 'ComputeResource', 'ClusterComputeResource'] as const;
    const kind = { label: 'resource pool', types, root: datacenter.hostFolder, rootName: 'host' } as const;
    const found =
      name === undefined
        ? await this.cluster(datacenter, undefined, options)
        : await this.#find(datacenter, kind, name, options);
    if (!found.type.endsWith('ComputeResource')) return { type: 'ResourcePool', value: found.value };
    const [owner] = await this.#calls.retryRead(
      (bound) => retrieve(bound, objectSpec([found], ['resourcePool'])),
      options,
    );
    return assertType(owner?.properties.resourcePool, 'ResourcePool');
  }

  async datastore(datacenter: Datacenter, name?: string, options?: CallOptions): Promise<Ref<'Datastore'>> {
    const root = datacenter.datastoreFolder;
    const kind = { label: 'datastore', types: ['Datastore'], root, rootName: 'datastore' } as const;
    return assertType(await this.#find(datacenter, kind, name, options), 'Datastore');
  }

  /** Finds a network or a distributed port group. */
  network(datacenter: Datacenter, name?: string, options?: CallOptions): Promise<Ref> {
    const types = ['Network', 'DistributedVirtualPortgroup', 'OpaqueNetwork'] as const;
    const kind = { label: 'network', types, root: datacenter.networkFolder, rootName: 'network' } as const;
    return this.#find(datacenter, kind, name, options);
  }

  /** Finds a machine by its instance UUID, which is unique in a vCenter. */
  async byInstanceUuid(uuid: string, options?: CallOptions): Promise<Ref<'VirtualMachine'> | undefined> {
    return this.#calls.retryRead(async (bound) => {
      const { searchIndex } = bound.login.content;
      if (searchIndex === undefined) throw new NotFoundError('vCenter has no search index');
      const found = await bound.call('FindByUuid', searchIndex, { uuid, vmSearch: true, instanceUuid: true });
      return found === undefined ? undefined : assertType(found, 'VirtualMachine');
    }, options);
  }

  #find(
    datacenter: Datacenter,
    kind: ObjectKind,
    name: string | undefined,
    options: CallOptions | undefined,
  ): Promise<Ref> {
    return this.#calls.retryRead(async (bound) => {
      if (name !== undefined) {
        const segments = segmentsOf(name, `${datacenter.name}/${kind.rootName}/`);
        const found = await findByPath(bound, kind.root, segments);
        if (found !== undefined && kind.types.includes(found.type)) return found;
        // Only a plain name is searched in the whole datacenter.
        if (segments.length > 1 || name.startsWith('/')) throw notFound(kind, name, datacenter);
      }
      return this.#scan(bound, datacenter, kind, name);
    }, options);
  }

  async #scan(
    bound: BoundSession,
    datacenter: Datacenter,
    kind: ObjectKind,
    name: string | undefined,
  ): Promise<Ref> {
    const all = await retrieveBelow(bound, kind.root, { [kind.types[0]]: ['name'] });
    const names = all.map(({ properties }) => String(properties.name));
    const found =
      name === undefined ? all : all.filter((_, i) => unescapeName(names[i] ?? '') === unescapeName(name));
    if (found.length === 0) {
      if (name !== undefined) throw notFound(kind, name, datacenter);
      throw new NotFoundError(`datacenter '${datacenter.name}' has no ${kind.label}`);
    }
    const many = `datacenter '${datacenter.name}' has ${found.length} ${kind.label}s`;
    return assertSingle(found, name === undefined ? many : `${many} '${name}'`, kind.listNames ? names : [])
      .ref;
  }
}

/** Follows a path from child to child. Returns undefined if a child does not exist. */
async function findByPath(
  bound: BoundSession,
  root: Ref,
  segments: readonly string[],
  onSegment?: (object: Ref) => void,
): Promise<Ref | undefined> {
  const { searchIndex } = bound.login.content;
  let at: Ref | undefined = root;
  for (const name of segments) {
    if (searchIndex === undefined || at === undefined) return undefined;
    at = await bound.call('FindChild', searchIndex, { entity: at, name });
    if (at !== undefined) onSegment?.(at);
  }
  return at;
}

/** Splits a path. `/DC0/vm/a/b`, `a/b` and `/a/b` give the same segments. */
function segmentsOf(path: string, root: string): readonly string[] {
  const bare = path.replace(/^\/+|\/+$/g, '');
  return (bare.startsWith(root) ? bare.slice(root.length) : bare).split('/');
}

/** Decodes the three characters that vCenter escapes in names. */
function unescapeName(name: string): string {
  return name.replace(/%2f/gi, '/').replace(/%5c/gi, '\\').replace(/%25/g, '%');
}

function notFound({ label }: ObjectKind, name: string, datacenter: Datacenter): NotFoundError {
  return new NotFoundError(`${label} '${name}' not found in datacenter '${datacenter.name}'`);
}

function assertSingle<T>(found: readonly T[], many: string, names: readonly string[]): T {
  const [first, ...more] = found;
  if (first !== undefined && more.length === 0) return first;
  throw new AmbiguousError(`${many}: specify one by its path${availableNames(names)}`);
}

function availableNames(names: readonly string[]): string {
  const shown = [...new Set(names)].sort();
  if (shown.length === 0) return '';
  return ` (available: ${shown.slice(0, 8).join(', ')}${shown.length > 8 ? ', …' : ''})`;
}

function datacenterFrom({ ref, properties }: ManagedObject): Datacenter | undefined {
  const { name, vmFolder, hostFolder, datastoreFolder, networkFolder } = properties;
  if (!isRef(ref, 'Datacenter') || typeof name !== 'string') return undefined;
  if (!isRef(vmFolder, 'Folder') || !isRef(hostFolder, 'Folder')) return undefined;
  if (!isRef(datastoreFolder, 'Folder') || !isRef(networkFolder, 'Folder')) return undefined;
  return { ref, name, vmFolder, hostFolder, datastoreFolder, networkFolder };
}

function assertType<T extends string>(ref: unknown, type: T): Ref<T> {
  if (isRef(ref, type)) return ref;
  throw new NotFoundError(`expected a ${type}, found ${describe(ref)}`);
}

function describe(ref: unknown): string {
  return typeof ref === 'object' && ref !== null && 'type' in ref && 'value' in ref
    ? nameOf({ type: String(ref.type), value: String(ref.value) })
    : 'no managed object reference';
}
