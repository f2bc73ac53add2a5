#!/usr/bin/env node
import { parseArgs } from 'node:util';
import {
  inClusterAccess,
  kubeconfigAccess,
  manifestYaml,
  stopSignal,
  nodeWorld as world,
} from '@vmwright/runtime';
import { manifests } from './manifests.ts';
import { runOperator } from './operator.ts';
import { settingsFrom } from './settings/settings.ts';
import { listIn } from './settings/values.ts';

const USAGE = `vmwright: one Kubernetes operator for virtual machines, wherever they run

  vmwright run [flags]          runs the operator, until it is asked to stop
  vmwright manifests [flags]    prints what is to be applied to a cluster first`;

const [command, ...args] = process.argv.slice(2);
try {
  switch (command) {
    case 'run': {
      const settings = settingsFrom(args, process.env);
      const isInPod =
        process.env.KUBECONFIG === undefined && process.env.KUBERNETES_SERVICE_HOST !== undefined;
      const access = isInPod ? await inClusterAccess({ clock: world }) : await kubeconfigAccess({ world });
      await runOperator(world, access, settings, stopSignal());
      break;
    }
    case 'manifests': {
      const { values } = parseArgs({
        args,
        options: {
          namespace: { type: 'string', default: 'vmwright-system' },
          namespaces: { type: 'string' },
          'webhook-url': { type: 'string' },
        },
      });
      const { crds, rbac, webhooks } = manifests({
        namespace: values.namespace,
        namespaces: listIn(values.namespaces),
        webhookUrl: values['webhook-url'],
      });
      console.log(await manifestYaml([...crds, ...rbac, ...webhooks]));
      break;
    }
    default:
      console.error(USAGE);
      process.exitCode = command === undefined || command === 'help' || command === '--help' ? 0 : 2;
  }
} catch (error) {
  // A sentence, not a stack: most of what goes wrong here is a setting.
  console.error(`vmwright: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
