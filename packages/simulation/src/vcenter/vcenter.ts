import type { BufferedResponse, ModelRequest, ModelResponse, ModelServer } from '../world/server.ts';
import type { Entity } from './entity.ts';
import type { VcenterEnvironment } from './environment.ts';
import {
  duplicateName,
  invalidArgument,
  managedObjectNotFound,
  notAuthenticated,
  VimFault,
} from './fault.ts';
import { definitionOf, Folders } from './folders.ts';
import { buildInventory, type Place, SERVICES } from './initial-inventory.ts';
import type { Machine } from './machine.ts';
import { Machines } from './machines.ts';
import { Operations } from './operations.ts';
import { Registry } from './registry.ts';
import { type Call, callIn, type Fields } from './request.ts';
import { Selection } from './selection.ts';
import { Session } from './session.ts';
import { Tasks } from './tasks.ts';
import { type Ref, reference, response, returnval, val } from './xml.ts';

export interface VcenterOptions {
  readonly username: string;
  readonly password: string;
  readonly environment: VcenterEnvironment;
  /** @default a fixed UUID */
  readonly instanceUuid?: string;
}

const INSTANCE_UUID = 'f7a7a9d2-5f1e-4b8b-9d7c-000000000001';

const API_VERSION = '8.0.3.0';
const VERSIONS = `<?xml version="1.0" encoding="UTF-8"?><namespaces version="1.0"><namespace><name>urn:vim25</name><version>${API_VERSION}</version><priorVersions><version>6.7</version></priorVersions></namespace></namespaces>`;
const contentFor = (instanceUuid: string) =>
  '<rootFolder type="Folder">group-d1</rootFolder>' +
  reference('propertyCollector', SERVICES.collector) +
  reference('viewManager', SERVICES.views) +
  '<about><name>VMware vCenter Server</name><fullName>VMware vCenter Server 8.0.3 (modelled)</fullName>' +
  '<vendor>VMware, Inc.</vendor><version>8.0.3</version><build>1</build><osType>linux-x64</osType>' +
  `<productLineId>vpx</productLineId><apiType>VirtualCenter</apiType><apiVersion>${API_VERSION}</apiVersion>` +
  `<instanceUuid>${instanceUuid}</instanceUuid></about>` +
  reference('sessionManager', SERVICES.sessions) +
  reference('taskManager', SERVICES.tasks) +
  reference('customFieldsManager', SERVICES.attributes) +
  reference('searchIndex', SERVICES.search);

/**
 * Model of vCenter, as far as our client uses it: sessions, lookups, folders, custom attributes, machines, tasks and
 * property collectors. Not modelled: host capacity, permissions, networks and storage.
 */
export class Vcenter implements ModelServer {
  readonly registry = new Registry();
  readonly folders = new Folders(this.registry);
  readonly machines = new Machines(this.registry);
  readonly tasks: Tasks;
  readonly operations: Operations;
  readonly place: Place;
  readonly instanceUuid: string;
  /** Whether every request gets 503 from the proxy in front of vCenter, as during the start of vCenter. */
  outOfOrder = false;
  readonly #options: VcenterOptions;
  readonly #sessions = new Map<string, Session>();
  #pages = 0;
  /** Session of the request in progress. */
  #requestSession: Session | undefined;

