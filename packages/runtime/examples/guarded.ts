import {
  type AdmissionRules,
  admission,
  allow,
  crdOf,
  defineKind,
  deny,
  kubeconfigAccess,
  Manager,
  manifestYaml,
  type ObjectOf,
  rbacOf,
  schema,
  stopSignal,
  webhookManifests,
  nodeWorld as world,
} from '@vmwright/runtime';

const Guest = defineKind({
  group: 'guarded.vmwright.dev',
  version: 'v1',
  kind: 'Guest',
  plural: 'guests',
  spec: schema.object({ name: schema.string() }),
  status: schema.object({ welcome: schema.string() }),
});
const rules: AdmissionRules<ObjectOf<typeof Guest>> = {
  validate: ({ spec }) => (spec.name === 'mallory' ? deny('mallory is not allowed as a guest') : allow()),
};
const [name, namespace, port] = [
  'guarded',
  process.env.NAMESPACE ?? 'default',
  Number(process.env.PORT ?? 9443),
];
const address = { url: `https://127.0.0.1:${port}` }; // in a cluster: { service: { namespace, name } }

if (process.argv[2] === 'manifests') {
  const webhooks = [admission(Guest, rules)];
  const roles = rbacOf({ name, namespace, controllers: [{ for: Guest }], webhooks: { webhooks } });
  console.log(await manifestYaml([crdOf(Guest), ...roles, ...webhookManifests({ name, webhooks, address })]));
} else {
  const access = await kubeconfigAccess({ world });
  const manager = new Manager({ world, access, name, webhooks: { address, port, namespace } });
  manager.admit(Guest, rules);
  manager.control({
    for: Guest,
    reconcile: async (guest, { setStatus }) => {
      await setStatus(guest, { welcome: `Welcome, ${guest.spec.name}!` });
    },
  });
  await manager.run(stopSignal());
}
