import {
  type Client,
  certificatesIn,
  messageOf,
  nodeWorld,
  ValidatingWebhookConfiguration,
} from '@vmwright/runtime';
import { NAME } from '../../declarations.ts';
import type { Settings } from '../../settings/settings.ts';
import { VM } from '../../vm/resource.ts';
import { VMDiskImage } from '../../vmdiskimage/resource.ts';
import { VmGroup } from '../../vmgroup/resource.ts';
import { APPLY, checkInstalled } from './installed-object.ts';
import { type CheckResult, failed, passed, skipped } from './result.ts';

const START = 'start the operator, which writes its CA, or check cert-manager if it injects the CA';

/** Checks the CA of the webhooks, and that the API server reaches them. */
export function checkWebhooks(
  client: Client,
  settings: Settings,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  const missing = `the ValidatingWebhookConfiguration ${NAME} does not exist`;
  return checkInstalled(
    { client, kind: ValidatingWebhookConfiguration, name: NAME, signal },
    async ({ webhooks = [] }) => [
      ...webhooks.map(({ name, clientConfig: { caBundle = '' } }) =>
        checkBundle(name, Buffer.from(caBundle, 'base64').toString(), nodeWorld.now()),
      ),
      ...(await reach(client, settings, signal)),
    ],
    {
      missing: failed('webhooks', missing, `apply it: ${APPLY}`),
      unreadable: skipped('webhooks', 'webhook configurations may not be read'),
    },
  );
}

/** Checks that a CA bundle contains a certificate that is valid now. @param now milliseconds since 1970 */
export function checkBundle(webhook: string, pem: string, now: number): CheckResult {
  const name = `webhook ${webhook}`;
  const certificates = certificatesIn(pem);
  if (certificates.length === 0) return failed(name, 'has no CA certificate (caBundle)', START);
  const until = Math.max(...certificates.map(({ validTo }) => Date.parse(validTo)));
  const date = new Date(until).toISOString().slice(0, 10);
  return until > now
    ? passed(name, `CA is valid until ${date}`)
    : failed(
        name,
        `CA has expired on ${date}`,
        'restart the operator, which renews it, or check cert-manager',
      );
}

const UNREACHABLE =
  'check that the operator runs and that the API server reaches its Service or --webhook-url';

/** Name of the objects in dry runs, which the API server does not store. */
const PROBE = 'vmwright-check';

/** Sends requests through the webhooks of the enabled controllers: dry runs, and a list that converts a VmGroup. */
async function reach(
  client: Client,
  { cloud, vsphere, kubevirt, namespaces }: Settings,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  const metadata = { namespace: namespaces?.[0] ?? 'default', name: PROBE };
  const options = { dryRun: true, signal };
  const image = { secretRef: '', sourceType: 'blank', diskSize: '1Gi' } as const;
  return [
    ...(cloud === undefined
      ? []
      : [await call('of VM', client.create(VM, { metadata, spec: { vmname: PROBE } }, options), signal)]),
    ...(kubevirt === undefined
      ? []
      : [
          await call(
            'of VMDiskImage',
            client.create(VMDiskImage, { metadata, spec: image }, options),
            signal,
          ),
        ]),
    ...(vsphere === undefined
      ? []
      : [
          await call(
            'of VmGroup (conversion)',
            client.list(VmGroup.at('v1alpha1'), { namespace: namespaces?.[0], limit: 1, signal }),
            signal,
          ),
        ]),
  ];
}

/** Any answer of the webhook, also a rejection, shows that the API server reaches it. */
async function call(what: string, request: Promise<unknown>, signal: AbortSignal): Promise<CheckResult> {
  const name = `webhook ${what}`;
  try {
    await request;
  } catch (error) {
    signal.throwIfAborted();
    const message = messageOf(error);
    if (/failed calling webhook|conversion webhook .* failed/.test(message))
      return failed(name, message, UNREACHABLE);
    if (!message.includes('denied the request'))
      return skipped(name, `the request was rejected before the webhook: ${message}`);
  }
  return passed(name, 'the API server reaches the operator');
}
