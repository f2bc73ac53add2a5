import {
  crdYaml,
  defineKind,
  generationChanged,
  kubeconfigAccess,
  Manager,
  schema,
  stopSignal,
  nodeWorld as world,
} from '@vmwright/runtime';

const Greeting = defineKind({
  group: 'example.vmwright.dev',
  version: 'v1',
  kind: 'Greeting',
  plural: 'greetings',
  spec: schema.object({ name: schema.string({ minLength: 1, description: 'Name to greet' }) }),
  status: schema.object({ text: schema.string() }),
  columns: [{ name: 'TEXT', type: 'string', jsonPath: '.status.text' }],
});

if (process.argv[2] === 'crd') {
  console.log(await crdYaml(Greeting));
} else {
  const access = await kubeconfigAccess({ world });
  const manager = new Manager({ world, access, name: 'greeter', election: { name: 'greeter' } });
  manager.control({
    for: Greeting,
    predicate: generationChanged,
    reconcile: async (greeting, { setStatus }) => {
      await setStatus(greeting, { text: `Hello, ${greeting.spec.name}!` });
    },
  });
  await manager.run(stopSignal());
}
