import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { Assets } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { page, ROOT } from './doc-commands.ts';

const FOLDER = `${ROOT}config/ssvirt/`;
const RULES = `${FOLDER}prometheus/alerts.yaml`;

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

const alerts: readonly Alert[] = parse(readFileSync(RULES, 'utf8')).groups.flatMap(
  ({ rules }: { readonly rules: readonly Alert[] }) => rules,
);
const panels: readonly Panel[] = JSON.parse(readFileSync(`${FOLDER}grafana/dashboard.json`, 'utf8')).panels;

async function promtool(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(await new Assets().path('promtool'), args);
  return stdout;
}

test('promtool accepts the alert rules', async () => {
  expect(await promtool('check', 'rules', RULES)).toContain(`SUCCESS: ${alerts.length} rules found`);
});

test('the alert rules pass their unit tests', async () => {
  expect(await promtool('test', 'rules', `${FOLDER}prometheus/alerts.test.yaml`)).toContain('SUCCESS');
});

test('every alert has a unit test in which it fires', () => {
  const { tests } = parse(readFileSync(`${FOLDER}prometheus/alerts.test.yaml`, 'utf8'));
  const expectations: readonly { readonly alertname: string; readonly exp_alerts?: readonly object[] }[] =
    tests.flatMap(({ alert_rule_test }: { readonly alert_rule_test: readonly object[] }) => alert_rule_test);
  const firing = expectations.filter(({ exp_alerts = [] }) => exp_alerts.length > 0);
  expect(new Set(firing.map(({ alertname }) => alertname))).toEqual(
    new Set(alerts.map(({ alert }) => alert)),
  );
});

describe('every alert has a duration, a severity, texts and a section in the runbook', () => {
  const headings = [...page('mirror-runbook.md').matchAll(/^## (\w+)$/gm)].map(([, heading]) => heading);

  test.each(alerts)('$alert', ({ alert, for: duration, labels, annotations }) => {
    expect(duration).toMatch(/^\d+m$/);
    expect(labels?.severity).toMatch(/^(critical|warning|info)$/);
    expect(annotations?.summary).toBeTruthy();
    expect(annotations?.description).toBeTruthy();
    expect(annotations?.runbook_url).toBe(`docs/mirror-runbook.md#${alert.toLowerCase()}`);
    expect(headings).toContain(alert);
  });

  test('and the runbook has no other alerts', () => {
    expect(headings.filter((heading) => heading?.startsWith('Ssvirt')).sort()).toEqual(
      alerts.map(({ alert }) => alert).sort(),
    );
  });
});

describe('the program declares every metric that is used', () => {
  const declared = declaredMetrics();

  test.each(alerts)('by the alert $alert', ({ expr }) => {
    expect(metricsIn(expr).filter((name) => !isDeclared(name))).toEqual([]);
  });

  test.each(panels.filter(({ type }) => type !== 'row'))('by the panel "$title"', ({ targets = [] }) => {
    const names = targets.flatMap(({ expr }) => metricsIn(expr));
    expect(names).not.toEqual([]);
    expect(names.filter((name) => !isDeclared(name))).toEqual([]);
  });

  test('and the other way round: the page of the mirror documents every metric of the mirror', () => {
    const documented = new Set([...page('mirror.md').matchAll(/`(ssvirt_\w+)/g)].map(([, name]) => name));
    const own = [...declared].filter((name) => name.startsWith('ssvirt_'));
    expect(own.filter((name) => !documented.has(name))).toEqual([]);
  });

  function isDeclared(name: string): boolean {
    return declared.has(name) || declared.has(name.replace(/_(bucket|sum|count)$/, ''));
  }
});

test('metricsIn finds the metrics of an expression, but no functions, labels, durations or keywords', () => {
  const expr =
    'histogram_quantile(0.99, sum by (le) (rate(a_bucket{job=~"$job", x="y{z}"}[5m]))) > 5 unless on (job) (b_up == 0 or vector(0))';
  expect(metricsIn(expr)).toEqual(['a_bucket', 'b_up']);
});

/** Names of the metrics in a PromQL expression. */
function metricsIn(expr: string): readonly string[] {
  const selectors = expr
    .replace(/"[^"]*"/g, '""')
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replace(/\b(?:by|on|without|ignoring|group_left|group_right) *\([^)]*\)/g, '');
  const identifiers = [...selectors.matchAll(/(?<![\w.])[a-zA-Z_:][\w:]*(?! *\()\b/g)].map(([name]) => name);
  return identifiers.filter((name) => !/^(and|or|unless|by|on|bool|offset)$/.test(name));
}

/** Names that the sources of the metrics contain. Series appear in the program's output only after their first value. */
function declaredMetrics(): ReadonlySet<string> {
  const sources = [
    'packages/operator/src/mirror/metrics.ts',
    'packages/runtime/src/metrics/families.ts',
    'packages/runtime/src/metrics/runtime-metrics.ts',
    'packages/core/src/metrics/process-metrics.ts',
  ];
  const text = sources.map((path) => readFileSync(`${ROOT}${path}`, 'utf8')).join('\n');
  return new Set([...text.matchAll(/'([a-z]+_[a-z_]+)'/g)].map(([, name = '']) => name));
}
