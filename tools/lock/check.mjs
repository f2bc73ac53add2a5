/**
 * Checks that `npm ci` verifies every package that it installs. Part of `make check` and of `make lock`; prints one line for
 * each lock entry that breaks a rule. Plain JavaScript: `make lock` runs it on any Node, before anything is installed.
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
]);
for (const problem of problems) console.error(`${FILE}: ${problem}`);
process.exitCode = problems.length === 0 ? 0 : 1;

/** @returns {string[]} the problems of a package that npm downloads */
function installed(path, { integrity, resolved, hasInstallScript }) {
  const name = path.slice(path.lastIndexOf(FOLDER) + FOLDER.length);
  const found = [];
  if (!/^sha512-/.test(integrity ?? ''))
    found.push(`${path} has no sha512 integrity hash, so npm installs it unverified; ${ADVICE}`);
  // An address would tie the lock to the registry or mirror of the machine that wrote it.
  if (resolved !== undefined) found.push(`${path} is bound to ${resolved}; run \`make lock\``);
  // A script can install further packages that the lock does not list.
  if (hasInstallScript && allowScripts[name] !== true)
    found.push(`${path} runs a script at installation; review it and add it to allowScripts in package.json`);
  return found;
}

/**
 * npm leaves out optional packages that the registry lacks; `npm ci` then rejects the lock on their platforms, and newer
 * versions of npm do on every platform.
 * @returns {string[]}
 */
function missing(path, { dependencies = {}, optionalDependencies = {} }) {
  return Object.keys({ ...dependencies, ...optionalDependencies })
    .filter((name) => !folders(path).some((folder) => packages[folder + FOLDER + name] !== undefined))
    .map((name) => `${path || 'package.json'} needs ${name}, which the lock lacks; ${ADVICE}`);
}

/** @returns {string[]} the prefixes at which Node looks for a dependency of the package at `path` */
function folders(path) {
  const steps = path.split('/');
  return steps.map((_, index) => `${steps.slice(0, index + 1).join('/')}/`).concat('');
}
