import { CONTROLLERS, settingRows } from '@vmwright/operator';

/** JSON schema of a value of the chart. */
type Schema = Readonly<Record<string, unknown>>;

const FLAG: Schema = { type: 'boolean' };
const NAME: Schema = { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 };
const OBJECT_NAME: Schema = { type: 'string', pattern: '^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$', maxLength: 253 };
const TEXTS: Schema = { type: 'object', additionalProperties: { type: 'string' } };
const ANY: Schema = { type: 'object' };
/** List of named variables, volumes or mounts, which the chart adds to the pod unchanged. */
const NAMED: Schema = {
  type: 'array',
  items: { type: 'object', required: ['name'], properties: { name: { type: 'string', minLength: 1 } } },
};
const REPLICAS: Schema = { type: 'integer', minimum: 0, maximum: 10 };
const QUANTITIES: Schema = {
  type: 'object',
  additionalProperties: { type: ['string', 'number'], pattern: '^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi)?$' },
};
const RESOURCES = object({ requests: QUANTITIES, limits: QUANTITIES });

/** Settings that `config` must not contain, because the chart derives them from other values or from Secrets. */
const RESERVED = new Set([
  'config',
  'namespace',
  'namespaces',
  'controllers',
  'webhook-port',
  'status-address',
  'webhook-cert-dir',
  'cloud-api-key-file',
  'vc-credentials',
]);

/**
 * Returns the schema of the chart's values. It rejects unknown values, and settings that the operator does not have.
 */
export function valuesSchema(): string {
  const settings = settingRows().flatMap(({ flag, description }) =>
    flag === undefined || RESERVED.has(flag) ? [] : [[flag, setting(description)] as const],
  );
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the vmwright chart',
    // Rejects `controllers: null`, which removes the default. The chart would then exclude all controllers.
    required: ['controllers'],
    ...object({
      global: { type: 'object', description: 'Values of a parent chart, which this chart ignores.' },
      image: object({
        repository: { type: 'string', pattern: '^[^\\s@]+$', description: 'Name of the image without tag.' },
        tag: { type: 'string', description: "Default: the chart's appVersion." },
        digest: {
          type: 'string',
          pattern: '^(sha256:[0-9a-f]{64})?$',
          description: 'Used instead of the tag.',
        },
        pullPolicy: { type: 'string', enum: ['', 'Always', 'IfNotPresent', 'Never'] },
      }),
      imagePullSecrets: { type: 'array', items: { ...object({ name: OBJECT_NAME }), required: ['name'] } },
      replicas: REPLICAS,
      controllers: {
        type: 'array',
        minItems: 1,
        uniqueItems: true,
        items: { type: 'string', enum: CONTROLLERS },
      },
      watchNamespaces: { type: 'array', uniqueItems: true, items: NAME },
      config: object(Object.fromEntries(settings)),
      secrets: object({ cloud: OBJECT_NAME, vcenter: OBJECT_NAME }),
      extraArgs: { type: 'array', items: { type: 'string', pattern: '^--' } },
      extraEnv: NAMED,
      extraVolumes: NAMED,
      extraVolumeMounts: NAMED,
      crds: object({ enabled: FLAG, keep: FLAG }),
      userRoles: object({ enabled: FLAG }),
      resources: RESOURCES,
      nodeSelector: TEXTS,
      tolerations: { type: 'array', items: ANY },
      affinity: ANY,
      priorityClassName: { type: 'string' },
      podLabels: TEXTS,
      podAnnotations: TEXTS,
      podDisruptionBudget: object({ enabled: FLAG }),
      networkPolicy: object({
        enabled: FLAG,
        apiServers: { type: 'array', items: { type: 'string', pattern: '^[0-9a-fA-F:.]+/[0-9]{1,3}$' } },
      }),
      certManager: object({
        enabled: FLAG,
        issuerRef: object({
          kind: { type: 'string', enum: ['Issuer', 'ClusterIssuer'] },
          name: { type: 'string', minLength: 1 },
          group: { type: 'string' },
        }),
      }),
      serviceMonitor: object({ enabled: FLAG, labels: TEXTS }),
      prometheusRule: object({ enabled: FLAG, labels: TEXTS }),
      dashboards: object({ enabled: FLAG, labels: TEXTS }),
      ssvirt: object({
        enabled: FLAG,
        namespace: NAME,
        image: { type: 'string', minLength: 1 },
        replicas: REPLICAS,
        sharding: FLAG,
        config: ANY,
        databaseSecret: OBJECT_NAME,
        resources: RESOURCES,
      }),
    }),
  };
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', additionalProperties: false, properties };
}

function setting(description: string): Schema {
  return { type: ['string', 'number', 'boolean', 'array'], items: { type: 'string' }, description };
}
