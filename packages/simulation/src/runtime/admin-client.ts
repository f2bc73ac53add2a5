import type { Kind } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import { FOREIGN_FINALIZER } from './kinds.ts';

interface Draft {
  readonly metadata?: object;
  readonly spec: object;
  readonly status?: object;
}

/** Writes to the API server on behalf of users and other programs. Bypasses the network and its faults. */
export class AdminClient {
  readonly #server: ApiServer;
  readonly namespace: string;

  constructor(server: ApiServer, namespace = 'default') {
    this.#server = server;
    this.namespace = namespace;
  }

  apply(kind: Kind, name: string, { metadata, ...rest }: Draft): void {
    const { group, version } = kind;
    const apiVersion = group === '' ? version : `${group}/${version}`;
    const body = { apiVersion, kind: kind.kind, metadata: { name, ...metadata }, ...rest };
    const path = `${this.#path(kind, name)}?fieldManager=admin&force=true`;
    this.#send('PATCH', path, 'application/apply-patch+yaml', body);
  }

  /** Creates an object. Does nothing if one of this name exists. */
  create(kind: Kind, name: string, { metadata, ...rest }: Partial<Draft>): void {
    const body = { metadata: { name, ...metadata }, ...rest };
    this.#send('POST', this.#path(kind), 'application/json', body);
  }

  merge(kind: Kind, name: string, patch: object): void {
    const path = `${this.#path(kind, name)}?fieldManager=admin`;
    this.#send('PATCH', path, 'application/merge-patch+json', patch);
  }

  delete(kind: Kind, name: string, propagation = 'Background'): void {
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: propagation };
    this.#send('DELETE', this.#path(kind, name), 'application/json', body);
  }

  /** Adds (if `wanted`) or removes the finalizer of another controller, and keeps all other finalizers. */
  hold(kind: Kind, name: string, wanted: boolean): void {
    for (const { metadata } of this.#server.objects(kind)) {
      if (metadata.name !== name || metadata.namespace !== this.namespace) continue;
      const others = (metadata.finalizers ?? []).filter((each) => each !== FOREIGN_FINALIZER);
      if (wanted && metadata.deletionTimestamp !== undefined) continue; // the server would reject a new finalizer
      const finalizers = wanted ? [...others, FOREIGN_FINALIZER] : others;
      this.merge(kind, name, { metadata: { finalizers } });
    }
  }

  #path({ group, version, plural, scope }: Kind, name?: string): string {
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const all = `${root}${scope === 'Cluster' ? '' : `/namespaces/${this.namespace}`}/${plural}`;
    return name === undefined ? all : `${all}/${name}`;
  }

  #send(method: 'POST' | 'PATCH' | 'DELETE', path: string, contentType: string, body: object): void {
    const headers = { 'content-type': contentType };
    const { status } = this.#server.receive({ method, path, headers, body: JSON.stringify(body) });
    // A POST fails with 409 if the object already exists. Other methods fail with 404 if the object is missing. Both
    // are ignored.
    const isIgnored = method === 'POST' ? status === 409 : status === 404;
    if (status >= 300 && !isIgnored) throw new Error(`${method} ${path} failed with ${status}`);
  }
}
