import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { manifestYaml } from '@vmwright/runtime';
import { indent } from './kustomize.ts';
import type { GeneratedFiles } from './parts.ts';

const ALERTS = 'config/prometheus/alerts.yaml';
const DASHBOARDS = 'config/grafana/*.json';

/**
 * Returns the files that wrap the alert rules and dashboards for the Prometheus operator and Grafana. Also returns
 * copies of the rules and dashboards for the chart, because Helm reads no file outside of the chart.
 */
export async function monitoringFiles(root: string): Promise<GeneratedFiles> {
  const rules = readFileSync(`${root}${ALERTS}`, 'utf8');
  const dashboards = globSync(DASHBOARDS, { cwd: root }).toSorted();
  const rule = await manifestYaml([
    {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'PrometheusRule',
      metadata: { name: 'vmwright', namespace: 'vmwright-system' },
    },
  ]);
  const generator = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    namespace: 'vmwright-system',
    generatorOptions: { disableNameSuffixHash: true, labels: { grafana_dashboard: '1' } },
    configMapGenerator: [{ name: 'vmwright-dashboards', files: dashboards.map((path) => basename(path)) }],
    labels: [{ pairs: { 'app.kubernetes.io/name': 'vmwright' } }],
  };
  return new Map([
    ['config/prometheus/prometheus-rule.yaml', `${rule}spec:\n${indent(rules, 2)}`],
    ['config/grafana/kustomization.yaml', await manifestYaml([generator])],
    ['charts/vmwright/files/alerts.yaml', rules],
    ...dashboards.map(
      (path) =>
        [
          `charts/vmwright/files/dashboards/${basename(path)}`,
          readFileSync(`${root}${path}`, 'utf8'),
        ] as const,
    ),
  ]);
}
