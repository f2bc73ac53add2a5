import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CanarySearches } from '../canaries/searches.ts';
import { field } from './api.ts';
import { auditPolicy } from './audit-policy.ts';

/** A request in the audit log of the API server. The log contains authorized and rejected requests. */
export interface AuditedRequest {
  readonly user: string;
  readonly verb: string;
  /** API group; empty for the core group, and for paths that are not resources. */
  readonly group: string;
  /** Resource with its subresource, such as `pods/status`; empty for paths that are not resources. */
  readonly resource: string;
  readonly namespace: string | undefined;
  /** Name of the object; undefined for requests for a collection. */
  readonly name: string | undefined;
  readonly allowed: boolean;
}

/** Audit log of an API server. A request appears in the log when its response is sent. */
export class AuditLog {
  /** Flags that make the API server write the log. */
  readonly flags: readonly string[];
  readonly #path: string;
  readonly #users: readonly string[];

  private constructor(policy: string, path: string, users: readonly string[]) {
    this.flags = [`--audit-policy-file=${policy}`, `--audit-log-path=${path}`, '--audit-log-mode=blocking'];
    this.#path = path;
    this.#users = users;
  }

  /**
   * Writes the audit policy of an API server.
   * @param users all requests of these users are recorded
   * @returns undefined if nothing has to be recorded: no user is given, and the test run does not search for
   * credentials
   */
  static async create(dir: string, users: readonly string[]): Promise<AuditLog | undefined> {
    if (users.length === 0 && CanarySearches.current === undefined) return undefined;
    const [policy, path] = [join(dir, 'audit-policy.json'), join(dir, 'audit.jsonl')];
    await writeFile(policy, JSON.stringify(auditPolicy(users)));
    await writeFile(path, ''); // the file is read even if the API server has written no event yet
    return new AuditLog(policy, path, users);
  }

  /** Searches for credentials in the objects that service accounts wrote. */
  search(): void {
    CanarySearches.current?.file('an object that a service account wrote', this.#path);
  }

  /**
   * Returns the requests of the users that were passed to `create`, if the API server has responded to them. Includes
   * watches that have not ended.
   */
  async requests(): Promise<readonly AuditedRequest[]> {
    const lines = (await readFile(this.#path, 'utf8')).split('\n').slice(0, -1); // the last line may be incomplete
    const requests = lines.map((line) => requestOf(JSON.parse(line)));
    return requests.filter(({ user }) => this.#users.includes(user));
  }
}

function requestOf(event: unknown): AuditedRequest {
  const text = (name: string) => {
    const value = field(event, 'objectRef', name);
    return typeof value === 'string' ? value : undefined;
  };
  const subresource = text('subresource');
  return {
    user: String(field(event, 'user', 'username')),
    verb: String(field(event, 'verb')),
    group: text('apiGroup') ?? '',
    resource: [text('resource') ?? '', ...(subresource === undefined ? [] : [subresource])].join('/'),
    namespace: text('namespace'),
    name: text('name'),
    allowed: field(event, 'annotations', 'authorization.k8s.io/decision') === 'allow',
  };
}
