import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { field } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { PACKAGES } from '../build/package-names.ts';
import { releaseProblems } from './version.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDER = `${ROOT}.github/workflows/`;
/** Prerequisites and recipe of each target of the Makefile. */
const TARGETS = new Map(
  [...readFileSync(`${ROOT}Makefile`, 'utf8').matchAll(/^([a-z-]+):([^#\n]*).*\n((?:\t.*\n)*)/gm)].map(
    ([, target = '', prerequisites = '', recipe = '']) => [target, { prerequisites, recipe }] as const,
  ),
);

/** Permissions that a job may have. A further permission needs a reason and an entry here. */
const ALLOWED: Readonly<Record<string, object>> = {
  'ci.yml/check': { contents: 'read' },
  'ci.yml/test': { contents: 'read' },
  'release.yml/version': { contents: 'read' },
  'release.yml/ci': { contents: 'read' },
  'release.yml/build': { contents: 'read' },
  'release.yml/attest': { 'id-token': 'write', attestations: 'write' },
  'release.yml/npm': { 'id-token': 'write' },
  ...Object.fromEntries(
    ['image', 'chart'].map((job) => [
      `release.yml/${job}`,
      { contents: 'read', packages: 'write', 'id-token': 'write', attestations: 'write' },
    ]),
  ),
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
const scriptsOf = ({ steps = [] }: Job) => steps.map(({ run }) => String(run ?? ''));
const targetsIn = (script: string) =>
  [...script.matchAll(/\bmake (?:--silent )?([a-z-]+)/g)].map(([, target]) => target ?? '');

test('there are workflows for changes and for releases', () => {
  expect(files.toSorted()).toEqual(['ci.yml', 'release.yml']);
});

describe.each(files)('%s', (file) => {
  test('the workflow calls make targets that exist', () => {
    const called = Object.values(workflowOf(file).jobs).flatMap(scriptsOf).flatMap(targetsIn);
    expect([...TARGETS.keys()]).toEqual(expect.arrayContaining(called));
    expect(called.length).toBeGreaterThan(2);
  });

  test('the workflow has no permissions by default, and gives each job only those that it needs', () => {
    const { permissions, jobs } = workflowOf(file);
    expect(permissions).toEqual({});
    for (const [name, job] of Object.entries(jobs))
      expect(job.permissions, name).toEqual(ALLOWED[`${file}/${name}`]);
  });

  test('the workflow pins every action by commit, with its version in a comment', () => {
    const actions = textOf(file).match(/^.*\buses: .*$/gm) ?? [];
    for (const line of actions)
      expect(line).toMatch(
        /uses: (\.\/\.github\/workflows\/ci\.yml|[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/,
      );
  });

  test('the workflow keeps no credentials in the checkout, and limits the duration of each job', () => {
    for (const step of stepsOf(file))
      if (String(step.uses).startsWith('actions/checkout@'))
        expect(step).toMatchObject({ with: { 'persist-credentials': false } });
    for (const job of Object.values(workflowOf(file).jobs))
      if (job.uses === undefined) expect(job['timeout-minutes']).toBeGreaterThan(0);
  });

  test('the scripts of the workflow contain no GitHub expressions, because their values could inject code', () => {
    for (const { run } of stepsOf(file)) expect(String(run ?? '')).not.toContain('${{');
  });

  test('the workflow uses no secret', () => {
    expect(textOf(file)).not.toContain('secrets.');
  });
});

describe('release workflow', () => {
  const lines = stepsOf('release.yml').map(({ run, uses }) => String(run ?? uses));
  const jobs = workflowOf('release.yml').jobs;

  test('the release workflow tests, builds, attests, publishes and signs, in this order', () => {
    const needs = Object.entries(jobs).map(([name, job]) => [name, field(job, 'needs')]);
    expect(needs).toEqual([
      ['version', undefined],
      ['ci', 'version'],
      ['build', 'ci'],
      ['attest', 'build'],
      ['npm', 'attest'],
      ['image', 'attest'],
      ['chart', 'image'],
      ['github-release', ['npm', 'chart']],
    ]);
    for (const step of ['npm publish', 'cosign sign ', 'cosign sign-blob', 'cosign attest', 'make sbom'])
      expect(lines.some((line) => line.includes(step))).toBe(true);
    expect(lines.filter((line) => line.startsWith('actions/attest-build-provenance@'))).toHaveLength(3);
  });

  test('the release workflow runs no npm package in a job with a write permission', () => {
    const privileged = Object.entries(jobs).filter(([, { permissions = {} }]) =>
      Object.values(permissions).includes('write'),
    );
    expect(privileged.map(([name]) => name)).toEqual(['attest', 'npm', 'image', 'chart', 'github-release']);
    for (const [name, job] of privileged)
      for (const script of scriptsOf(job)) {
        expect(script, name).not.toMatch(/\bnpm (ci|i|install|exec|run)\b|\bnpx\b/);
        for (const target of targetsIn(script)) expect(npmPackagesOf(target), target).toEqual([]);
      }
  });

  test('the job version of the release workflow runs only make release-check, which needs no npm packages', () => {
    expect(scriptsOf(jobs.version ?? {}).flatMap(targetsIn)).toEqual(['release-check']);
    expect(npmPackagesOf('release-check')).toEqual([]);
    expect(npmPackagesOf('sbom')).toEqual(['$(INSTALLED)']); // shows that npmPackagesOf finds npm packages
  });

  test('the release workflow verifies the signature of the base image before it builds the image', () => {
    const { steps = [] } = jobs.build ?? {};
    const at = (text: string) => steps.findIndex(({ run }) => String(run).includes(text));
    expect(at('make --silent base')).toBeGreaterThan(0);
    expect(at('cosign verify "$BASE"')).toBeGreaterThan(at('make --silent base'));
    expect(at('make image')).toBeGreaterThan(at('cosign verify "$BASE"'));
    expect(steps[at('make image')]?.run).toContain('BASE="$BASE"');
    for (const step of [at('make image'), at('cosign verify "$BASE"')])
      expect(field(steps[step], 'env', 'BASE')).toContain('steps.base.outputs.reference');
  });

  test('the release workflow packages the chart and pushes it to the repository <image>/charts', () => {
    expect(scriptsOf(jobs.build ?? {})).toContain('make chart REPOSITORY="$GITHUB_REPOSITORY"');
    const chart = scriptsOf(jobs.chart ?? {}).join('\n');
    expect(chart).toMatch(/CHARTS=ghcr\.io\/\$\{GITHUB_REPOSITORY,,\}\/charts"/);
    expect(chart).toContain('make push-chart CHARTS="oci://$CHARTS"');
    expect(chart).toContain('cosign sign --yes "$CHARTS/vmwright@$DIGEST"');
  });

  test.each([
    ['v1.2.3', '--tag latest', false],
    ['v1.2.3-rc.1', '--tag next', true],
  ])('the release of %s runs npm publish with %s; prerelease on GitHub: %s', (tag, npmTag, isPrerelease) => {
    const published = commandsOf('npm', 'npm publish', tag);
    expect(published).toHaveLength(PACKAGES.length);
    for (const [index, name] of PACKAGES.entries())
      expect(published[index]).toBe(
        `npm publish ./vmwright-${name}-${tag.slice(1)}.tgz --access public --provenance ${npmTag}`,
      );
    const [created] = commandsOf('github-release', 'gh release create', tag);
    expect(created?.includes('--prerelease')).toBe(isPrerelease);
  });

  /**
   * Runs a script of a job and returns the printed lines. Functions that print their arguments replace the commands npm
   * and gh.
   */
  function commandsOf(job: string, command: string, tag: string): readonly string[] {
    const script = scriptsOf(jobs[job] ?? {}).find((each) => each.includes(command)) ?? '';
    const printing = 'npm() { echo npm "$@"; }\ngh() { echo gh "$@"; }\n';
    const env = { PATH: process.env.PATH, GITHUB_REF_NAME: tag };
    const output = execFileSync('bash', ['--norc', '-euo', 'pipefail', '-c', printing + script], {
      encoding: 'utf8',
      env,
    });
    return output.trimEnd().split('\n');
  }

  /** Returns the npm packages that a make target installs or imports. */
  function npmPackagesOf(target: string): readonly string[] {
    const { prerequisites, recipe } = TARGETS.get(target) ?? { prerequisites: 'unknown target', recipe: '' };
    const programs = [...recipe.matchAll(/\bnode (\S+)/g)].map(([, path]) => join(ROOT, path ?? ''));
    const needed = prerequisites
      .trim()
      .split(/\s+/)
      .filter((each) => each !== '');
    return [...needed, ...programs.flatMap((path) => [...importedPackages(path)])];
  }

  function importedPackages(file: string): readonly string[] {
    const imported = [
      ...readFileSync(file, 'utf8').matchAll(/^(?:import|export) .*?from '([^']+)'|^\} from '([^']+)'/gm),
    ];
    return imported.flatMap(([, one, other]) => {
      const specifier = one ?? other ?? '';
      if (specifier.startsWith('node:')) return [];
      return specifier.startsWith('.') ? importedPackages(join(dirname(file), specifier)) : [specifier];
    });
  }

  test('the release workflow publishes every package, each after the packages that it imports', () => {
    const publish = lines.find((line) => line.includes('npm publish'));
    expect(publish).toContain(`for name in ${PACKAGES.join(' ')}; do`);
  });

  test('the release workflow reads no cache, because another run could have changed it', () => {
    expect(textOf('release.yml')).not.toMatch(/actions\/cache@|cache: (npm|true)/);
  });
});

describe('make release-check', () => {
  const CORE = 'version in packages/core/package.json';
  const versions = new Map([
    [CORE, '1.2.3'],
    ['appVersion in charts/vmwright/Chart.yaml', '1.2.3'],
  ]);

  test('make release-check passes if packages and changelog have the version of the tag', () => {
    expect(releaseProblems('v1.2.3', versions, '# Changelog\n\n## 1.2.3 (2026-01-01)\n')).toEqual([]);
  });

  test('make release-check lists files with another version and a missing section of the changelog', () => {
    const mixed = new Map([...versions, [CORE, '1.2.2']]);
    expect(releaseProblems('v1.2.3', mixed, '## Unreleased\n\n## 1.2.30\n\n## 1.2.3-rc.1\n')).toEqual([
      'the version in packages/core/package.json is 1.2.2, not 1.2.3',
      'CHANGELOG.md has no section "## 1.2.3"',
    ]);
  });

  test('make release-check passes for a pre-release if packages and changelog have its version', () => {
    const candidates = new Map([...versions.keys()].map((key) => [key, '1.2.3-rc.1']));
    expect(releaseProblems('v1.2.3-rc.1', candidates, '## 1.2.3-rc.1\n')).toEqual([]);
    expect(releaseProblems('v1.2.3-rc.1', versions, '## 1.2.3\n')).toHaveLength(3);
  });

  test.each(['latest', 'v1.2', 'v1.2.3-', 'v1.2.3-rc..1', 'v1.2.3-01', 'v1.2.3+build'])(
    'make release-check rejects the tag %s, which is invalid',
    (tag) => {
      expect(releaseProblems(tag, versions, '')).toEqual([
        `the tag "${tag}" must be v and a semantic version, such as v1.2.3 or v1.2.3-rc.1`,
      ]);
    },
  );
});
