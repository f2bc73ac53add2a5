import { condition, freePort } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { defineRope, ropeRules } from '../../test/rope.ts';
import { listOf, manifestsFor, replica, waitForTrust } from '../../test/webhook-manager.ts';
import { Lease } from '../kind/builtin/lease.ts';
import { microTime } from '../kind/time.ts';
import { conversion } from './conversion.ts';

const GROUP = 'webhook-start-test.vmwright.dev';
const Rope = defineRope(GROUP);
const OldRope = Rope.at('v1beta1');
const NAME = 'webhook-start-test';
const CRD = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ropes.${GROUP}`;

test('conversion webhooks run on a standby replica, and start before a controller lists objects that need conversion', async ({
  cluster,
  namespace,
}) => {
  await using client = await connect(cluster.kubeconfig);
  const port = await freePort();
  await cluster.apply(listOf(manifestsFor(NAME, port, [conversion(Rope, ropeRules)])));
  await using _ = { [Symbol.asyncDispose]: () => cluster.api.delete(CRD) };
  await cluster.waitFor(CRD, (crd) => condition(crd, 'Established') === 'True');
  const now = microTime(Date.now());
  await client.create(Lease, {
    metadata: { namespace, name: NAME },
    spec: { holderIdentity: 'another', leaseDurationSeconds: 3600, acquireTime: now, renewTime: now },
  });
  {
    const election = { name: NAME, namespace };
    await using standby = await replica(
      cluster.kubeconfig,
      { name: NAME, namespace, port, election },
      (manager) => manager.convert(Rope, ropeRules),
    );
    await standby.serving;
    await waitForTrust(cluster, [CRD]);
    // Right after a change of the CRD, some requests fail: the API server responds with 503, or does not know the
    // caBundle yet.
    const rope = { metadata: { namespace, name: 'r' }, spec: { length: '7m' } };
    const apply = () => client.apply(OldRope, rope);
    await expect.poll(() => apply().then(() => 'applied', String)).toBe('applied');
    expect((await client.get(Rope, { namespace, name: 'r' })).spec).toEqual({ meters: 7 });
    expect(standby.lines).not.toContainEqual(expect.objectContaining({ msg: 'Became leader' }));
  }

  // No conversion webhook runs now. A replica can list the old version only if its own webhook starts first.
  const reconciled = Promise.withResolvers<string>();
  await using _acting = await replica(
    cluster.kubeconfig,
    { name: NAME, namespace, port, namespaces: [namespace] },
    (manager) => {
      manager.convert(Rope, ropeRules);
      manager.control({ for: OldRope, reconcile: async ({ spec }) => reconciled.resolve(spec.length) });
    },
  );
  expect(await reconciled.promise).toBe('7m');
});
