import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CanarySearches } from '../canaries/searches.ts';
import { field } from './api.ts';
import { auditPolicy } from './audit-policy.ts';

/** A request that the API server has authorized or rejected, from its audit log. */
export interface AuditedRequest {
  readonly verb: string;
  /** API group; empty for the core group, and for paths that are no resources. */
  readonly group: string;
  /** Resource with its subresource, such as `pods/status`; empty for paths that are no resources. */
  readonly resource: string;
  readonly namespace: string | undefined;
  /** Name of the object; undefined for requests for a collection. */
  readonly name: string | undefined;
  readonly allowed: boolean;
}

/** Audit log of an API server. It contains each request when its response is sent. */
export class AuditLog {
  /** Flags of the API server. */
  readonly flags: readonly string[];
  readonly #path: string;
  readonly #user: string | undefined;

  private constructor(policy: string, path: string, user: string | undefined) {
    this.flags = [`--audit-policy-file=${policy}`, `--audit-log-path=${path}`, '--audit-log-mode=blocking'];
    this.#path = path;
    this.#user = user;
  }

  /**
   * Writes the policy of an API server.
   * @param user whose requests are all recorded
   * @returns undefined if nothing is to be recorded: no user, and no test run that searches for credentials
   */
  static async create(dir: string, user: string | undefined): Promise<AuditLog | undefined> {
    if (user === undefined && CanarySearches.current === undefined) return undefined;
    const [policy, path] = [join(dir, 'audit-policy.json'), join(dir, 'audit.jsonl')];
    await writeFile(policy, JSON.stringify(auditPolicy(user)));
    await writeFile(path, ''); // the API server creates it with its first event
    return new AuditLog(policy, path, user);
  }

  /** Searches for credentials in what service accounts wrote. */
  search(): void {
    CanarySearches.current?.file('an object that a service account wrote', this.#path);
  }

  /** Returns the completed requests of the user. */
  async requests(): Promise<readonly AuditedRequest[]> {
    const lines = (await readFile(this.#path, 'utf8')).split('\n').filter((line) => line !== '');
    const events = lines.map((line): unknown => JSON.parse(line));
    return events.filter((event) => field(event, 'user', 'username') === this.#user).map(requestOf);
  }
}

function requestOf(event: unknown): AuditedRequest {
  const text = (name: string) => {
    const value = field(event, 'objectRef', name);
    return typeof value === 'string' ? value : undefined;
  };
  const subresource = text('subresource');
  return {
    verb: String(field(event, 'verb')),
    group: text('apiGroup') ?? '',
    resource: [text('resource') ?? '', ...(subresource === undefined ? [] : [subresource])].join('/'),
    namespace: text('namespace'),
    name: text('name'),
    allowed: field(event, 'annotations', 'authorization.k8s.io/decision') === 'allow',
  };
}
