import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SettingsError } from '../settings/values.ts';
import { readVcentersFile } from './vcenters-file.ts';

async function read(text: string) {
  const folder = await mkdtemp(join(tmpdir(), 'vcenters-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'vcenters.yaml');
  await writeFile(file, text);
  return readVcentersFile(file);
}

const withLine = (line: string) =>
  `vcenters: [{ name: east, server: east.example, credentials: /run/east, ${line} }]`;

test('the file lists vCenters with their TLS settings and their credentials folder', async () => {
  expect(await read(withLine('ca: /etc/ca.pem'))).toEqual([
    { name: 'east', server: 'east.example', ca: '/etc/ca.pem', credentials: { folder: '/run/east' } },
  ]);
  expect(await read(withLine('insecure: true'))).toMatchObject([{ insecure: true }]);
  expect(await read(withLine('insecure: false, thumbprint: "AB:CD"'))).toMatchObject([{ insecure: false }]);
});

test.each([
  ['insecure: true, ca: /etc/ca.pem', "'insecure' of 'east' disables the verification"],
  ['insecure: true, thumbprint: "AB:CD"', "'insecure' of 'east' disables the verification"],
  ['server: user:secret@east.example', 'is not YAML'],
  ['thumbprnt: "AB:CD"', "the field 'vcenters[0].thumbprnt' is unknown"],
  ['placement: { datastor: fast }', "the field 'vcenters[0].placement.datastor' is unknown"],
])('a file with %s is rejected', async (line, message) => {
  const rejected = read(withLine(line));
  await expect(rejected).rejects.toBeInstanceOf(SettingsError);
  await expect(rejected).rejects.toThrow(message);
});

test('the message about a server with a user and a password does not contain the password', async () => {
  const text = 'vcenters: [{ name: east, server: "user:secret@east.example", credentials: /run/east }]';
  const error = await read(text).catch((reason: unknown) => String(reason));
  expect(error).toContain("the server of 'east' contains a user or a password");
  expect(error).not.toContain('secret');
});
