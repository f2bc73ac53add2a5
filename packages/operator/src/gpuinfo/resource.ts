import { defineKind, type ObjectOf, schema } from '@vmwright/runtime';
import { CATEGORY, message, NEW_STATUS, observedGeneration, time } from '../schema.ts';
import { placement } from './placement.ts';

const { array, boolean, conditions, integer, literals, map, object, optional, string } = schema;

/** Value of `suitableNodeName` and `suitableHostName` while no node is reserved. */
export const NONE_AVAILABLE = 'None available';

/** Maximum of `desAccTime`, more than 100 years. */
const MOST_HOURS = 1_000_000;

/** Maximum number of nodes in `status.candidates`. */
export const MAX_CANDIDATES = 50;

const spec = object(
  {
    desAccTime: integer({
      description:
        'Time in hours that the job needs. 0: the job needs no minimum time, and the reservation lasts until the job ends or the GPUInfo is deleted.',
      format: 'int64',
      rules: [
        { rule: 'self >= 0', message: 'desAccTime must be 0 or more hours' },
        { rule: `self <= ${MOST_HOURS}`, message: `desAccTime must be at most ${MOST_HOURS} hours` },
      ],
    }),
    gpuRequired: boolean({
      description:
        'Whether the job needs a GPU. true: only nodes with GPUs are suitable. false (default): only nodes without GPUs are suitable, which keeps jobs that need no GPU off GPU hosts.',
      default: false,
    }),
    gpuCount: optional(
      integer({
        description:
          'Number of GPUs that the job needs, all on one node. Allowed only if gpuRequired is true. 1 by default.',
        format: 'int32',
        rules: [{ rule: 'self >= 1 && self <= 1024', message: 'gpuCount must be a number from 1 to 1024' }],
      }),
    ),
    gpuModel: optional(
      string({
        description:
          'Model of the GPUs, such as NVIDIA-A100-SXM4-40GB. `*` matches any characters, as in *A100*. Upper and lower case are the same. Allowed only if gpuRequired is true. Any model by default.',
        minLength: 1,
        maxLength: 253,
      }),
    ),
    nodeSelector: optional(
      map(string({ maxLength: 63 }), {
        description: 'Labels that a node must have to be suitable. By default, none: all nodes match.',
        maxProperties: 64,
      }),
    ),
    policy: optional(
      literals(['LeastCpu', 'LeastMemory', 'Pack', 'Spread'], {
        description:
          'How to choose among suitable nodes. LeastCpu (default): the node with the lowest CPU demand. LeastMemory: the node with the least memory in use. Pack: the node with the fewest free GPUs; for a job without GPUs, the node with the most reservations. Spread: the node with the most free GPUs; for a job without GPUs, the node with the fewest reservations. Ties are broken by CPU demand, then name.',
      }),
    ),
  },
  {
    description: 'What the job needs.',
    rules: [
      {
        rule: '!has(self.gpuCount) || self.gpuRequired',
        message: 'gpuCount needs gpuRequired: true',
        fieldPath: '.gpuCount',
      },
      {
        rule: '!has(self.gpuModel) || self.gpuRequired',
        message: 'gpuModel needs gpuRequired: true',
        fieldPath: '.gpuModel',
      },
    ],
  },
);

