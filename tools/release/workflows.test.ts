import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { field } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { PACKAGES } from '../build/build.ts';
import { releaseProblems } from './version.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDER = `${ROOT}.github/workflows/`;
const TARGETS = new Set(
  [...readFileSync(`${ROOT}Makefile`, 'utf8').matchAll(/^([a-z-]+):/gm)].map(([, target]) => target),
);

/** Permissions that a job may have. Anything else needs a reason, and an entry here. */
const ALLOWED: Readonly<Record<string, object>> = {
  'ci.yml/check': { contents: 'read' },
  'ci.yml/test': { contents: 'read' },
  'release.yml/ci': { contents: 'read' },
  'release.yml/build': { contents: 'read', 'id-token': 'write', attestations: 'write' },
  'release.yml/npm': { 'id-token': 'write' },
  'release.yml/image': {
    contents: 'read',
    packages: 'write',
    'id-token': 'write',
    attestations: 'write',
  },
  'release.yml/github-release': { contents: 'write', 'id-token': 'write' },
};

interface Workflow {
  readonly permissions: object;
  readonly jobs: Readonly<Record<string, Job>>;
}

interface Job {
  readonly permissions?: object;
  readonly uses?: string;
  readonly 'timeout-minutes'?: number;
  readonly steps?: readonly Readonly<Record<string, unknown>>[];
}

const files = readdirSync(FOLDER);
const textOf = (file: string) => readFileSync(FOLDER + file, 'utf8');
const workflowOf = (file: string): Workflow => parse(textOf(file));
const stepsOf = (file: string) => Object.values(workflowOf(file).jobs).flatMap(({ steps = [] }) => steps);

test('there are workflows for changes and for releases', () => {
  expect(files.toSorted()).toEqual(['ci.yml', 'release.yml']);
});

describe.each(files)('%s', (file) => {
  test('calls make targets that exist', () => {
    const called = stepsOf(file).flatMap(({ run }) => [...String(run ?? '').matchAll(/\bmake ([a-z-]+)/g)]);
    for (const [, target] of called) expect(TARGETS).toContain(target);
    expect(called.length).toBeGreaterThan(2);
  });

  test('has no permissions by default, and only those that a job needs', () => {
    const { permissions, jobs } = workflowOf(file);
    expect(permissions).toEqual({});
    for (const [name, job] of Object.entries(jobs))
      expect(job.permissions, name).toEqual(ALLOWED[`${file}/${name}`]);
  });

  test('pins every action by commit, with its version in a comment', () => {
    const actions = textOf(file).match(/^.*\buses: .*$/gm) ?? [];
    for (const line of actions)
      expect(line).toMatch(
        /uses: (\.\/\.github\/workflows\/ci\.yml|[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/,
      );
  });

  test('keeps no credentials in the checkout, and limits each job', () => {
    for (const step of stepsOf(file))
      if (String(step.uses).startsWith('actions/checkout@'))
        expect(step).toMatchObject({ with: { 'persist-credentials': false } });
    for (const job of Object.values(workflowOf(file).jobs))
      if (job.uses === undefined) expect(job['timeout-minutes']).toBeGreaterThan(0);
  });

  test('passes no expression to a shell, where a name of a branch could be code', () => {
    for (const { run } of stepsOf(file)) expect(String(run ?? '')).not.toContain('${{');
  });

  test('uses no secret', () => {
    expect(textOf(file)).not.toContain('secrets.');
  });
});

describe('the release workflow', () => {
  const lines = stepsOf('release.yml').map(({ run, uses }) => String(run ?? uses));
  const jobs = workflowOf('release.yml').jobs;

  test('tests, builds, attests, publishes and signs, in this order', () => {
    const needs = Object.entries(jobs).map(([name, job]) => [name, field(job, 'needs')]);
    expect(needs).toEqual([
      ['ci', undefined],
      ['build', 'ci'],
      ['npm', 'build'],
      ['image', 'build'],
      ['github-release', ['npm', 'image']],
    ]);
    for (const step of ['npm publish', 'cosign sign ', 'cosign sign-blob', 'cosign attest', 'make sbom'])
      expect(lines.some((line) => line.includes(step))).toBe(true);
    expect(lines.filter((line) => line.startsWith('actions/attest-build-provenance@'))).toHaveLength(2);
  });

  test('publishes every package, each after those that it imports', () => {
    const publish = lines.find((line) => line.includes('npm publish'));
    expect(publish).toContain(`for name in ${PACKAGES.join(' ')}; do`);
  });

  test('reads no cache, which another run could have changed', () => {
    expect(textOf('release.yml')).not.toMatch(/actions\/cache@|cache: (npm|true)/);
  });
});

describe('make release-check', () => {
  const versions = new Map([
    ['@vmwright/core', '1.2.3'],
    ['@vmwright/operator', '1.2.3'],
  ]);

  test('passes if packages and changelog have the version of the tag', () => {
    expect(releaseProblems('v1.2.3', versions, '# Changelog\n\n## 1.2.3 (2026-01-01)\n')).toEqual([]);
  });

  test('lists packages and changelog with another version', () => {
    const mixed = new Map([...versions, ['@vmwright/core', '1.2.2']]);
    expect(releaseProblems('v1.2.3', mixed, '## Unreleased\n\n## 1.2.30\n')).toEqual([
      '@vmwright/core has the version 1.2.2 in its package.json, not 1.2.3',
      'CHANGELOG.md has no section "## 1.2.3"',
    ]);
  });

  test('rejects a tag that is no version', () => {
    expect(releaseProblems('latest', versions, '')).toEqual([
      'the tag "latest" must be v and a semantic version, such as v1.2.3',
    ]);
  });
});
