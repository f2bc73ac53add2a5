/** API verbs by HTTP method. A GET is a list, get or watch, depending on its path and query. */
const VERBS: Readonly<Record<string, string>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

const REQUEST = /(GET|POST|PUT|PATCH|DELETE) \/(?:api|apis\/[^/ ]+)\/v[^/ ]+\/([^? ]+)(?:\?(\S*))?/;

/**
 * Shortens the requests to the API server in a line of a trace: `patch greetings default/moon/status → 200`
 * for `PATCH /apis/g/v1/namespaces/default/greetings/moon/status?fieldManager=x → 200`. Other text is
 * unchanged.
 */
export function readable(what: string): string {
  return what.replace(REQUEST, (_, method: string, path: string, search = '') => {
    const query = new URLSearchParams(search);
    const [, namespace, plural = '', ...rest] =
      /^(?:namespaces\/([^/]+)\/)?([^/]+)(?:\/(.+))?$/.exec(path) ?? [];
    const name = rest[0] === undefined ? undefined : [namespace, rest[0]].filter(Boolean).join('/');
    const isWatch = query.get('watch') === 'true';
    const verb = VERBS[method] ?? (isWatch ? 'watch' : name === undefined ? 'list' : 'get');
    const where = name ?? (namespace === undefined ? undefined : `in ${namespace}`);
    return [verb, plural, where, detailOf(query)].filter(Boolean).join(' ');
  });
}

function detailOf(query: URLSearchParams): string | undefined {
  if (query.get('sendInitialEvents') === 'true') return 'from the start';
  if (query.has('continue')) return 'next page';
  const version = query.get('resourceVersion');
  if (query.get('watch') === 'true' && version !== null) return `from @${version}`;
  return undefined;
}
