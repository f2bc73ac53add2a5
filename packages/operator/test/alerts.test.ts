import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { declaredMetrics } from '@vmwright/operator';
import { Assets } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { page, ROOT } from './doc-commands.ts';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

const PROGRAMS = [
  { folder: 'config/prometheus/', runbook: 'runbook.md', prefix: 'Vmwright' },
  { folder: 'config/ssvirt/prometheus/', runbook: 'mirror-runbook.md', prefix: 'Ssvirt' },
];

const DASHBOARDS = globSync(['config/grafana/*.json', 'config/ssvirt/grafana/*.json'], { cwd: ROOT });

const declared = new Set(declaredMetrics().flatMap(({ metrics }) => metrics.map(({ name }) => name)));
const histograms = declaredMetrics().flatMap(({ metrics }) =>
  metrics.filter(({ type }) => type === 'histogram'),
);
for (const { name } of histograms)
  for (const suffix of ['bucket', 'sum', 'count']) declared.add(`${name}_${suffix}`);

function read(path: string): string {
  return readFileSync(`${ROOT}${path}`, 'utf8');
}

async function promtool(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(await new Assets().path('promtool'), args);
  return stdout;
}

describe.each(PROGRAMS)('the alert rules in $folder', ({ folder, runbook, prefix }) => {
  const alerts: readonly Alert[] = parse(read(`${folder}alerts.yaml`)).groups.flatMap(
    ({ rules }: { readonly rules: readonly Alert[] }) => rules,
  );

  test('the alert rules are accepted by promtool', async () => {
    const checked = await promtool('check', 'rules', `${ROOT}${folder}alerts.yaml`);
    expect(checked).toContain(`SUCCESS: ${alerts.length} rules found`);
  });

  test('the alert rules pass their unit tests', async () => {
    expect(await promtool('test', 'rules', `${ROOT}${folder}alerts.test.yaml`)).toContain('SUCCESS');
  });

  test('each alert fires in at least one unit test', () => {
    const { tests } = parse(read(`${folder}alerts.test.yaml`));
    const expectations: readonly { readonly alertname: string; readonly exp_alerts?: readonly object[] }[] =
      tests.flatMap(
        ({ alert_rule_test }: { readonly alert_rule_test: readonly object[] }) => alert_rule_test,
      );
    const firing = expectations.filter(({ exp_alerts = [] }) => exp_alerts.length > 0);
    expect(new Set(firing.map(({ alertname }) => alertname))).toEqual(
      new Set(alerts.map(({ alert }) => alert)),
    );
  });

  const headings = [...page(runbook).matchAll(/^## (\w+)$/gm)].map(([, heading]) => heading);

  test.each(alerts)(
    '$alert has a duration, a severity, texts and a section in the runbook',
    ({ alert, for: duration, labels, annotations }) => {
      expect(duration).toMatch(/^\d+m$/);
      expect(labels?.severity).toMatch(/^(critical|warning|info)$/);
      expect(annotations?.summary).toBeTruthy();
      expect(annotations?.description).toBeTruthy();
      expect(annotations?.runbook_url).toBe(`docs/${runbook}#${alert.toLowerCase()}`);
      expect(headings).toContain(alert);
    },
  );

  test('the runbook describes exactly the alerts of the rules', () => {
    expect(headings.filter((heading) => heading?.startsWith(prefix)).sort()).toEqual(
      alerts.map(({ alert }) => alert).sort(),
    );
  });

  test.each(alerts)('$alert uses only metrics that a program declares', ({ expr }) => {
    expect(undeclared(expr)).toEqual([]);
  });
});

test('every controller and the mirror have a dashboard', () => {
  const names = ['gpuinfo', 'kubevirt', 'runtime', 'vm', 'vmgroup'].map(
    (name) => `config/grafana/${name}.json`,
  );
  expect(DASHBOARDS.toSorted()).toEqual([...names, 'config/ssvirt/grafana/dashboard.json']);
  const uids = DASHBOARDS.map((path) => JSON.parse(read(path)).uid);
  expect(new Set(uids).size).toBe(DASHBOARDS.length);
});

describe.each(DASHBOARDS)('the dashboard %s', (path) => {
  const dashboard = JSON.parse(read(path));
  const panels: readonly Panel[] = dashboard.panels;

  test.each(panels.filter(({ type }) => type !== 'row'))(
    'the panel "$title" uses only metrics that a program declares',
    ({ targets = [] }) => {
      expect(targets.flatMap(({ expr }) => metricsIn(expr))).not.toEqual([]);
      expect(targets.flatMap(({ expr }) => undeclared(expr))).toEqual([]);
    },
  );

  test('the variables of the dashboard use only metrics that a program declares', () => {
    const variables: readonly { readonly definition?: string }[] = dashboard.templating.list;
    const used = variables.flatMap(
      ({ definition = '' }) => /label_values\((\w+),/.exec(definition)?.[1] ?? [],
    );
    expect(used).not.toEqual([]);
    expect(used.filter((name) => !declared.has(name))).toEqual([]);
  });
});

test('docs/mirror.md documents every metric of the mirror', () => {
  const documented = new Set([...page('mirror.md').matchAll(/`(ssvirt_\w+)/g)].map(([, name]) => name));
  const own = declaredMetrics().flatMap(({ title, metrics }) => (title === 'Status mirror' ? metrics : []));
  expect(own.map(({ name }) => name).filter((name) => !documented.has(name))).toEqual([]);
});

test('metricsIn finds the metrics of an expression, but no functions, labels, durations or keywords', () => {
  const expr =
    'histogram_quantile(0.99, sum by (le) (rate(a_bucket{job=~"$job", x="y{z}"}[5m]))) > 5 unless on (job) (b_up == 0 or vector(0))';
  expect(metricsIn(expr)).toEqual(['a_bucket', 'b_up']);
});

/** Returns the metrics of a PromQL expression that no program declares. */
function undeclared(expr: string): readonly string[] {
  return metricsIn(expr).filter((name) => !declared.has(name));
}

/** Names of the metrics in a PromQL expression. */
function metricsIn(expr: string): readonly string[] {
  const selectors = expr
    .replace(/"[^"]*"/g, '""')
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replace(/\b(?:by|on|without|ignoring|group_left|group_right) *\([^)]*\)/g, '');
  const identifiers = [...selectors.matchAll(/(?<![\w.])[a-zA-Z_:][\w:]*(?! *\()\b/g)].map(([name]) => name);
  return identifiers.filter((name) => !/^(and|or|unless|by|on|bool|offset)$/.test(name));
}
