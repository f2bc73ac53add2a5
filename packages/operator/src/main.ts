#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
import { parseArgs } from 'node:util';
import { jsonLogger, manifestYaml, stopSignal, nodeWorld as world } from '@vmwright/runtime';
import { clusterAccess } from './access.ts';
import { manifests } from './manifests.ts';
import { runOperator } from './operator.ts';
import { listOrphans, orphanTable } from './orphans.ts';
import { settingsFrom } from './settings/settings.ts';
import { parseList } from './settings/values.ts';

const USAGE = `vmwright: Kubernetes operator for virtual machines on vSphere and in a private cloud

  vmwright run [flags]          runs the operator until SIGTERM or SIGINT
  vmwright orphans [flags]      lists machines whose VM or VmGroup does not exist; takes the same flags and environment variables as run
  vmwright manifests [flags]    prints the CRDs, roles, webhooks and network policies to apply before the operator starts`;

const [command, ...args] = process.argv.slice(2);
try {
  switch (command) {
    case 'run': {
      await runOperator(world, await clusterAccess(world), settingsFrom(args, process.env), stopSignal());
      break;
    }
    case 'orphans': {
      const settings = settingsFrom(args, process.env);
      const log = jsonLogger({ clock: world, level: settings.logLevel });
      const rows = await listOrphans(world, await clusterAccess(world), settings, log, stopSignal());
      console.log(orphanTable(rows, world.now()));
      break;
    }
    case 'manifests': {
      const { values } = parseArgs({
        args,
        options: {
          namespace: { type: 'string', default: 'vmwright-system' },
          namespaces: { type: 'string' },
          'webhook-url': { type: 'string' },
          'inject-ca-from': { type: 'string' },
          'api-servers': { type: 'string' },
        },
      });
      const { crds, rbac, webhooks, networkPolicies } = manifests({
        namespace: values.namespace,
        namespaces: parseList(values.namespaces),
        webhookUrl: values['webhook-url'],
        injectCaFrom: values['inject-ca-from'] || undefined,
        apiServers: parseList(values['api-servers']),
      });
      console.log(await manifestYaml([...crds, ...rbac, ...webhooks, ...networkPolicies]));
      break;
    }
    case undefined:
    case 'help':
    case '--help':
      console.log(USAGE);
      break;
    default:
      console.error(USAGE);
      process.exitCode = 2;
  }
} catch (error) {
  // Prints no stack trace, because most errors at the start are about settings.
  console.error(`vmwright: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
