/** `make generate` and, with `--check`, the part of `make check` that says whether it would change anything. */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../process/keeper.ts';
import { tryRun } from '../process/run.ts';
import { generateManifests } from './generate.ts';
import { manifestsFolder } from './load.ts';

if (process.argv.includes('--check')) await check();
else await generateManifests(manifestsFolder);

async function check(): Promise<void> {
  if ((await tryRun('go', ['version'])).code !== 0) {
    console.warn('generated manifests: not checked, since Go is not installed');
    return;
  }
  const fresh = await temporaryFolder('generate');
  try {
    await generateManifests(fresh);
    const names = new Set([...(await readdir(fresh)), ...(await readdir(manifestsFolder))]);
    for (const name of names) {
      const [kept, made] = await Promise.all(
        [manifestsFolder, fresh].map((dir) => readFile(join(dir, name), 'utf8').catch(() => '')),
      );
      if (kept === made) continue;
      console.error(
        `packages/testbed/manifests/${name} is not what \`make generate\` writes; run it and commit the result`,
      );
      process.exitCode = 1;
    }
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}