  constructor(options: VcenterOptions) {
    this.#options = options;
    this.instanceUuid = options.instanceUuid ?? INSTANCE_UUID;
    const { registry, folders, machines } = this;
    const { environment } = options;
    const tasks = new Tasks(registry, SERVICES.tasks, environment.recentTasks);
    this.tasks = tasks;
    this.place = buildInventory(registry, folders);
    const { hosts } = this.place;
    this.operations = new Operations({ registry, folders, machines, tasks, environment, hosts });
    registry.add(SERVICES.sessions, 'SessionManager', undefined, {
      sessionList: () => this.#sessionList(),
      currentSession: () => this.#currentSession(),
    });
    registry.add(SERVICES.service, 'ServiceInstance', undefined, {
      'content.about.instanceUuid': () => val.string(this.instanceUuid),
    });
    registry.add(SERVICES.attributes, 'CustomFieldsManager', undefined, { field: () => folders.attributes });
    registry.listen(() => {
      for (const { collectors } of this.#sessions.values())
        for (const collector of collectors.values()) collector.onChange();
    });
  }

  get sessions(): readonly Session[] {
    return [...this.#sessions.values()];
  }

  receive({ method, path, headers, body = '' }: ModelRequest): ModelResponse {
    if (this.outOfOrder) return this.reject(500);
    if (method === 'GET') return path.endsWith('Versions.xml') ? ok(VERSIONS) : { status: 404, body: '' };
    try {
      const call = callIn(body);
      const session = this.#sessions.get(
        /vmware_soap_session=([^;,\s]+)/.exec(headers.cookie ?? '')?.[1] ?? '',
      );
      return this.#respond(call, session, headers['user-agent'] ?? '');
    } catch (error) {
      if (!(error instanceof VimFault)) throw error;
      return { status: 500, body: error.body };
    }
  }

  /** Returns the error page of the proxy in front of vCenter. */
  reject(_: 429 | 500): BufferedResponse {
    return { status: 503, body: '<html><body>503 Service Unavailable</body></html>' };
  }

  /** Terminates a session. */
  kill(key: string): void {
    this.#sessions.get(key)?.end();
    this.#sessions.delete(key);
  }

  #respond(call: Call, session: Session | undefined, userAgent: string): ModelResponse {
    const { method, args } = call;
    if (method === 'RetrieveServiceContent')
      return ok(response(method, returnval(contentFor(this.instanceUuid))));
    if (method === 'Login') return this.#logIn(args, userAgent);
    if (session === undefined) return this.#withoutSession(call);
    this.#requestSession = session;
    if (method === 'WaitForUpdatesEx') return this.#wait(call, session);
    return ok(response(method, this.#inSession(call, session) ?? this.#change(call)));
  }

  /**
   * Handles a call without a session. Most calls fail with NotAuthenticated. RetrievePropertiesEx fails only if it
   * selects a view. Otherwise, it succeeds, and its response lists each property as missing.
   */
  #withoutSession({ method, args }: Call): ModelResponse {
    if (method !== 'RetrievePropertiesEx') throw notAuthenticated();
    const [spec] = args.each('specSet');
    if (spec?.each('objectSet').some((each) => each.ref('obj')?.type.endsWith('View')))
      throw notAuthenticated();
    const objects = [...new Selection(spec ?? args, this.registry, new Map()).entities()].map(({ ref }) => {
      const paths = spec?.each('propSet').flatMap((each) => each.texts('pathSet')) ?? [];
      const missing = paths.map(
        (path) =>
          `<missingSet><path>${path}</path><fault>${notAuthenticated().localized}</fault></missingSet>`,
      );
      return `<objects>${reference('obj', ref)}${missing.join('')}</objects>`;
    });
    return ok(response(method, returnval(objects.join(''))));
  }

  #logIn(args: Fields, userAgent: string): ModelResponse {
    const { username, password, environment } = this.#options;
    const userName = args.text('userName') ?? '';
    if (userName !== username || args.text('password') !== password) throw new VimFault('InvalidLogin');
    const session = new Session(environment.uuid(), { userName, userAgent }, this.registry, environment, [
      this.tasks.recent,
    ]);
    this.#sessions.set(session.key, session);
    const headers = { 'set-cookie': `vmware_soap_session=${session.key}; Path=/; HttpOnly` };
    return { status: 200, headers, body: response('Login', returnval(session.xml)) };
  }

