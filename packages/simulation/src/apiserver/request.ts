import type { Arrived } from '../world/server.ts';
import { Unmodelled } from './refusal.ts';

/** What a path with its query says. */
interface Place {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string;
  readonly query: URLSearchParams;
}

/** A request to the API server, taken apart. */
export interface ApiRequest {
  readonly method: Arrived['method'];
  readonly place: Place;
  readonly contentType: string;
  readonly metadataOnly: boolean;
  readonly body: string | undefined;
}

/** Paths that are kept, for all servers: histories ask for the same ones again and again. */
const MOST_KEPT = 5_000;
const PLACES = new Map<string, Place>();

/** Takes a request apart. */
export function readRequest({ method, path, headers, body }: Arrived): ApiRequest {
  return {
    method,
    place: keptPlace(path),
    contentType: headers['content-type'] ?? '',
    metadataOnly: headers.accept?.includes('as=PartialObjectMetadata') ?? false,
    body,
  };
}

function keptPlace(path: string): Place {
  const kept = PLACES.get(path);
  if (kept !== undefined) return kept;
  if (PLACES.size >= MOST_KEPT) PLACES.clear();
  const place = placeOf(path);
  PLACES.set(path, place);
  return place;
}

function placeOf(path: string): Place {
  const cut = path.indexOf('?');
  const query = new URLSearchParams(cut === -1 ? '' : path.slice(cut + 1));
  const [root, ...steps] = (cut === -1 ? path : path.slice(0, cut)).split('/').slice(1);
  const group = root === 'apis' ? (steps.shift() ?? '') : '';
  const version = steps.shift() ?? '';
  const isNamespaced = steps[0] === 'namespaces' && steps.length > 2;
  const [, namespace] = isNamespaced ? steps.splice(0, 2) : [];
  const [plural = '', name, subresource = '', ...more] = steps;
  if ((root !== 'api' && root !== 'apis') || plural === '' || more.length > 0)
    throw new Unmodelled(`the path ${path}`);
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
