import type { KubeObject } from '@vmwright/runtime';
import { NAME } from './declarations.ts';

export interface NetworkPolicy extends KubeObject {
  readonly spec: object;
}

const WEBHOOK_PORT = 9443;
const METRICS_PORT = 8443;

/**
 * Returns the network policy of the operator's pods. API servers reach the webhooks, and namespaces with the label
 * `metrics: enabled` reach the metrics. Nothing else is admitted. Probes need no rule: they come from the node of the
 * pod, which network policies always admit.
 * @param apiServers address ranges (CIDR) from which the API servers call webhooks; empty: any address
 */
export function networkPolicy(namespace: string, apiServers: readonly string[]): NetworkPolicy {
  const tcp = (port: number) => [{ protocol: 'TCP', port }];
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: NAME, namespace },
    spec: {
      podSelector: { matchLabels: { 'app.kubernetes.io/name': NAME } },
      policyTypes: ['Ingress'],
      ingress: [
        {
          // Without `from`, the rule admits all sources.
          ...(apiServers.length > 0 && { from: apiServers.map((cidr) => ({ ipBlock: { cidr } })) }),
          ports: tcp(WEBHOOK_PORT),
        },
        { from: [{ namespaceSelector: { matchLabels: { metrics: 'enabled' } } }], ports: tcp(METRICS_PORT) },
      ],
    },
  };
}