  #wait({ self, args }: Call, session: Session): ModelResponse {
    const options = args.inner('options');
    const { maxPageSize } = this.#options.environment;
    const maxUpdates = options.number('maxObjectUpdates') ?? maxPageSize;
    return session
      .collector(self)
      .wait(args.text('version') ?? '', options.number('maxWaitSeconds'), maxUpdates);
  }

  /** Handles calls that change nothing outside the session. @returns undefined for other methods */
  #inSession({ method, self, args }: Call, session: Session): string | undefined {
    switch (method) {
      case 'CurrentTime':
        return returnval('2026-01-01T00:00:00Z');
      case 'Logout':
        this.kill(session.key);
        return NOTHING;
      case 'TerminateSession':
        for (const key of args.texts('sessionId')) this.kill(key);
        return NOTHING;
      case 'CreateContainerView':
        return returnRef(session.viewContainer(args.ref('container') ?? self, args.texts('type')));
      case 'DestroyView':
        session.destroyView(self);
        return NOTHING;
      case 'CreatePropertyCollector':
        return returnRef(session.collect());
      case 'DestroyPropertyCollector':
        session.destroyCollector(self);
        return NOTHING;
      case 'CreateFilter':
        return returnRef(session.filter(self, args.inner('spec')));
      case 'DestroyPropertyFilter':
        session.destroyFilter(self);
        return NOTHING;
      case 'RetrievePropertiesEx': {
        const [spec] = args.each('specSet');
        const objects = contentOf(session.select(spec ?? args));
        return this.#page(session, objects, args.inner('options').number('maxObjects'));
      }
      case 'ContinueRetrievePropertiesEx': {
        const token = args.text('token') ?? '';
        const objects = session.pages.get(token);
        session.pages.delete(token);
        if (objects === undefined) throw invalidArgument('token');
        return this.#page(session, objects, undefined);
      }
      case 'FindChild':
        return returnRefIfFound(this.#entity(args.ref('entity')).child(args.text('name') ?? '')?.ref);
      case 'FindByUuid': {
        const uuid = args.text('uuid');
        for (const { id, instanceUuid } of this.machines.all())
          if (instanceUuid === uuid) return returnRef({ type: 'VirtualMachine', value: id });
        return NOTHING;
      }
    }
    return undefined;
  }

  #change({ method, self, args }: Call): string {
    const { environment } = this.#options;
    const { operations } = this;
    environment.note(`${method} on ${self.value} ${args.text('name') ?? ''}`);
    switch (method) {
      case 'CreateFolder':
        return returnRef(this.folders.create(this.#entity(self), args.text('name') ?? '', 'request').ref);
      case 'Rename_Task':
        return returnRef(operations.renameFolder(this.#entity(self), args.text('newName') ?? ''));
      case 'CloneVM_Task': {
        const source = this.#machine(self);
        const folder = this.#entity(args.ref('folder'));
        return returnRef(operations.clone(source, folder, args.text('name') ?? '', args.inner('spec')));
      }
      case 'ReconfigVM_Task':
        return returnRef(operations.reconfigure(this.#machine(self), args.inner('spec')));
      case 'PowerOnVM_Task':
        return returnRef(operations.power(this.#machine(self), 'poweredOn'));
      case 'PowerOffVM_Task':
        return returnRef(operations.power(this.#machine(self), 'poweredOff'));
      case 'ShutdownGuest':
        operations.shutDown(this.#machine(self));
        return NOTHING;
      case 'Destroy_Task': {
        const entity = this.#entity(self);
        const machine = this.machines.get(self.value);
        return returnRef(machine ? operations.destroyMachine(machine) : operations.destroyFolder(entity));
      }
      case 'UnregisterAndDestroy_Task':
        return returnRef(operations.unregisterFolder(this.#entity(self)));
      case 'AddCustomFieldDef': {
        const name = args.text('name') ?? '';
        const key = this.folders.defineAttribute(name);
        if (key === undefined) throw duplicateName(name, SERVICES.attributes);
        return returnval(definitionOf(key, name));
      }
      case 'SetField': {
        const entity = this.#entity(args.ref('entity'));
        const isSet = this.folders.setAttribute(
          entity,
          args.number('key') ?? 0,
          args.text('value') ?? '',
          'request',
        );
        if (!isSet) throw invalidArgument('key');
        return NOTHING;
      }
    }
    environment.unmodelled(`the vCenter model does not support ${method}`);
    throw new VimFault('NotSupported');
  }

  #entity(ref: Ref | undefined): Entity {
    const found = ref && this.registry.get(ref);
    if (found === undefined) throw managedObjectNotFound(ref ?? { type: 'ManagedEntity', value: '' });
    return found;
  }

  #machine(ref: Ref): Machine {
    const found = this.machines.get(ref.value);
    if (found === undefined) throw managedObjectNotFound(ref);
    return found;
  }

  #page(session: Session, objects: readonly string[], wanted: number | undefined): string {
    const limit = wanted ?? this.#options.environment.maxPageSize;
    if (objects.length <= limit) return objects.length === 0 ? NOTHING : returnval(objects.join(''));
    this.#pages += 1;
    const token = `page-${this.#pages}`;
    session.pages.set(token, objects.slice(limit));
    return returnval(`<token>${token}</token>${objects.slice(0, limit).join('')}`);
  }

  #currentSession(): string {
    return `<val xsi:type="UserSession">${this.#requestSession?.xml ?? ''}</val>`;
  }

  #sessionList(): string {
    return val.list(
      'UserSession',
      this.sessions.map(({ xml }) => `<UserSession>${xml}</UserSession>`).join(''),
    );
  }
}

const NOTHING = '';

function returnRef(ref: Ref): string {
  return reference('returnval', ref);
}

function returnRefIfFound(ref: Ref | undefined): string {
  return ref === undefined ? NOTHING : returnRef(ref);
}

function ok(body: string): BufferedResponse {
  return { status: 200, body };
}

/** Returns the ObjectContent of each selected object. Unset properties are left out. */
function contentOf(selection: Selection): readonly string[] {
  const objects: string[] = [];
  for (const entity of selection.entities()) {
    const paths = selection.pathsOf(entity);
    if (paths === undefined) continue;
    let properties = '';
    for (const path of paths) {
      const value = entity.value(path);
      if (value !== undefined) properties += `<propSet><name>${path}</name>${value}</propSet>`;
    }
    objects.push(`<objects>${reference('obj', entity.ref)}${properties}</objects>`);
  }
  return objects;
}
