/** Objects as text, for `config/`, `kubectl apply -f -` and people. */
export async function manifestYaml(objects: Iterable<object>): Promise<string> {
  // A running operator writes no YAML, and so does not load the library.
  const { stringify } = await import('yaml');
  // Kubernetes reads YAML 1.1, in which a field named `on` is true unless quoted.
  const options = { compat: 'yaml-1.1', aliasDuplicateObjects: false, lineWidth: 120 } as const;
  return [...objects].map((object) => stringify(object, options)).join('---\n');
}
