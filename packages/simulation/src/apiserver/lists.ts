import type { BufferedResponse } from '../world/server.ts';
import { ApiError, badRequest, expired, UnmodelledError } from './errors.ts';
import type { Selection } from './selection.ts';
import type { Store } from './store.ts';
import type { Version } from './version.ts';

/** Decoded continue token: the resource version of the list and the last key returned. */
interface Continuation {
  readonly number: number;
  readonly after: string;
}

/** Serves lists of the newest state or of an exact resource version. All pages of a list show the same version. */
export class Lists {
  readonly #store: Store;
  readonly #showManagedFields: boolean;

  constructor(store: Store, showManagedFields: boolean) {
    this.#store = store;
    this.#showManagedFields = showManagedFields;
  }

  list(selection: Selection, query: URLSearchParams): BufferedResponse {
    const from = this.#from(query);
    const limit = Number(query.get('limit') ?? 0);
    const { resource, matches, metadataOnly } = selection;
    const isPast = from.number !== this.#store.number;
    const all = isPast ? this.#store.listAt(resource, from.number) : this.#store.list(resource);
    const page: Version[] = [];
    let last = '';
    let more = false;
    for (const [key, version] of all) {
      if (key <= from.after || !isWithin(selection, version)) continue;
      if (limit > 0 && page.length === limit) {
        more = true; // the real server does not look ahead for a match, so the last page may be empty
        break;
      }
      if (!matches(version.object)) continue;
      page.push(version);
      last = key;
    }
    const texts = page.map((version) =>
      metadataOnly ? version.metadataText(this.#showManagedFields) : version.text(this.#showManagedFields),
    );
    const metadata = {
      resourceVersion: String(from.number),
      ...(more && { continue: tokenOf({ number: from.number, after: last }) }),
    };
    const [kind, apiVersion] = metadataOnly
      ? ['PartialObjectMetadataList', 'meta.k8s.io/v1']
      : [`${resource.kind.kind}List`, resource.apiVersion];
    const head = JSON.stringify({ kind, apiVersion, metadata }).slice(0, -1);
    return { status: 200, body: `${head},"items":[${texts.join(',')}]}` };
  }

  #from(query: URLSearchParams): Continuation {
    const token = query.get('continue') ?? '';
    const version = query.get('resourceVersion') ?? '';
    const match = query.get('resourceVersionMatch') ?? '';
    const newest = { number: this.#store.number, after: '' };
    if (token !== '') {
      if (version !== '' && version !== '0')
        throw badRequest('specifying resource version is not allowed when using continue');
      const from = continuationIn(token);
      if (from.number < this.#store.compacted)
        throw expired(
          'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.',
        );
      return from;
    }
    if (version === '') {
      if (match !== '')
        throw badMatch('resourceVersionMatch is forbidden unless resourceVersion is provided');
      return newest;
    }
    const number = numberIn(version);
    if (match === 'Exact') {
      if (number === 0) throw badMatch('resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
      if (number < this.#store.compacted)
        throw expired('The resourceVersion for the provided list is too old.');
      if (number <= this.#store.number) return { number, after: '' };
    }
    if (number > this.#store.number)
      throw new ApiError(
        504,
        'Timeout',
        `Timeout: Too large resource version: ${number}, current: ${this.#store.number}`,
        {
          retryAfterSeconds: 1,
          causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
        },
      );
    if (match === '' && query.has('limit') && number !== 0)
      throw new UnmodelledError('a list with limit and resourceVersion and without resourceVersionMatch');
    return newest;
  }
}

function badMatch(why: string): ApiError {
  const field = 'resourceVersionMatch';
  const message = `Forbidden: ${why}`;
  return new ApiError(422, 'Invalid', `ListOptions.meta.k8s.io "" is invalid: ${field}: ${message}`, {
    group: 'meta.k8s.io',
    kind: 'ListOptions',
    causes: [{ reason: 'FieldValueForbidden', message, field }],
  });
}

function isWithin({ namespace }: Selection, { object }: Version): boolean {
  return namespace === undefined || object.metadata.namespace === namespace;
}

export function numberIn(resourceVersion: string): number {
  const number = Number(resourceVersion);
  if (!Number.isInteger(number) || number < 0)
    throw new UnmodelledError(`the resource version ${resourceVersion}`);
  return number;
}

function tokenOf(continuation: Continuation): string {
  return Buffer.from(JSON.stringify(continuation)).toString('base64url');
}

function continuationIn(token: string): Continuation {
  const { number, after }: Continuation = JSON.parse(Buffer.from(token, 'base64url').toString());
  return { number, after };
}
