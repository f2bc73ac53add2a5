/** `make licences`: lists the licences of all packages that ship, and fails if one is unknown or not permissive. */
import { licenceProblem } from './licence.ts';
import { shipped } from './shipped.ts';

const packages = shipped();
const width = Math.max(...packages.map(({ name, version }) => name.length + version.length)) + 1;
for (const { name, version, licence } of packages)
  console.log(`${`${name} ${version}`.padEnd(width)}  ${licence ?? 'unknown'}`);
for (const { name, version, licence } of packages) {
  const problem = licenceProblem(name, version, licence);
  if (problem === undefined) continue;
  console.error(problem);
  process.exitCode = 1;
}
