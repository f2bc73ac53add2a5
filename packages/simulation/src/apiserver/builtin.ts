import { Event, foreignKind, type KubeObject, Lease, schema } from '@vmwright/runtime';
import type { FieldError } from './errors.ts';
import { isEmpty, isJson, type Json } from './json.ts';
import { rejected } from './metadata-rules.ts';
import type { Draft } from './object.ts';
import type { ResourceRules } from './resource.ts';

/*
 * Built-in kinds that controllers use. The real API server decodes them into structs, where an empty map or string
 * equals a missing one.
 */

const { object, optional, map, string, integer, boolean, anything } = schema;

const kindOf = (group: string, kind: string, plural: string) =>
  foreignKind<KubeObject>({ group, version: 'v1', kind, plural, scope: 'Namespaced' });

const DATA_KEY = /^[-._a-zA-Z0-9]+$/;
const DATA_KEY_RULE =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

function dataProblems({ data }: Json): FieldError[] {
  return Object.keys(isJson(data) ? data : {}).flatMap((key) =>
    DATA_KEY.test(key) ? [] : [rejected(`data[${key}]`, key, DATA_KEY_RULE)],
  );
}

const ConfigMap: ResourceRules = {
  kind: kindOf('', 'ConfigMap', 'configmaps'),
  schema: object({
    data: optional(map(string())),
    binaryData: optional(map(string())),
    immutable: optional(boolean()),
  }),
  custom: false,
  status: false,
  canonical: withoutEmptyMaps,
  check: dataProblems,
};

const Secret: ResourceRules = {
  kind: kindOf('', 'Secret', 'secrets'),
  schema: object({
    data: optional(map(string())),
    stringData: optional(map(string())),
    type: optional(string()),
    immutable: optional(boolean()),
  }),
  custom: false,
  status: false,
  canonical: ({ stringData, ...secret }) => {
    const { data, type } = secret;
    const encoded: Record<string, unknown> = { ...(isJson(data) ? data : {}) };
    for (const [key, value] of Object.entries(isJson(stringData) ? stringData : {}))
      encoded[key] = Buffer.from(String(value)).toString('base64');
    return withoutEmptyMaps({ ...secret, data: encoded, type: type ?? 'Opaque' });
  },
  check: dataProblems,
};

const LeaseRules: ResourceRules = {
  kind: Lease,
  schema: object({
    spec: optional(
      object({
        holderIdentity: optional(string()),
        leaseDurationSeconds: optional(integer()),
        acquireTime: optional(string()),
        renewTime: optional(string()),
        leaseTransitions: optional(integer()),
        preferredHolder: optional(string()),
        strategy: optional(string()),
      }),
    ),
  }),
  custom: false,
  status: false,
  empty: { spec: {} },
  canonical: (lease) => ({ ...lease, spec: lease.spec ?? {} }),
  check: leaseProblems,
};

function leaseProblems({ spec }: Json): FieldError[] {
  const { leaseDurationSeconds: seconds, leaseTransitions: transitions } = isJson(spec) ? spec : {};
  const problems: FieldError[] = [];
  if (typeof seconds === 'number' && seconds <= 0)
    problems.push(rejected('spec.leaseDurationSeconds', seconds, 'must be greater than 0'));
  if (typeof transitions === 'number' && transitions < 0)
    problems.push(rejected('spec.leaseTransitions', transitions, 'must be greater than or equal to 0'));
  return problems;
}

/** Events are stored as sent, without the real server's validation. */
const EventRules: ResourceRules = {
  kind: Event,
  schema: object({
    eventTime: string(),
    reportingController: string(),
    reportingInstance: string(),
    action: string(),
    reason: string(),
    type: string(),
    note: optional(string()),
    regarding: anything(),
    series: optional(anything()),
  }),
  custom: false,
  status: false,
};

export const BUILTIN: readonly ResourceRules[] = [ConfigMap, Secret, LeaseRules, EventRules];

function withoutEmptyMaps(object: Draft): Draft {
  const { data, binaryData, ...rest } = object;
  return {
    ...rest,
    ...(isJson(data) && !isEmpty(data) && { data }),
    ...(isJson(binaryData) && !isEmpty(binaryData) && { binaryData }),
  };
}
