/** Returns objects as a YAML stream, for `config/` and `kubectl apply -f -`. */
export async function manifestYaml(objects: Iterable<object>): Promise<string> {
  // Loaded on demand: a running operator writes no YAML.
  const { stringify } = await import('yaml');
  // Kubernetes reads YAML 1.1, where an unquoted `on` means true, so such strings must be quoted.
  const options = { compat: 'yaml-1.1', aliasDuplicateObjects: false, lineWidth: 120 } as const;
  return [...objects].map((object) => stringify(object, options)).join('---\n');
}
