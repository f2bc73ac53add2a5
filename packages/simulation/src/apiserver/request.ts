import type { ModelRequest } from '../world/server.ts';
import { UnmodelledError } from './errors.ts';

/** Parsed path and query of a request. */
interface ParsedPath {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string;
  readonly query: URLSearchParams;
}

/** A parsed request to the API server. */
export interface ApiRequest {
  readonly method: ModelRequest['method'];
  readonly parsedPath: ParsedPath;
  readonly contentType: string;
  readonly metadataOnly: boolean;
  readonly body: string | undefined;
}

/**
 * Maximum size of the cache of parsed paths. All servers share it, because runs request the same paths over
 * and over.
 */
const MAX_CACHED = 5_000;
const CACHE = new Map<string, ParsedPath>();

/** Parses a request. */
export function readRequest({ method, path, headers, body }: ModelRequest): ApiRequest {
  return {
    method,
    parsedPath: cachedPath(path),
    contentType: headers['content-type'] ?? '',
    metadataOnly: headers.accept?.includes('as=PartialObjectMetadata') ?? false,
    body,
  };
}

function cachedPath(path: string): ParsedPath {
  const cached = CACHE.get(path);
  if (cached !== undefined) return cached;
  if (CACHE.size >= MAX_CACHED) CACHE.clear();
  const place = parsePath(path);
  CACHE.set(path, place);
  return place;
}

function parsePath(path: string): ParsedPath {
  const cut = path.indexOf('?');
  const query = new URLSearchParams(cut === -1 ? '' : path.slice(cut + 1));
  const [root, ...steps] = (cut === -1 ? path : path.slice(0, cut)).split('/').slice(1);
  const group = root === 'apis' ? (steps.shift() ?? '') : '';
  const version = steps.shift() ?? '';
  const isNamespaced = steps[0] === 'namespaces' && steps.length > 2;
  const [, namespace] = isNamespaced ? steps.splice(0, 2) : [];
  const [plural = '', name, subresource = '', ...more] = steps;
  if ((root !== 'api' && root !== 'apis') || plural === '' || more.length > 0)
    throw new UnmodelledError(`the path ${path}`);
  return {
    group,
    version,
    plural,
    namespace: namespace === undefined ? undefined : decodeURIComponent(namespace),
    name: name === undefined ? undefined : decodeURIComponent(name),
    subresource,
    query,
  };
}
