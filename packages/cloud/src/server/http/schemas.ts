import { SERVER_STATES } from '../../api/server.ts';
import { WELL_FORMED } from './formats.ts';
import { PROBLEMS } from './problems.ts';

/**
 * JSON Schema, in the words that fastify's validator (draft 7) and OpenAPI 3.1 (draft 2020-12) have in common. What is
 * exported under a name is so named in the document.
 */
export interface Schema {
  readonly [keyword: string]: unknown;
}

const text = (description: string, more: Schema = {}): Schema => ({ type: 'string', description, ...more });

/*
 * Patterns use what ECMAScript, RE2 (Go), Java, .NET and Python have in common: no Unicode classes, look-around, named
 * groups or back references. Generated clients compile them.
 */

/** Excludes control characters, which would break lines in logs. */
const PRINTABLE = '[^\\x00-\\x1f\\x7f-\\x9f]';
const LABEL_KEY = '[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,126}[A-Za-z0-9])?';

export const Name = text('1 to 63 letters, digits, hyphens, underscores and dots', {
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
  description: 'Texts by name, for whoever has created the server; lists can be narrowed by them',
  maxProperties: 64,
  propertyNames: labelKey,
  additionalProperties: labelValue,
};

export const LabelSelector = text(
  '`key=value` for servers with that label, `key` for those with any value of it',
  {
    format: WELL_FORMED,
    pattern: `^${LABEL_KEY}(?:=${PRINTABLE}{0,255})?$`,
    examples: ['tier=gold', 'tier', 'vmwright.dev/uid=1'],
  },
);

export const ServerId = text('A UUID that the cloud has chosen', { format: 'uuid' });

const state: Schema = {
  type: 'string',
  enum: SERVER_STATES,
  description:
    'A server is built, then runs or has failed. One that is deleted is `deleting` until it is gone',
};
const cpuUtilization: Schema = {
  type: 'integer',
  minimum: 0,
  maximum: 100,
  description: 'Whole percent of what the machine has; 0 unless it runs',
};
const message = text('Why it has failed, or what stands in the way of its deletion');

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
      description: 'As a merge patch: null takes a label away',
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
    createdAt: text('When it was asked for', { format: 'date-time' }),
  },
};

export const ServerStatus: Schema = {
  type: 'object',
  required: ['state', 'cpuUtilization'],
  additionalProperties: false,
  properties: { state, cpuUtilization, message },
};

export const Cursor = text(
  'Start of the next page: the value of `next` of the page before. Any number of up to 15 digits is accepted; one that no page has given starts somewhere else',
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

/** @param routes the operations that can be made to fail */
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
        description: 'The same seed, the same faults',
      },
      latencyMs: {
        type: 'object',
        description: 'How long each request waits before anything is done',
        required: ['min', 'max'],
        additionalProperties: false,
        properties: { min: milliseconds, max: milliseconds },
      },
      errorRate: { ...probability, description: 'Of an answer with `errorStatus`, and no effect' },
      errorStatus: { enum: [429, 500, 503], default: 503 },
      loseBefore: { ...probability, description: 'Of a connection that breaks before the effect' },
      loseAnswersAfterEffect: { ...probability, description: 'Of one that breaks after it' },
      routes: {
        type: 'array',
        items: { enum: routes },
        description: 'Operations to which this happens; all but those without a key unless given',
      },
    },
  };
}

export const FaultReport: Schema = {
  type: 'object',
  required: ['settings', 'requests', 'delayed', 'refused', 'lostBefore', 'lostAfter'],
  additionalProperties: false,
  properties: {
    settings: { description: 'As they were set; null when there are none' },
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
  description: 'Problem details (RFC 9457). `code` says the same as `type`, for programs',
  required: ['type', 'title', 'status', 'detail', 'instance', 'code'],
  additionalProperties: false,
  properties: {
    type: { type: 'string', pattern: '^urn:vmwright:cloud:' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: text('What is wrong here, and what to do'),
    instance: text('The request; it is in the log under this id', { pattern: '^urn:uuid:' }),
    code: { enum: Object.keys(PROBLEMS) },
    serverId: text('Of the server that it is about', { format: 'uuid' }),
  },
};
