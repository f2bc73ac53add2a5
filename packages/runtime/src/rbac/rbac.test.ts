import { test as onCluster } from '@vmwright/testbed/vitest';
import { describe, expect, test } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { waitForPermissions } from '../../test/permissions.ts';
import { ForbiddenError } from '../client/errors.ts';
import { watch } from '../controller/sources.ts';
import { Event } from '../kind/builtin/event.ts';
import { Secret } from '../kind/builtin/secret.ts';
import { crdOf } from '../kind/crd.ts';
import { defineKind } from '../kind/define.ts';
import { foreignKind } from '../kind/kind.ts';
import { object, string } from '../kind/schema/index.ts';
import { manifestYaml } from '../kind/yaml.ts';
import { startManager, waitFor, waitForGone } from '../testing/index.ts';
import { admission } from '../webhook/admission.ts';
import { type Permission, rulesFor } from './permission.ts';
import { type ProgramPermissions, rbacOf } from './rbac.ts';

const Note = defineKind({
  group: 'rbac.vmwright.dev',
  version: 'v1',
  kind: 'Note',
  plural: 'notes',
  spec: object({ text: string() }),
  status: object({ written: string() }),
});
const Node = foreignKind({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', scope: 'Cluster' });

const notes = {
  for: Note,
  owns: [ConfigMap],
  watches: [watch(Secret, () => [])],
  permissions: [{ kind: ConfigMap, verbs: ['patch', 'create'] }] satisfies Permission[],
  finalizer: { name: 'rbac.vmwright.dev/note', finalize: async () => undefined },
};

describe('rules', () => {
  test('rules merge all verbs of a resource, in a stable order', () => {
    const permissions: Permission[] = [
      { kind: Secret, verbs: ['list'] },
      { kind: ConfigMap, verbs: ['watch', 'list'] },
      { kind: Secret, verbs: ['get'], names: ['b', 'a'] },
      { kind: ConfigMap, verbs: ['list', 'create'] },
      { kind: Note, verbs: ['patch'], subresource: 'status' },
    ];
    expect(rulesFor(permissions)).toEqual([
      { apiGroups: [''], resources: ['configmaps'], verbs: ['create', 'list', 'watch'] },
      { apiGroups: [''], resources: ['secrets'], verbs: ['list'] },
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['a', 'b'], verbs: ['get'] },
      { apiGroups: ['rbac.vmwright.dev'], resources: ['notes/status'], verbs: ['patch'] },
    ]);
    expect(rulesFor(permissions.toReversed())).toEqual(rulesFor(permissions));
  });

  test('the role for namespaced objects is bound only in the namespaces that the program watches', () => {
    const objects = rbacOf({
      name: 'noter',
      namespace: 'system',
      namespaces: ['a', 'b'],
      controllers: [notes, { for: Node }],
    });
    const bindings = objects.flatMap(({ kind, metadata }) =>
      kind?.endsWith('Binding') ? [`${kind} ${metadata.namespace ?? '*'} ${metadata.name}`] : [],
    );
    expect(bindings).toEqual([
      'ClusterRoleBinding * noter-cluster',
      'RoleBinding a noter',
      'RoleBinding b noter',
      // Events about cluster-scoped objects, here nodes, are stored in the namespace default.
      'RoleBinding default noter-own',
    ]);
    // If listing objects in a namespace is forbidden, the cache reads the Namespace to see whether it was deleted.
    const cluster = objects.find(({ metadata }) => metadata.name === 'noter-cluster');
    expect(cluster).toMatchObject({
      rules: expect.arrayContaining([
        { apiGroups: [''], resources: ['namespaces'], resourceNames: ['a', 'b'], verbs: ['get'] },
      ]),
    });
  });

  test('rules for Leases, certificates and webhook configurations are limited to their names and namespaces', () => {
    const objects = rbacOf({
      name: 'noter',
      namespace: 'system',
      controllers: [{ for: Note, reads: [Secret] }],
      jobs: [{ reads: [Node], permissions: [{ kind: ConfigMap, verbs: ['delete'] }] }],
      election: { name: 'noter', namespace: 'leases' },
      webhooks: {
        webhooks: [admission(Note, { validate: () => ({ allowed: true }) })],
        configuration: 'notes',
        namespace: 'certificates',
      },
    });
    const rules = (kind: string, namespace?: string) =>
      objects.flatMap((each) =>
        'rules' in each && each.kind === kind && each.metadata.namespace === namespace ? each.rules : [],
      );
    const everywhere = rules('ClusterRole');
    for (const resource of ['nodes', 'secrets', 'notes'])
      expect(everywhere).toContainEqual(
        expect.objectContaining({ resources: [resource], verbs: ['list', 'watch'] }),
      );
    expect(everywhere).toContainEqual(
      expect.objectContaining({ resources: ['configmaps'], verbs: ['delete'] }),
    );
    expect(everywhere).toContainEqual(
      expect.objectContaining({ resources: ['validatingwebhookconfigurations'], resourceNames: ['notes'] }),
    );
    expect(rules('Role', 'leases')).toContainEqual(expect.objectContaining({ resourceNames: ['noter'] }));
    expect(rules('Role', 'certificates')).toContainEqual(
      expect.objectContaining({ resources: ['secrets'], resourceNames: ['noter-webhook-certificate'] }),
    );
    expect(rules('Role', 'system')).toEqual([]);
  });
});

test('the permissions of a controller with the option `role` are in separate roles', () => {
  const objects = rbacOf({
    name: 'noter',
    namespace: 'system',
    controllers: [
      { for: Note, role: 'notes', ownPermissions: [{ kind: ConfigMap, verbs: ['get'], names: ['state'] }] },
      { for: Node },
    ],
    jobs: [{ reads: [Secret], role: 'notes' }],
    election: { name: 'noter' },
  });
  const resourcesOf = (name: string) =>
    objects.flatMap((each) =>
      'rules' in each && each.metadata.name === name
        ? each.rules.flatMap((rule) => ('resources' in rule ? rule.resources : []))
        : [],
    );
  expect(resourcesOf('noter')).toEqual(['nodes', 'events']);
  expect(resourcesOf('noter-own')).toEqual(['leases', 'leases']);
  expect(resourcesOf('noter-notes')).toEqual(['secrets', 'events', 'notes', 'notes/status']);
  expect(resourcesOf('noter-notes-own')).toEqual(['configmaps']);
  const bindings = objects.flatMap((each) => ('roleRef' in each ? [each.roleRef.name] : []));
  expect(bindings).toEqual(['noter', 'noter-own', 'noter-notes', 'noter-notes-own']);
});

onCluster(
  'the generated roles allow what a program declares and nothing else',
  async ({ cluster, namespace }) => {
    const program: ProgramPermissions = {
      name: `noter-${namespace}`,
      namespace,
      controllers: [notes],
      election: { name: 'noter' },
    };
    await cluster.apply(await manifestYaml([crdOf(Note), ...rbacOf(program)]));
    await cluster.kubectl(['wait', '--for=condition=Established', 'crd/notes.rbac.vmwright.dev']);
    const permissions = rbacOf(program).flatMap((each) =>
      'rules' in each
        ? each.rules.flatMap((rule) =>
            'resources' in rule
              ? rule.verbs.map((verb) => ({
                  verb,
                  group: rule.apiGroups.join(),
                  resource: rule.resources[0] ?? '',
                  ...(each.kind === 'Role' && { namespace }),
                  ...(rule.resourceNames && { name: rule.resourceNames[0] ?? '' }),
                }))
              : [],
          )
        : [],
    );
    await waitForPermissions(
      cluster,
      { namespace, name: program.name },
      permissions.filter(({ resource }) => !resource.includes('/')),
    );
    const limited = { kubeconfig: await cluster.kubeconfigFor({ namespace, name: program.name }) };
    await using admin = await connect(cluster.kubeconfig);
    const ref = { namespace, name: 'first' };
    {
      const election = { name: 'noter', namespace };
      await using running = await startManager(limited, { name: 'noter', election }, (manager) => {
        manager.control({
          ...notes,
          reconcile: async (note, { client, setStatus, event }) => {
            const { name, uid = '' } = note.metadata;
            const owner = { apiVersion: 'rbac.vmwright.dev/v1', kind: 'Note', name, uid };
            const ownerReferences = [{ ...owner, controller: true, blockOwnerDeletion: true }];
            const metadata = { namespace, name, ownerReferences };
            await client.apply(ConfigMap, { metadata, data: { text: note.spec.text } });
            event(note, { type: 'Normal', reason: 'Written', action: 'Write', note: 'the text was written' });
            await setStatus(note, { written: note.spec.text });
          },
        });
      });
      await admin.create(Note, { metadata: ref, spec: { text: 'hello' } });
      await waitFor(admin, Note, ref, (note) => note?.status?.written === 'hello');
      expect((await admin.get(ConfigMap, ref)).data).toEqual({ text: 'hello' });
      const { items } = await admin.list(Event, { namespace });
      if (items.length === 0) {
        for await (const event of admin.watch(Event, { namespace })) if (event.type === 'ADDED') break;
      }
      await admin.delete(Note, ref);
      await waitForGone(admin, Note, ref);
      expect(running.log.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
    }
    await using client = await connect(limited.kubeconfig);
    for (const forbidden of [
      () => client.delete(ConfigMap, ref),
      () => client.get(Secret, { namespace, name: 'any' }),
      () => client.create(Note, { metadata: { namespace, name: 'other' }, spec: { text: '' } }),
      () => client.list(Node),
    ])
      await expect(forbidden()).rejects.toThrow(ForbiddenError);
  },
);
