/**
 * Returns what prevents a release under this tag: each published package must have its version, and the changelog a section for it.
 * @param versions versions of the published packages by name
 */
export function releaseProblems(
  tag: string,
  versions: ReadonlyMap<string, string>,
  changelog: string,
): readonly string[] {
  const version = /^v(\d+\.\d+\.\d+(?:-[\w.-]+)?)$/.exec(tag)?.[1];
  if (version === undefined) return [`the tag "${tag}" must be v and a semantic version, such as v1.2.3`];
  const others = [...versions].filter(([, each]) => each !== version);
  const isListed = new RegExp(`^## v?${RegExp.escape(version)}\\b`, 'm').test(changelog);
  return [
    ...others.map(([name, each]) => `${name} has the version ${each} in its package.json, not ${version}`),
    ...(isListed ? [] : [`CHANGELOG.md has no section "## ${version}"`]),
  ];
}
