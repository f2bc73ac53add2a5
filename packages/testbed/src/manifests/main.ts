/**
 * Part of `make generate`: writes the manifests. With `--check`, part of `make check`: fails if they are out of date.
 */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { tryRun } from '../process/run.ts';
import { temporaryFolder } from '../process/run-supervisor.ts';
import { generateManifests } from './generate.ts';
import { manifestsFolder } from './load.ts';

if (process.argv.includes('--check')) await check();
else await generateManifests(manifestsFolder);

async function check(): Promise<void> {
  if ((await tryRun('go', ['version'])).code !== 0) {
    console.warn('generated manifests: not checked, because Go is not installed');
    return;
  }
  const fresh = await temporaryFolder('generate');
  try {
    await generateManifests(fresh);
    const names = new Set([...(await readdir(fresh)), ...(await readdir(manifestsFolder))]);
    for (const name of names) {
      const [committed, generated] = await Promise.all(
        [manifestsFolder, fresh].map((dir) => readFile(join(dir, name), 'utf8').catch(() => '')),
      );
      if (committed === generated) continue;
      console.error(
        `packages/testbed/manifests/${name} is out of date; run \`make generate\` and commit the result`,
      );
      process.exitCode = 1;
    }
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}
