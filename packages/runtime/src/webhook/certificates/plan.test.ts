import { expect, test } from 'vitest';
import { isValidAt } from '../../../test/webhook-model.ts';
import { isSignedBy } from '../../pki/pem.ts';
import { dataOf, type Held, heldIn, mended, NOTHING } from './held.ts';
import { authorityName } from './keeper.ts';
import { type Circumstances, LIFETIMES, planned } from './plan.ts';

const NOW = Date.UTC(2030, 0, 1);
const YEAR = LIFETIMES.servingMs;

function at(now: number, more: Partial<Circumstances> = {}): Circumstances {
  return {
    now,
    lifetimes: LIFETIMES,
    commonName: 'x webhooks',
    names: ['a.b.svc'],
    isSettled: () => false,
    ...more,
  };
}

function next(held: Held, circumstances: Circumstances): Held {
  const plan = planned(held, circumstances);
  if (plan === undefined) throw new Error('nothing was planned');
  return plan.next;
}

const first = next(NOTHING, at(NOW));

test('at first there is an authority for ten years and a certificate for one, which the Secret carries whole', () => {
  const { authorities, leaf } = heldIn(dataOf(first));
  expect(authorities).toHaveLength(1);
  expect(authorities[0]?.validToDate.getTime()).toBe(NOW + 10 * YEAR);
  expect(leaf?.x509.validToDate.getTime()).toBe(NOW + YEAR);
  expect(leaf?.x509.checkHost('a.b.svc')).toBe('a.b.svc');
  expect(planned(heldIn(dataOf(first)), at(NOW))).toBeUndefined();
});

test('a certificate is renewed by its authority when a third of its life is left, and at once when it has expired', () => {
  expect(planned(first, at(NOW + (YEAR * 2) / 3 - 1_000))).toBeUndefined();
  for (const now of [NOW + (YEAR * 2) / 3, NOW + 2 * YEAR]) {
    const renewed = next(first, at(now));
    expect(renewed.authorities).toEqual(first.authorities);
    expect(renewed.leaf?.x509.validToDate.getTime()).toBe(now + YEAR);
  }
});

test('an authority with a fifth of its life left issues once more and makes room; the new one issues when it is settled', () => {
  const due = NOW + 8 * YEAR;
  const beside = next(first, at(due));
  const [created, old] = beside.authorities;
  expect(old).toBe(first.authorities[0]);
  expect(beside.leaf?.authority).toBe(old);
  expect(beside.leaf?.x509.validToDate.getTime()).toBe(due + YEAR);
  expect(planned(beside, at(due + 1_000))).toBeUndefined();
  // Even a certificate that is old is kept: better that than one which is not trusted.
  expect(planned(beside, at(due + (YEAR * 5) / 6))).toBeUndefined();
  const { leaf } = next({ ...beside, signer: undefined }, at(due + 1_000));
  expect(leaf?.certificate).toBe(beside.leaf?.certificate);
  const after = next(beside, at(due + 2_000, { isSettled: () => true }));
  expect(after.leaf?.authority).toBe(created);
  expect(after.authorities).toEqual([created, old]);
});

test('without the key, the certificate is kept and a new authority is made beside the old one', () => {
  const { 'ca.key': _, ...data } = dataOf(first);
  const saved = next(heldIn(data), at(NOW));
  expect(saved.authorities).toHaveLength(2);
  expect(saved.leaf?.certificate).toBe(first.leaf?.certificate);
});

test('what a replica with a clock that is a year ahead makes is valid now', () => {
  const ahead = next(first, at(NOW + YEAR));
  const fresh = next(NOTHING, at(NOW + YEAR));
  for (const { leaf, authorities } of [ahead, fresh]) {
    expect(leaf && isValidAt(leaf.x509, NOW)).toBe(true);
    expect(authorities.every((each) => isValidAt(each, NOW))).toBe(true);
  }
  expect(planned(ahead, at(NOW))).toBeUndefined(); // and those with the right time leave it at that
});

test('replicas with different names do not replace the certificate in turn', () => {
  const both = next(first, at(NOW, { names: ['c.d.svc', '10.0.0.1'] }));
  for (const names of [['a.b.svc'], ['c.d.svc', '10.0.0.1']])
    expect(planned(both, at(NOW, { names }))).toBeUndefined();
});

test('what is spoilt is mended from memory, and from nothing where there is none', () => {
  for (const key of ['tls.crt', 'tls.key', 'ca.crt', 'ca.key']) {
    const found = heldIn({ ...dataOf(first), [key]: 'c3BvaWx0' });
    expect(dataOf(mended(found, first)), key).toEqual(dataOf(first));
    const alone = next(mended(found, undefined), at(NOW));
    const [newest] = alone.authorities;
    expect(alone.signer, key).toBeDefined();
    expect(
      newest &&
        alone.leaf &&
        alone.authorities.some((each) => alone.leaf && isSignedBy(alone.leaf.x509, each)),
      key,
    ).toBe(true);
  }
  expect(mended(undefined, first)).toBe(first);
});

test('the common name of an authority fits into a certificate, and differs for programs of long names', () => {
  expect(authorityName('vmwright')).toBe('vmwright webhooks');
  const [a, b] = [`${'x'.repeat(200)}a`, `${'x'.repeat(200)}b`].map(authorityName);
  expect(a).not.toBe(b);
  for (const commonName of [a ?? '', b ?? ''])
    expect(next(NOTHING, at(NOW, { commonName })).leaf).toBeDefined();
});
