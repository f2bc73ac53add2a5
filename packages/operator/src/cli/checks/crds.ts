import { type Client, CustomResourceDefinition, resourceOf } from '@vmwright/runtime';
import { manifests } from '../../manifests.ts';
import { REQUIRED_KINDS, unservedKinds } from '../../served-kinds.ts';
import { CONTROLLERS, type ControllerName } from '../../settings/controllers.ts';
import type { Settings } from '../../settings/settings.ts';
import { APPLY, checkInstalled } from './installed-object.ts';
import { type CheckResult, failed, passed, skipped } from './result.ts';

const INSTALL = `apply the CRDs of this version: ${APPLY}`;

/**
 * Checks that the CRDs of the checked controllers are served, and that vmwright's own CRDs match this
 * program.
 * @param checked from `checkedControllers`
 */
export async function checkCrds(
  client: Client,
  settings: Settings,
  checked: ReadonlySet<ControllerName>,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  const { crds } = manifests({ namespace: settings.namespace });
  const results: CheckResult[] = [];
  let canRun = false;
  for (const controller of CONTROLLERS) {
    const off = settings.disabled.find(({ name }) => name === controller);
    if (off !== undefined) {
      results.push(skipped(`controller ${controller}`, `off: ${off.why}; ${off.remedy}`));
      continue;
    }
    if (!checked.has(controller)) {
      results.push(skipped(`controller ${controller}`, `off: its CRDs are not installed; ${INSTALL}`));
      continue;
    }
    const kinds = REQUIRED_KINDS[controller];
    const unserved = new Set((await unservedKinds(client, kinds, signal)).map(resourceOf));
    canRun ||= unserved.size === 0;
    for (const resource of kinds.map(resourceOf)) {
      const own = crds.find(({ metadata }) => metadata.name === resource);
      if (unserved.has(resource))
        results.push(missing(resource, own !== undefined, settings.named.has(controller)));
      else if (own === undefined) results.push(passed(`crd ${resource}`, 'served'));
      else results.push(...(await compare(client, resource, own, signal)));
    }
  }
  if (!canRun)
    results.push(
      failed(
        'controllers',
        'no controller can run',
        'follow one of the remedies above, then restart the operator',
      ),
    );
  return results;
}

function missing(resource: string, isOwn: boolean, isNamed: boolean): CheckResult {
  const name = `crd ${resource}`;
  if (isOwn) return failed(name, 'not installed', INSTALL);
  const remedy =
    'install the project that provides it, or switch the controller off with --controllers=-kubevirt';
  return isNamed
    ? failed(name, 'not installed', remedy)
    : skipped(name, `not installed, so the controller is off; ${remedy}`);
}

function compare(
  client: Client,
  resource: string,
  own: object,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  const name = `crd ${resource}`;
  const versions = 'spec' in own ? versionsOf(own.spec) : [];
  return checkInstalled(
    { client, kind: CustomResourceDefinition, name: resource, signal },
    ({ spec }) => [
      contains(spec.versions, versions)
        ? passed(name, 'matches this version of vmwright')
        : failed(name, 'differs from this version of vmwright', INSTALL),
    ],
    {
      missing: [failed(name, 'not installed', INSTALL)],
      unreadable: skipped(name, 'served; no permission to read its version'),
    },
  );
}

function versionsOf(spec: unknown): unknown {
  return typeof spec === 'object' && spec !== null && 'versions' in spec ? spec.versions : [];
}

/**
 * Whether `actual` has all fields of `wanted`. Other fields are ignored, because the API server adds some, such as
 * defaults.
 */
export function contains(actual: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return actual === wanted;
  if (typeof actual !== 'object' || actual === null) return false;
  if (Array.isArray(wanted))
    return (
      Array.isArray(actual) &&
      actual.length === wanted.length &&
      wanted.every((each, index) => contains(actual[index], each))
    );
  const fields = new Map<string, unknown>(Object.entries(actual));
  return Object.entries(wanted).every(
    ([name, each]) => each === undefined || contains(fields.get(name), each),
  );
}
