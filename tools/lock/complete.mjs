/**
 * Completes `package-lock.json` with the optional packages of other platforms. A registry mirror may lack some of them;
 * npm then leaves them out of the lock, and `npm ci` on such a platform (and by newer versions of npm on any) refuses it.
 * Part of `make lock`. Plain JavaScript: it must run before anything is installed, on whatever Node there is.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const SYSTEMS = [
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
  'windows',
];
const PROCESSORS = [
  'arm',
  'arm64',
  'ia32',
  'loong64',
  'mips64el',
  'ppc64',
  'ppc64le',
  'riscv64',
  's390x',
  'wasm32',
  'x64',
];
const FILE = 'package-lock.json';

const lock = JSON.parse(readFileSync(FILE, 'utf8'));
const added = {};
for (const [path, { optionalDependencies = {} }] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    const key = `node_modules/${name}`;
    if (lock.packages[key] === undefined && lock.packages[`${path}/${key}`] === undefined)
      added[key] = entry(name, version);
  }
}
const all = Object.entries({ ...lock.packages, ...added }).sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(FILE, `${JSON.stringify({ ...lock, packages: Object.fromEntries(all) }, null, 2)}\n`);
console.log(`${FILE}: ${Object.keys(added).length} packages of other platforms added`);

/** The platform stands in the package's name. */
function entry(name, version) {
  const parts = name.split(/[/-]/);
  const os = SYSTEMS.filter((system) => parts.includes(system)).map((system) =>
    system === 'windows' ? 'win32' : system,
  );
  const cpu = PROCESSORS.filter((processor) => parts.includes(processor));
  if (os.length === 0 && cpu.length === 0) throw new Error(`${name}: its name tells no platform`);
  const libc = parts.includes('musl') ? ['musl'] : parts.includes('gnu') ? ['glibc'] : [];
  return {
    version: version.replace(/^[^\d]+/, ''),
    dev: true,
    optional: true,
    ...(cpu.length > 0 && { cpu }),
    ...(os.length > 0 && { os }),
    ...(libc.length > 0 && { libc }),
  };
}
