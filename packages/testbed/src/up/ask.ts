/** `make restart PART=…` and `make stop PART=…`: a request to the `make up` that is running. */
import { readdir } from 'node:fs/promises';
import { messageOf } from '@vmwright/core';
import { TestbedError } from '../errors.ts';
import { UpFolder } from './folder.ts';
import { Requests, VERBS } from './requests.ts';

const [verb, part = ''] = process.argv.slice(2);
try {
  await ask();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}

async function ask(): Promise<void> {
  const known = VERBS.find((each) => each === verb);
  if (known === undefined) throw new Error(`${verb} is not one of ${VERBS.join(', ')}`);
  const folder = new UpFolder(process.env.VMWRIGHT_UP_DIR);
  if ((await folder.owner()) === undefined) {
    throw new TestbedError(
      'PART_NOT_READY',
      `no \`make up\` is ready in ${folder.path}; run \`make up\` first, in another shell`,
    );
  }
  const parts = (await readdir(folder.logs)).map((log) => log.replace(/\.log$/, ''));
  if (!parts.includes(part)) throw new Error(`PART=${part} must be one of ${parts.join(', ')}`);
  await new Requests(folder.requests).send(known, part);
  process.stdout.write(`${part}: ${known} done\n`);
}
