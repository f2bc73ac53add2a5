/**
 * Checks that `npm ci` can verify every package that it installs and that our packages pin their dependencies, and prints a line for
 * each lock entry that violates a rule.
 * Part of `make check` and `make lock`. Plain JavaScript, because `make lock` runs it on any Node before anything is installed.
 */
import { readFileSync } from 'node:fs';

const FILE = 'package-lock.json';
const FOLDER = 'node_modules/';
const ADVICE = 'pin a version that the registry has for every platform, then run `make lock`';

const { packages } = JSON.parse(readFileSync(FILE, 'utf8'));
const { allowScripts = {} } = JSON.parse(readFileSync('package.json', 'utf8'));

const problems = Object.entries(packages).flatMap(([path, entry]) => [
  ...(path.includes(FOLDER) && !entry.link ? installed(path, entry) : []),
  ...missing(path, entry),
  ...(path.includes(FOLDER) ? [] : ranges(path, entry)),
]);
for (const problem of problems) console.error(`${FILE}: ${problem}`);
process.exitCode = problems.length === 0 ? 0 : 1;

/** @returns {string[]} the problems of a package that npm downloads */
function installed(path, { integrity, resolved, hasInstallScript }) {
  const name = path.slice(path.lastIndexOf(FOLDER) + FOLDER.length);
  const found = [];
  if (!/^sha512-/.test(integrity ?? ''))
    found.push(`${path} has no sha512 integrity hash, so npm installs it unverified; ${ADVICE}`);
  // A URL would tie the lock to the registry or mirror of the machine that wrote it.
  if (resolved !== undefined) found.push(`${path} has the URL ${resolved}; remove it with \`make lock\``);
  // A script can install further packages that the lock does not list.
  if (hasInstallScript && allowScripts[name] !== true)
    found.push(
      `${path} has an install script; review it and add the package to allowScripts in package.json`,
    );
  return found;
}

/**
 * Finds dependencies of our own packages that are not pinned: a published package with a range would run with versions that were never
 * tested. A dependency on another of our packages has the version `*`, which `make build` replaces.
 * @returns {string[]} a problem for each dependency with a range
 */
function ranges(path, { dependencies = {}, devDependencies = {}, optionalDependencies = {} }) {
  return Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })
    .filter(([name, version]) => !/^\d+\.\d+\.\d+(-[\w.-]+)?$/.test(version) && !isOurs(name, version))
    .map(([name, version]) => `${path || 'package.json'} depends on ${name} ${version}; ${ADVICE}`);
}

/** @returns {boolean} whether a dependency is a package of this repository */
function isOurs(name, version) {
  return version === '*' && packages[FOLDER + name]?.link === true;
}

/**
 * Finds dependencies without a lock entry. npm omits optional packages that the registry lacks. `npm ci` then rejects the lock on
 * the platforms of these packages; newer versions of npm reject it on every platform.
 * @returns {string[]} a problem for each dependency of the package at `path` that the lock lacks
 */
function missing(path, { dependencies = {}, optionalDependencies = {} }) {
  return Object.keys({ ...dependencies, ...optionalDependencies })
    .filter((name) => !folders(path).some((folder) => packages[folder + FOLDER + name] !== undefined))
    .map((name) => `${path || 'package.json'} depends on ${name}, which is missing; ${ADVICE}`);
}

/** @returns {string[]} the folders in which Node looks for a dependency of the package at `path` */
function folders(path) {
  const steps = path.split('/');
  return steps.map((_, index) => `${steps.slice(0, index + 1).join('/')}/`).concat('');
}
