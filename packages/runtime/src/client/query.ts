export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Appends query parameters to a path. Leaves out parameters that are undefined, empty or false. */
export function withQuery(path: string, query: Query): string {
  const parts = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' || value === false ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return parts.length === 0 ? path : `${path}?${parts.join('&')}`;
}