const status = object(
  {
    observedGeneration,
    phase: optional(
      literals(['Reserved', 'Pending', 'Ended'], {
        description:
          'Reserved: the node in suitableNodeName is reserved. Pending: no node is reserved, because none is suitable or the object is paused. Ended: the reservation has ended, because desAccTime has passed or the job has ended; the operator makes another reservation when the spec changes.',
      }),
    ),
    suitableNodeName: optional(
      string({ description: `Name of the reserved node; "${NONE_AVAILABLE}" if there is none.` }),
    ),
    suitableHostName: optional(
      string({
        description: `Name of the ESXi host of the reserved node; the name of the node if it is not on vSphere; "${NONE_AVAILABLE}" if no node is reserved.`,
      }),
    ),
    nodeMemoryUsage: optional(
      integer({
        description:
          'Memory that the node used when it was chosen, in MB (1 MB is 1,048,576 bytes). If the node is not on vSphere, this is the sum of the memory requests of its pods.',
        format: 'int64',
      }),
    ),
    nodeCPUUsage: optional(
      integer({
        description:
          'CPU demand of the node in MHz when it was chosen. If the node is not on vSphere, this is the sum of the CPU requests of its pods, in millicores.',
        format: 'int64',
      }),
    ),
    availableAcceleratorTime: optional(
      integer({
        description:
          'Time in hours from the reservation to the next maintenance of the node or its host. If no maintenance is known, this is the setting --gpu-horizon of the operator, in hours. The value does not decrease as time passes. availableUntil has the absolute time.',
        format: 'int64',
      }),
    ),
    availableUntil: time(
      'Time when the next maintenance of the node or its host begins. Not set if this time is not known.',
    ),
    reservedUntil: time('Time when the reservation ends. Not set if desAccTime is 0.'),
    decidedBy: optional(
      string({
        description:
          'Source of availableAcceleratorTime, such as "annotation vmwright.dev/maintenance-start".',
      }),
    ),
    message,
    summary: optional(
      string({
        description:
          'Number of suitable nodes, and of other nodes by cause, such as "3 nodes: 2 suitable, 1 without GPU". In the phase Pending, this is the state at the last evaluation; in the phase Reserved, the state at the time of the reservation.',
      }),
    ),
    candidates: optional(
      array(
        object({
          node: string({ description: 'Name of the node.' }),
          host: string({
            description: 'Name of the ESXi host of the node; the name of the node if it is not on vSphere.',
          }),
          suitable: boolean({ description: 'Whether the node meets the request.' }),
          reason: optional(string({ description: 'Why the node was rejected, in one word.' })),
          message: optional(string({ description: 'Why the node was rejected, in a sentence.' })),
          availableHours: optional(
            integer({
              description:
                'Hours from the evaluation to the next maintenance of the node, or --gpu-horizon in hours if no maintenance is known. Set only for a suitable node.',
              format: 'int64',
            }),
          ),
        }),
        {
          description: `The first ${MAX_CANDIDATES} nodes: first the suitable ones by name, then the others by name.`,
          maxItems: MAX_CANDIDATES,
        },
      ),
    ),
    fitsIfShortenedTo: optional(
      integer({
        description: 'Largest desAccTime in hours for which a node was suitable at the last evaluation.',
        format: 'int64',
      }),
    ),
    fitsFrom: time(
      'Earliest time from which a node is expected to be suitable, after maintenance or the end of other reservations.',
    ),
    placement: optional(placement),
    conditions: optional(
      conditions(
        'Ready: a node is reserved. Degraded: the reserved node is no longer suitable, and the reservation stays because its job runs or the GPUInfo is paused. FactsComplete: False if information about nodes is missing; the message names the source. Simulated: GPUs and maintenance are simulated with random values (--gpu-source=simulated). Reconciling, Stalled: as kstatus defines them. Paused: the operator makes no new reservation.',
      ),
    ),
  },
  { description: 'Result of the request, written by the operator.', default: NEW_STATUS },
);

/** A request for a node that is available to a long-running job for long enough. */
export const GPUInfo = defineKind({
  group: 'topology.corinternal.com',
  version: 'v1',
  kind: 'GPUInfo',
  plural: 'gpuinfoes',
  singular: 'gpuinfo',
  shortNames: ['gpu'],
  categories: [CATEGORY],
  description:
    'GPUInfo asks for the most suitable node for a long-running job. The operator reserves the node and its GPUs, and reports them in the status.',
  spec,
  status,
  columns: [
    { name: 'Desired Access Time (Hrs)', type: 'integer', jsonPath: '.spec.desAccTime' },
    { name: 'GPU Required', type: 'boolean', jsonPath: '.spec.gpuRequired' },
    { name: 'Node', type: 'string', jsonPath: '.status.suitableNodeName' },
    { name: 'Host', type: 'string', jsonPath: '.status.suitableHostName' },
    {
      name: 'Available',
      type: 'integer',
      jsonPath: '.status.availableAcceleratorTime',
      description: 'Hours from the reservation to the next maintenance of the node.',
    },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', priority: 1 },
    { name: 'Reserved Until', type: 'string', jsonPath: '.status.reservedUntil', priority: 1 },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', priority: 1 },
  ],
});
export type GPUInfo = ObjectOf<typeof GPUInfo>;
export type GPUInfoStatus = NonNullable<GPUInfo['status']>;
