import { expect, test } from 'vitest';
import { isValidAt } from '../../../test/webhook-model.ts';
import { isSignedBy } from '../../pki/pem.ts';
import { authorityName } from './issuer.ts';
import { LIFETIMES, type PlanInput, planCertificates } from './plan.ts';
import { type CertificateState, dataOf, EMPTY_STATE, repaired, stateIn } from './state.ts';

const NOW = Date.UTC(2030, 0, 1);
const YEAR = LIFETIMES.servingMs;

function at(now: number, more: Partial<PlanInput> = {}): PlanInput {
  return {
    now,
    lifetimes: LIFETIMES,
    commonName: 'x webhooks',
    names: ['a.b.svc'],
    isSettled: () => false,
    ...more,
  };
}

function next(state: CertificateState, input: PlanInput): CertificateState {
  const plan = planCertificates(state, input);
  if (plan === undefined) throw new Error('nothing was planned');
  return plan.next;
}

const first = next(EMPTY_STATE, at(NOW));

test('the first plan creates a CA for ten years and a certificate for one year', () => {
  const { authorities, leaf } = stateIn(dataOf(first));
  expect(authorities).toHaveLength(1);
  expect(authorities[0]?.validToDate.getTime()).toBe(NOW + 10 * YEAR);
  expect(leaf?.x509.validToDate.getTime()).toBe(NOW + YEAR);
  expect(leaf?.x509.checkHost('a.b.svc')).toBe('a.b.svc');
  expect(planCertificates(stateIn(dataOf(first)), at(NOW))).toBeUndefined();
});

test('a certificate is renewed by its CA when a third of its lifetime is left, or after its expiry', () => {
  expect(planCertificates(first, at(NOW + (YEAR * 2) / 3 - 1_000))).toBeUndefined();
  for (const now of [NOW + (YEAR * 2) / 3, NOW + 2 * YEAR]) {
    const renewed = next(first, at(now));
    expect(renewed.authorities).toEqual(first.authorities);
    expect(renewed.leaf?.x509.validToDate.getTime()).toBe(now + YEAR);
  }
});

test('an old CA issues a last certificate, and a new CA takes over once API servers trust it', () => {
  const due = NOW + 8 * YEAR;
  const both = next(first, at(due));
  const [created, old] = both.authorities;
  expect(old).toBe(first.authorities[0]);
  expect(both.leaf?.authority).toBe(old);
  expect(both.leaf?.x509.validToDate.getTime()).toBe(due + YEAR);
  expect(planCertificates(both, at(due + 1_000))).toBeUndefined();
  // Even an old certificate is kept, because a certificate of the new CA might not be trusted yet.
  expect(planCertificates(both, at(due + (YEAR * 5) / 6))).toBeUndefined();
  const { leaf } = next({ ...both, signer: undefined }, at(due + 1_000));
  expect(leaf?.certificate).toBe(both.leaf?.certificate);
  const after = next(both, at(due + 2_000, { isSettled: () => true }));
  expect(after.leaf?.authority).toBe(created);
  expect(after.authorities).toEqual([created, old]);
});

test('without the CA key the certificate is kept and a new CA is created beside the old one', () => {
  const { 'ca.key': _, ...data } = dataOf(first);
  const saved = next(stateIn(data), at(NOW));
  expect(saved.authorities).toHaveLength(2);
  expect(saved.leaf?.certificate).toBe(first.leaf?.certificate);
});

test('certificates from a replica with a clock that is a year ahead are valid at the correct time', () => {
  const ahead = next(first, at(NOW + YEAR));
  const fresh = next(EMPTY_STATE, at(NOW + YEAR));
  for (const { leaf, authorities } of [ahead, fresh]) {
    expect(leaf && isValidAt(leaf.x509, NOW)).toBe(true);
    expect(authorities.every((each) => isValidAt(each, NOW))).toBe(true);
  }
  expect(planCertificates(ahead, at(NOW))).toBeUndefined(); // replicas with a correct clock keep these certificates
});

test('replicas with different server names do not keep replacing the certificate', () => {
  const both = next(first, at(NOW, { names: ['c.d.svc', '10.0.0.1'] }));
  for (const names of [['a.b.svc'], ['c.d.svc', '10.0.0.1']])
    expect(planCertificates(both, at(NOW, { names }))).toBeUndefined();
});

test('a damaged certificate Secret is repaired from the last known state, or replaced if no state is known', () => {
  for (const key of ['tls.crt', 'tls.key', 'ca.crt', 'ca.key']) {
    const found = stateIn({ ...dataOf(first), [key]: 'c3BvaWx0' });
    expect(dataOf(repaired(found, first)), key).toEqual(dataOf(first));
    const alone = next(repaired(found, undefined), at(NOW));
    const [newest] = alone.authorities;
    expect(alone.signer, key).toBeDefined();
    expect(
      newest &&
        alone.leaf &&
        alone.authorities.some((each) => alone.leaf && isSignedBy(alone.leaf.x509, each)),
      key,
    ).toBe(true);
  }
  expect(repaired(undefined, first)).toBe(first);
});

test('the common name of a CA is valid and unique even for a long program name', () => {
  expect(authorityName('vmwright')).toBe('vmwright webhooks');
  const [a, b] = [`${'x'.repeat(200)}a`, `${'x'.repeat(200)}b`].map(authorityName);
  expect(a).not.toBe(b);
  for (const commonName of [a ?? '', b ?? ''])
    expect(next(EMPTY_STATE, at(NOW, { commonName })).leaf).toBeDefined();
});
