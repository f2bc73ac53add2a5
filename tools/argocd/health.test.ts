import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Assets, field, type KubeObject, temporaryFolder } from '@vmwright/testbed';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { kstatusOf } from '../../packages/operator/test/kstatus.ts';
import { checkedKinds, checkPath } from './checks.ts';

const CONFIG = fileURLToPath(new URL('../../config/argocd/', import.meta.url));
const RECORDED = fileURLToPath(new URL('testdata/', import.meta.url));

/** Result of a health check, as Argo CD reads it. */
interface Health {
  readonly status?: string;
  readonly message: string;
  readonly error?: string;
}

/** Health that Argo CD must show for an object, by the state in the name of the object's file in `testdata`. */
const EXPECTED: Readonly<Record<string, string>> = {
  new: 'Progressing',
  progressing: 'Progressing',
  healthy: 'Healthy',
  changed: 'Progressing',
  unknown: 'Progressing',
  degraded: 'Degraded',
  paused: 'Suspended',
  deleting: 'Progressing',
};

let program: string;
beforeAll(async () => {
  program = await new Assets().path('lua-health');
});

/** Runs a health check in the Lua interpreter of Argo CD. */
function healthOf(script: string, objects: readonly object[]): readonly Health[] {
  return JSON.parse(execFileSync(program, { input: JSON.stringify({ script, objects }), encoding: 'utf8' }));
}

describe.each(checkedKinds())('$kind', (checked) => {
  const script = readFileSync(join(CONFIG, checkPath(checked)), 'utf8');
  const states = globSync(`${checked.kind}/*.yaml`, { cwd: RECORDED }).map((path) => ({
    state: basename(path, '.yaml'),
    object: parse(readFileSync(join(RECORDED, path), 'utf8')),
  }));

  test('the folder testdata has an object of this kind for each required state', () => {
    const recorded = states.map(({ state }) => state);
    expect(recorded).toEqual(
      expect.arrayContaining(['new', 'progressing', 'healthy', 'degraded', 'paused', 'deleting']),
    );
    for (const { object } of states)
      expect(object).toMatchObject({
        apiVersion: expect.stringMatching(`^${checked.group}/`),
        kind: checked.kind,
      });
  });

  test.for(states)('an object in the state $state has the expected health', ({ state, object }) => {
    const [health] = healthOf(script, [object]);
    expect(health?.error).toBeUndefined();
    expect(health?.status).toBe(EXPECTED[state]);
    expect(health?.message).not.toBe('');
  });

  test('the health check shows the message of the condition that determines the health', () => {
    const messageOf = (state: string, type: string) => {
      const object = states.find((each) => each.state === state)?.object;
      const conditions = [field(object, 'status', 'conditions') ?? []].flat();
      const found = conditions.find((each) => field(each, 'type') === type);
      return { object, message: field(found, 'message') };
    };
    for (const [state, type] of [
      ['degraded', 'Stalled'],
      ['paused', 'Paused'],
      ['progressing', 'Reconciling'],
    ] as const) {
      const { object, message } = messageOf(state, type);
      expect(healthOf(script, [object])).toMatchObject([{ message }]);
    }
  });
});

test('the health agrees with kstatus for every combination of conditions', () => {
  const [first] = checkedKinds();
  if (first === undefined) throw new Error('there are no kinds');
  const script = readFileSync(join(CONFIG, checkPath(first)), 'utf8');
  const metadata = { name: 'a', uid: '1', resourceVersion: '1', generation: 2 };
  const objects: KubeObject[] = [];
  for (const observedGeneration of [-1, 1, 2])
    for (const ready of ['True', 'False', 'Unknown'])
      for (const others of [[], ['Reconciling'], ['Stalled'], ['Reconciling', 'Stalled']]) {
        const conditions = [
          { type: 'Ready', status: ready, reason: 'Reason', message: '' },
          ...others.map((type) => ({ type, status: 'True', reason: 'Reason', message: '' })),
        ];
        const status = { observedGeneration, conditions };
        objects.push({ apiVersion: 'example.org/v1', kind: 'Thing', metadata, status });
      }
  const equivalent = { InProgress: 'Progressing', Failed: 'Degraded', Current: 'Healthy', Terminating: '' };
  expect(healthOf(script, objects).map(({ status }) => status)).toEqual(
    objects.map((object) => equivalent[kstatusOf(object)]),
  );
});

test('a script fails if it uses a library that Argo CD does not load, or returns no table', () => {
  const [failed] = healthOf('return { status = string.upper("healthy") }', [{}]);
  expect(failed?.error).toContain('attempt to index a non-table object(nil)');
  expect(healthOf('return 1', [{}])).toMatchObject([{ error: 'the script returned no table' }]);
});

test('the kustomize component adds the checks to argocd-cm and keeps its other settings', async () => {
  const folder = await temporaryFolder('argocd');
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const metadata = { name: 'argocd-cm', namespace: 'argocd' };
  const settings = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { url: 'https://argo.example' } };
  mkdirSync(join(folder, 'argocd'));
  writeFileSync(join(folder, 'argocd-cm.yaml'), stringify(settings));
  for (const file of ['kustomization.yaml', 'argocd-cm.yaml'])
    writeFileSync(join(folder, 'argocd', file), readFileSync(join(CONFIG, file)));
  const kustomization = { resources: ['argocd-cm.yaml'], components: ['argocd'] };
  writeFileSync(join(folder, 'kustomization.yaml'), stringify(kustomization));
  const kubectl = await new Assets().path('kubectl');
  const { data } = parse(execFileSync(kubectl, ['kustomize', folder], { encoding: 'utf8' }));
  const keys = checkedKinds().map(({ group, kind }) => `resource.customizations.health.${group}_${kind}`);
  expect(Object.keys(data).toSorted()).toEqual([...keys, 'url'].toSorted());
  for (const { group, kind } of checkedKinds())
    expect(data[`resource.customizations.health.${group}_${kind}`]).toBe(
      readFileSync(join(CONFIG, checkPath({ group, kind })), 'utf8'),
    );
});
