/** Tag with a semantic version. Build metadata is not allowed, because image tags cannot contain `+`. */
const VERSION = (() => {
  const number = '(?:0|[1-9]\\d*)';
  const identifier = `(?:${number}|\\d*[A-Za-z-][0-9A-Za-z-]*)`;
  return new RegExp(`^v(${number}\\.${number}\\.${number}(?:-${identifier}(?:\\.${identifier})*)?)$`);
})();

/**
 * Returns the problems that prevent a release under this Git tag. All published files must have the version of the tag,
 * and the changelog must have a section for that version. A pre-release such as v1.2.3-rc.1 is a version of its own.
 * @param versions versions by the place where they are written, such as `version in packages/core/package.json`
 */
export function releaseProblems(
  tag: string,
  versions: ReadonlyMap<string, string>,
  changelog: string,
): readonly string[] {
  const version = VERSION.exec(tag)?.[1];
  if (version === undefined)
    return [`the tag "${tag}" must be v and a semantic version, such as v1.2.3 or v1.2.3-rc.1`];
  const others = [...versions].filter(([, each]) => each !== version);
  const isListed = new RegExp(`^## v?${RegExp.escape(version)}(?=\\s|$)`, 'm').test(changelog);
  return [
    ...others.map(([where, each]) => `the ${where} is ${each}, not ${version}`),
    ...(isListed ? [] : [`CHANGELOG.md has no section "## ${version}"`]),
  ];
}
