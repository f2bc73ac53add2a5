import { SERVER_STATES } from '../../api/server.ts';
import { WELL_FORMED } from './formats.ts';
import { PROBLEMS } from './problems.ts';

/**
 * JSON Schema, limited to the keywords that fastify's validator (draft 7) and OpenAPI 3.1 (draft 2020-12) share.
 * Exported schemas become components of the OpenAPI document under their export name.
 */
export interface Schema {
  readonly [keyword: string]: unknown;
}

const string = (description: string, more: Schema = {}): Schema => ({ type: 'string', description, ...more });

/*
 * Generated clients compile these patterns. So the patterns use only syntax that ECMAScript, RE2 (Go), Java, .NET and
 * Python share: no Unicode classes, look-around, named groups or back references.
 */

/** Excludes control characters, which would break lines in logs. */
const PRINTABLE = '[^\\x00-\\x1f\\x7f-\\x9f]';
const LABEL_KEY = '[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,126}[A-Za-z0-9])?';

export const Name = string('1 to 63 characters, each a letter, digit, hyphen, underscore or dot', {
  minLength: 1,
  maxLength: 63,
  pattern: '^[A-Za-z0-9._-]*$',
  examples: ['vmsample', 'web-1.eu', 'a', '_'],
});

const labelKey: Schema = {
  type: 'string',
  pattern: `^${LABEL_KEY}$`,
  examples: ['vmwright.dev/uid', 'a', 'tier'],
};
const labelValue: Schema = {
  type: 'string',
  maxLength: 255,
  format: WELL_FORMED,
  pattern: `^${PRINTABLE}*$`,
  examples: ['', 'gold', 'naïve = ☃'],
};

export const Labels: Schema = {
  type: 'object',
  description: 'Labels set by the client; servers can be listed by label',
  maxProperties: 64,
  propertyNames: labelKey,
  additionalProperties: labelValue,
};

export const LabelSelector = string(
  '`key=value` selects servers with that label, `key` selects servers with any value of that label',
  {
    format: WELL_FORMED,
    pattern: `^${LABEL_KEY}(?:=${PRINTABLE}{0,255})?$`,
    examples: ['tier=gold', 'tier', 'vmwright.dev/uid=1'],
  },
);

export const ServerId = string('UUID assigned by the cloud', { format: 'uuid' });

const state: Schema = {
  type: 'string',
  enum: SERVER_STATES,
  description:
    'A server is `building`, then `running` or `failed`. After a delete it is `deleting` until its machine is removed',
};
const cpuUtilization: Schema = {
  type: 'integer',
  minimum: 0,
  maximum: 100,
  description: 'CPU utilization as an integer percentage; 0 unless the server is running',
};
const message = string('Why the server failed, or why its deletion is delayed');

export const NewServer: Schema = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: { name: Name, labels: Labels },
};

export const Relabelling: Schema = {
  type: 'object',
  required: ['labels'],
  additionalProperties: false,
  properties: {
    labels: {
      type: 'object',
      description: 'JSON merge patch: null removes a label',
      maxProperties: 64,
      propertyNames: labelKey,
      additionalProperties: { ...labelValue, type: ['string', 'null'] },
    },
  },
};

export const Server: Schema = {
  type: 'object',
  required: ['id', 'name', 'labels', 'state', 'cpuUtilization', 'createdAt'],
  additionalProperties: false,
  properties: {
    id: ServerId,
    name: Name,
    labels: Labels,
    state,
    message,
    cpuUtilization,
    createdAt: string('Time of the create request', { format: 'date-time' }),
  },
};

export const ServerStatus: Schema = {
  type: 'object',
  required: ['state', 'cpuUtilization'],
  additionalProperties: false,
  properties: { state, cpuUtilization, message },
};

export const Cursor = string(
  'Start of the page: the value of `next` of the previous page. Any number of up to 15 digits is accepted, but only values of `next` continue a list',
  { pattern: '^[0-9]{1,15}$', examples: ['10', '0', '999999999999999'] },
);

export const ServerPage: Schema = {
  type: 'object',
  required: ['items'],
  additionalProperties: false,
  properties: { items: { type: 'array', items: Server }, next: Cursor },
};

export const Availability: Schema = {
  type: 'object',
  required: ['name', 'available'],
  additionalProperties: false,
  properties: { name: Name, available: { const: true } },
};

export const Health: Schema = {
  type: 'object',
  required: ['status'],
  additionalProperties: false,
  properties: { status: { const: 'ok' } },
};

const probability: Schema = { type: 'number', minimum: 0, maximum: 1, examples: [0] };
const milliseconds: Schema = { type: 'number', minimum: 0, maximum: 60_000, examples: [0, 1] };

/** @param routes ids of the operations that faults can be injected into */
export function faultSettings(routes: readonly string[]): Schema {
  return {
    type: 'object',
    required: ['seed'],
    additionalProperties: false,
    properties: {
      seed: {
        type: 'integer',
        minimum: 0,
        maximum: 2 ** 32 - 1,
        description: 'Seed of the random decisions: the same seed injects the same faults',
      },
      latencyMs: {
        type: 'object',
        description: 'Range of the random delay before each request is handled',
        required: ['min', 'max'],
        additionalProperties: false,
        properties: { min: milliseconds, max: milliseconds },
      },
      errorRate: {
        ...probability,
        description: 'Probability that the request is answered with `errorStatus` instead of being executed',
      },
      errorStatus: { enum: [429, 500, 503], default: 503 },
      loseBefore: {
        ...probability,
        description: 'Probability that the connection closes before the request is executed',
      },
      loseAnswersAfterEffect: {
        ...probability,
        description:
          'Probability that the request is executed but the connection closes before the response is sent',
      },
      routes: {
        type: 'array',
        items: { enum: routes },
        description: 'Ids of the affected operations. Default: all operations on servers and names',
      },
    },
  };
}

export const FaultReport: Schema = {
  type: 'object',
  required: ['settings', 'requests', 'delayed', 'refused', 'lostBefore', 'lostAfter'],
  additionalProperties: false,
  properties: {
    settings: { description: 'Current settings; null if fault injection is disabled' },
    ...Object.fromEntries(
      ['requests', 'delayed', 'refused', 'lostBefore', 'lostAfter'].map((count) => [
        count,
        { type: 'integer', minimum: 0 },
      ]),
    ),
  },
};

export const Problem: Schema = {
  type: 'object',
  description: 'Problem details (RFC 9457). `code` is a stable code with the same meaning as `type`',
  required: ['type', 'title', 'status', 'detail', 'instance', 'code'],
  additionalProperties: false,
  properties: {
    type: { type: 'string', pattern: '^urn:vmwright:cloud:' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: string('What is wrong with this request and what to do'),
    instance: string('Id of the request, which is also in the log', { pattern: '^urn:uuid:' }),
    code: { enum: Object.keys(PROBLEMS) },
    serverId: string('Id of the server that the problem refers to', { format: 'uuid' }),
  },
};
