import type { Planted } from '../planted/planted.ts';

const VM = 'packages/operator/src/vm';
const CLIENT = 'packages/cloud/src/client';
const scenario = 'vm';

/** In the controller of VMs, its sweeper, and the client of the cloud under them. */
export const VM_BUGS: readonly Planted[] = [
  {
    name: 'a machine is asked for without a stored intent',
    file: `${VM}/plan.ts`,
    find: "if (!seen.intended) return { do: 'intend', status: pending(vm, now) };",
    replace: '',
    why: 'who acts on an object that has changed since is refused before it creates',
    scenario,
  },
  {
    name: 'a machine is asked for without a key',
    file: `${VM}/controller.ts`,
    find: 'ours.create(step.server, step.key)',
    replace: 'ours.create(step.server, undefined)',
    why: 'a request that comes late makes another machine',
    scenario,
  },
  {
    name: 'a machine that is made anew has the key of the lost one',
    file: `${VM}/marks.ts`,
    find: 'return recreations === 0 ? uid :',
    replace: 'return recreations >= 0 ? uid :',
    why: 'a key stands for one machine, also when that is gone',
    scenario,
  },
  {
    name: 'the sweeper of VMs lists the objects before the machines',
    file: `${VM}/sweeper.ts`,
    find: 'const servers: Server[] = [];',
    replace: `const servers: Server[] = [];
      const early = new Set<string>();
      for await (const { items } of client.pages(VM, { metadataOnly: true, signal })) for (const uid of uidsOf(items)) early.add(uid);
      for await (const page of cloud.list({ labels: marksOfAll(cluster), signal })) servers.push(...page);
      for (const { id } of strangers(servers, early, namespaces)) await cloud.scoped({ signal, allow: assertMayAct }).delete(id);
      return;`,
    why: 'an object and its machine may have come in between',
    scenario,
  },
  {
    name: 'the sweeper trusts the cache',
    file: `${VM}/sweeper.ts`,
    find: 'if (suspects.length > 0)',
    replace: 'if (suspects.length < 0)',
    why: 'after a watch has fallen silent, the cache lacks objects that are there',
    scenario,
  },
  {
    name: 'there is no sweeper',
    file: `${VM}/sweeper.ts`,
    find: 'for (const { id, name } of due) {',
    replace: 'for (const { id, name } of due.slice(due.length)) {',
    why: 'a request to create may land after the deletion',
    scenario,
  },
  {
    name: 'the sweeper removes what was only just let go',
    file: `${VM}/sweeper.ts`,
    find: 'if (server === undefined || strangers([server], uids, namespaces).length === 0) continue;',
    replace: '',
    why: 'a list is older than what was done since',
    scenario,
  },
  {
    name: 'an object goes without a look for machines by their marks',
    file: `${VM}/servers.ts`,
    find: 'for await (const page of cloud.list({ labels: marksOfOne(uid) }))',
    replace: 'for (const page of [] as Server[][])',
    why: 'an id that was never stored is found by nothing else',
    scenario,
  },
  {
    name: 'an object goes as soon as its machine is being deleted',
    file: `${VM}/controller.ts`,
    find: 'return requeueAfter(MOVING_MS);',
    replace: 'return undefined;',
    why: 'gone means gone',
    scenario,
  },
  {
    name: 'a machine that a list lacks is taken for gone',
    file: `${VM}/inventory.ts`,
    find: 'if (known !== undefined) return known;',
    replace: 'return known ?? { gone: id };',
    why: 'a list may be older than the machine',
    scenario,
  },
  {
    name: 'a name that is taken is refused without asking by whom',
    file: `${VM}/servers.ts`,
    find: 'return ownerOf(server) === vm.metadata.uid ?',
    replace: "return ownerOf(server) === '' ?",
    why: 'after an answer that got lost, it is taken by the machine that we asked for',
    scenario,
  },
  {
    name: 'whoever has the name is adopted',
    file: `${VM}/servers.ts`,
    find: 'return ownerOf(server) === vm.metadata.uid ?',
    replace: "return ownerOf(server) !== '' ?",
    why: "another's machine is not ours because it has the name",
    scenario,
  },
  {
    name: 'a prohibition is believed though the machine is there',
    file: `${VM}/servers.ts`,
    find: 'vm.status?.attempts === undefined ? [] : await serversOf(cloud, vm);',
    replace: '[];',
    why: 'it may have come after the machine, and before its id was stored',
    scenario,
  },
  {
    name: 'a lost machine is made anew unasked',
    file: 'packages/operator/src/annotations.ts',
    find: "return metadata.annotations?.[RECREATE] === 'true';",
    replace: 'return metadata.uid !== undefined;',
    why: 'vmId changes only where that is asked for',
    scenario,
  },
  {
    name: 'a failed machine is removed unasked',
    file: `${VM}/plan.ts`,
    find: "if (server.state === 'failed' && mayRecreate(vm))",
    replace: "if (server.state === 'failed')",
    why: 'somebody may want to see why it failed, or what is on its disk',
    scenario,
  },
  {
    name: 'a machine is said to run while it is made',
    file: `${VM}/plan.ts`,
    find: "{ ...known, opStatus: 'New' }",
    replace: "{ ...known, opStatus: 'Running' }",
    why: 'no success before it is observed',
    scenario,
  },
  {
    name: 'an orphan keeps its marks',
    file: `${VM}/controller.ts`,
    find: "if (policy === 'Orphan') await unlessGone(ours.relabel(id, NO_MARKS));",
    replace: "if (policy === 'Orphan') continue;",
    why: 'the sweeper would remove it',
    scenario,
  },
  {
    name: 'the cloud is written to without asking who leads',
    file: `${VM}/controller.ts`,
    find: 'const ours = cloud.scoped({ signal, allow: context.assertMayAct }); let vm = found;',
    replace: 'const ours = cloud.scoped({ signal, allow: () => undefined });\n    let vm = found;',
    why: 'after a pause of the process the signal is late',
    scenario,
  },
  {
    name: 'what a proxy says is told with the key in it',
    file: `${CLIENT}/requests.ts`,
    find: '(said) => this.#withoutKey(said),',
    replace: '(said) => said,',
    why: 'some repeat what they were sent',
    scenario,
  },
];
