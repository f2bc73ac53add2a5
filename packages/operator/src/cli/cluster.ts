import {
  type Access,
  Client,
  ForbiddenError,
  type Kind,
  type KubeObject,
  NotFoundError,
  nodeWorld,
} from '@vmwright/runtime';
import { type ClusterOptions, clusterAccess } from '../access.ts';
import { NAME } from '../declarations.ts';

/** Timeout of a request, so that a command does not hang on a server that does not respond. */
const TIMEOUT_MS = 15_000;

/** A connected cluster. */
export interface Cluster extends AsyncDisposable {
  readonly access: Access;
  readonly client: Client;
}

export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  const access = await clusterAccess(nodeWorld, options);
  const client = new Client({
    world: nodeWorld,
    access,
    fieldManager: NAME,
    userAgent: `${NAME}-cli`,
    timeoutMs: TIMEOUT_MS,
  });
  return { access, client, [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() };
}

/** Result of a list: the objects, or why they could not be listed. */
export interface Listed<T> {
  readonly items: readonly T[];
  /** `not installed` or `not permitted`; undefined if the objects were listed. */
  readonly problem?: string;
}

/**
 * Lists all objects of a kind. Returns a `problem` instead of throwing if the kind is not installed, or if the user is
 * not permitted to list it.
 */
export async function listAll<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  namespace: string | undefined,
): Promise<Listed<T>> {
  const items: T[] = [];
  try {
    for await (const page of client.pages(kind, { namespace })) items.push(...page.items);
    return { items };
  } catch (error) {
    if (error instanceof NotFoundError) return { items, problem: 'not installed' };
    if (error instanceof ForbiddenError) return { items, problem: 'not permitted' };
    throw error;
  }
}
