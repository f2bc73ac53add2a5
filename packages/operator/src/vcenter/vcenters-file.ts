import { readFile } from 'node:fs/promises';
import { schema } from '@vmwright/runtime';
import { SettingsError } from '../settings/values.ts';
import type { VcenterSettings } from '../settings/vsphere.ts';

const { array, boolean, object, optional, string } = schema;

const named = optional(string({ minLength: 1 }));
const FILE = object({
  vcenters: array(
    object({
      name: string({ minLength: 1, maxLength: 63 }),
      server: string({ minLength: 1 }),
      credentials: string({ minLength: 1 }),
      ca: named,
      thumbprint: named,
      insecure: optional(boolean()),
      namespaces: optional(array(string({ minLength: 1 }))),
      templateFolder: named,
      allowVmAsTemplate: optional(boolean()),
      placement: optional(
        object({
          datacenter: named,
          folder: named,
          cluster: named,
          resourcePool: named,
          datastore: named,
          storagePolicy: named,
        }),
      ),
    }),
    { minItems: 1 },
  ),
});

/** Reads the file that `--vcenters` names. @throws SettingsError if the file cannot be read or is invalid */
export async function readVcentersFile(file: string): Promise<readonly VcenterSettings[]> {
  const wrong = (why: string) => new SettingsError(`--vcenters: ${file} ${why}`);
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new SettingsError(`--vcenters: ${file} cannot be read`, { cause });
  });
  const { parse } = await import('yaml');
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    throw wrong('is not YAML');
  }
  const [unknown] = schema.unknownFields(FILE, value);
  if (unknown !== undefined)
    throw wrong(`is invalid: the field '${unknown}' is unknown; correct or remove it`);
  const checked = schema.admit(FILE, value);
  if (!checked.ok) throw wrong(`is invalid: ${checked.problems.map(schema.sentenceOf).join('; ')}`);
  const withUser = checked.value.vcenters.find(({ server }) => server.includes('@'));
  if (withUser !== undefined)
    throw wrong(
      `is invalid: the server of '${withUser.name}' contains a user or a password; put them into the folder that 'credentials' names`,
    );
  const contradictory = checked.value.vcenters.find(
    ({ insecure, ca, thumbprint }) => insecure && (ca ?? thumbprint) !== undefined,
  );
  if (contradictory !== undefined)
    throw wrong(
      `is invalid: 'insecure' of '${contradictory.name}' disables the verification that its 'ca' or 'thumbprint' asks for; remove 'insecure', or remove 'ca' and 'thumbprint'`,
    );
  return checked.value.vcenters.map(({ credentials: folder, ...rest }) => ({
    ...rest,
    credentials: { folder },
  }));
}
