import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { field } from './api.ts';

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

/** Writes an audit policy for the requests of one user, and returns the API server's flags and the path of the log. */
export async function writeAuditPolicy(
  dir: string,
  user: string,
): Promise<{ readonly args: readonly string[]; readonly log: string }> {
  const policy = {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'], // a watch completes only when it ends
    rules: [{ level: 'Metadata', users: [user] }, { level: 'None' }],
  };
  const [file, log] = [join(dir, 'audit-policy.json'), join(dir, 'audit.jsonl')];
  await writeFile(file, JSON.stringify(policy));
  await writeFile(log, ''); // the API server creates it with its first event
  // Blocking: the log contains each request when its response is sent.
  return {
    args: [`--audit-policy-file=${file}`, `--audit-log-path=${log}`, '--audit-log-mode=blocking'],
    log,
  };
}

/** Returns the requests in an audit log. */
export async function auditedRequests(log: string): Promise<readonly AuditedRequest[]> {
  const lines = (await readFile(log, 'utf8')).split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const event: unknown = JSON.parse(line);
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
  });
}
