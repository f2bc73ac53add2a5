/**
 * Program of `make audit`. Exits with code 1 if a package in package-lock.json has a known vulnerability of the
 * severity high or critical, and with code 2 if npm cannot get advisories from the registry.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { vulnerabilitiesIn } from './audit.ts';

const cwd = fileURLToPath(new URL('../../', import.meta.url));
// If the registry does not respond, the target should fail within a minute. By default, npm makes three attempts of
// five minutes each.
const limits = ['--fetch-timeout=20000', '--fetch-retries=1', '--fetch-retry-mintimeout=1000'];
const args = ['audit', '--json', '--package-lock-only', ...limits];
const { stdout } = spawnSync('npm', args, { cwd, encoding: 'utf8', maxBuffer: 1 << 26 });
try {
  const found = vulnerabilitiesIn(stdout ?? '', 'high');
  for (const { name, severity, range, advisories } of found)
    console.error([`${name} ${range}: ${severity}`, ...advisories].join('\n    '));
  if (found.length > 0) process.exitCode = 1;
  else console.log('No package in package-lock.json has a known vulnerability of severity high or critical.');
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  console.error(`npm cannot ask the registry for advisories: ${reason.trim().replaceAll(/\s+/g, ' ')}`);
  console.error(
    'Nothing was checked. Run `make audit` with a registry that can be reached and serves advisories.',
  );
  process.exitCode = 2;
}
