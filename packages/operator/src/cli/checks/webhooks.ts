import {
  type AdmissionWebhook,
  type Client,
  certificatesIn,
  type Kind,
  MutatingWebhookConfiguration,
  messageOf,
  nodeWorld,
  ValidatingWebhookConfiguration,
  type WebhookConfiguration,
} from '@vmwright/runtime';
import { NAME } from '../../declarations.ts';
import { manifests } from '../../manifests.ts';
import type { ControllerName } from '../../settings/controllers.ts';
import type { Settings } from '../../settings/settings.ts';
import { VM } from '../../vm/resource.ts';
import { VMDiskImage } from '../../vmdiskimage/resource.ts';
import { VmGroup } from '../../vmgroup/resource.ts';
import { APPLY, checkInstalled } from './installed-object.ts';
import { type CheckResult, failed, passed, skipped } from './result.ts';

const INSTALL = `apply the manifests of this version: ${APPLY}`;
const START =
  'start the operator, which sets the caBundle; if cert-manager injects the CA, check cert-manager';

/**
 * Checks that the webhooks of the controllers are installed, have a valid CA, and are reached by the API server.
 * @param controllers from `checkedControllers`
 */
export async function checkWebhooks(
  client: Client,
  settings: Settings,
  controllers: ReadonlySet<ControllerName>,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  const { webhooks: declared } = manifests({ namespace: settings.namespace, controllers });
  const results: CheckResult[] = [];
  const installed: AdmissionWebhook[] = [];
  for (const kind of [ValidatingWebhookConfiguration, MutatingWebhookConfiguration]) {
    const where = `the ${kind.kind} ${NAME}`;
    const names = declared.find((each) => each.kind === kind.kind)?.webhooks?.map(({ name }) => name) ?? [];
    const check = ({ webhooks = [] }: WebhookConfiguration) => {
      installed.push(...webhooks);
      return checkConfiguration(where, names, webhooks);
    };
    const checked = await checkInstalled({ client, kind, name: NAME, signal }, check, {
      missing: names.length === 0 ? [] : [failed('webhooks', `${where} does not exist`, INSTALL)],
      unreadable: skipped('webhooks', `no permission to read ${where}`),
    });
    results.push(...checked);
  }
  return [...results, ...(await reach(client, settings, controllers, installed, signal))];
}

/** Checks that a webhook configuration contains the declared webhooks, and that each webhook in it has a valid CA. */
function checkConfiguration(
  where: string,
  declared: readonly string[],
  webhooks: readonly AdmissionWebhook[],
): readonly CheckResult[] {
  const found = new Set(webhooks.map(({ name }) => name));
  return [
    ...declared
      .filter((name) => !found.has(name))
      .map((name) => failed(`webhook ${name}`, `is missing from ${where}`, INSTALL)),
    ...webhooks.map(({ name, clientConfig: { caBundle = '' } }) =>
      checkBundle(name, Buffer.from(caBundle, 'base64').toString(), nodeWorld.now()),
    ),
  ];
}

/** Checks that a CA bundle contains a certificate that has not expired. @param now milliseconds since 1970 */
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
        `CA expired on ${date}`,
        'restart the operator, which renews the CA; if cert-manager injects the CA, check cert-manager',
      );
}

const UNREACHABLE =
  'check that the operator runs, and that the API server can reach its Service or the URL in --webhook-url';

/** Name of the objects that are created as dry runs. The API server does not store them. */
const PROBE = 'vmwright-check';

/**
 * Checks that the API server reaches the installed webhooks of the controllers. For the admission webhooks, creates
 * objects as dry runs. For the conversion webhook, lists VmGroups in a version other than the storage version, so that
 * the API server has to convert them.
 */
async function reach(
  client: Client,
  { namespaces }: Pick<Settings, 'namespaces'>,
  controllers: ReadonlySet<ControllerName>,
  installed: readonly AdmissionWebhook[],
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  const metadata = { namespace: namespaces?.[0] ?? 'default', name: PROBE };
  const options = { dryRun: true, signal };
  const image = { secretRef: '', sourceType: 'blank', diskSize: '1Gi' } as const;
  const isAdmitted = ({ plural }: Kind) =>
    installed.some(({ rules = [] }) => rules.some(({ resources }) => resources.includes(plural)));
  const results: CheckResult[] = [];
  const probe = async (what: string, send: () => Promise<unknown>) =>
    void results.push(await call(what, send(), signal));
  if (controllers.has('vm') && isAdmitted(VM))
    await probe('of VM', () => client.create(VM, { metadata, spec: { vmname: PROBE } }, options));
  if (controllers.has('kubevirt') && isAdmitted(VMDiskImage))
    await probe('of VMDiskImage', () => client.create(VMDiskImage, { metadata, spec: image }, options));
  if (controllers.has('vmgroup')) results.push(await convert(client, namespaces?.[0], signal));
  return results;
}

/**
 * Checks the conversion webhook. Skipped if no VmGroup exists, because the API server does not convert an empty list.
 */
async function convert(
  client: Client,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<CheckResult> {
  const what = 'of VmGroup (conversion)';
  let isEmpty = false;
  const listing = client.list(VmGroup.at('v1alpha1'), { namespace, limit: 1, signal }).then(({ items }) => {
    isEmpty = items.length === 0;
  });
  const result = await call(what, listing, signal);
  return isEmpty
    ? skipped(`webhook ${what}`, 'no VmGroup exists, so the API server has nothing to convert')
    : result;
}

/** Checks that a request reaches its webhook. Any response of the webhook, even a rejection, proves this. */
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
      return skipped(name, `the request was rejected before it reached the webhook: ${message}`);
  }
  return passed(name, 'the API server reaches the operator');
}
