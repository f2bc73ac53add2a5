import { readFile, writeFile } from 'node:fs/promises';
import { TestbedError } from '../errors.ts';

/** Address and credentials of an API server. */
export interface Access {
  readonly server: string;
  /** CA certificate in PEM. */
  readonly ca: string;
  readonly as: { readonly certificate: string; readonly key: string } | { readonly token: string };
}

/** Writes a kubeconfig as JSON, readable only by its owner, and returns its path. */
export async function writeKubeconfig(path: string, { server, ca, as }: Access): Promise<string> {
  const user =
    'token' in as
      ? { token: as.token }
      : { 'client-certificate-data': base64(as.certificate), 'client-key-data': base64(as.key) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'vmwright', cluster: { server, 'certificate-authority-data': base64(ca) } }],
    users: [{ name: 'vmwright', user }],
    contexts: [
      { name: 'vmwright', context: { cluster: 'vmwright', user: 'vmwright', namespace: 'default' } },
    ],
    'current-context': 'vmwright',
  };
  await writeFile(path, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
  return path;
}

/** Reads a kubeconfig that `writeKubeconfig` wrote. */
export async function readKubeconfig(path: string): Promise<Access> {
  const config = JSON.parse(await readFile(path, 'utf8'));
  const cluster = config?.clusters?.[0]?.cluster;
  const user = config?.users?.[0]?.user;
  const [server, ca] = [cluster?.server, cluster?.['certificate-authority-data']];
  const [certificate, key] = [user?.['client-certificate-data'], user?.['client-key-data']];
  if (typeof server !== 'string' || typeof ca !== 'string') throw unreadable(path);
  if (typeof user?.token === 'string') return { server, ca: fromBase64(ca), as: { token: user.token } };
  if (typeof certificate !== 'string' || typeof key !== 'string') throw unreadable(path);
  return { server, ca: fromBase64(ca), as: { certificate: fromBase64(certificate), key: fromBase64(key) } };
}

function unreadable(path: string): TestbedError {
  return new TestbedError('REQUEST_FAILED', `${path} is not a kubeconfig written by the testbed`);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function fromBase64(text: string): string {
  return Buffer.from(text, 'base64').toString();
}
