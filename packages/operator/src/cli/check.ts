import { jsonLogger, messageOf, nodeWorld, stopSignal, wait } from '@vmwright/runtime';
import type { Command } from 'commander';
import type { Flags } from '../settings/flags.ts';
import { loadSettings, type Settings } from '../settings/settings.ts';
import { parseTime } from '../settings/values.ts';
import { checkBackends, checkDatabase } from './checks/backends.ts';
import { checkedControllers } from './checks/checked-controllers.ts';
import { checkCrds } from './checks/crds.ts';
import { checkPermissions } from './checks/permissions.ts';
import { type CheckResult, failed, passed } from './checks/result.ts';
import { checkWebhooks } from './checks/webhooks.ts';
import { type Cluster, openCluster } from './cluster.ts';
import { textAt } from './fields.ts';
import { clusterOptions, isJson, isSet, textOption } from './options.ts';
import { printResult } from './output.ts';
import { renderChecks } from './render/check.ts';

/** Pause between two runs of all checks, if --wait is given. */
const REPEAT_MS = 1_000;

/** `vmwright check`: prints one line per check, and the remedy of each failed check. Exit code 1 if a check fails. */
export async function check(flags: Flags, command: Command): Promise<void> {
  const settings = await loadSettings(flags, process.env);
  const waitMs = parseTime('--wait', textOption(command, 'wait') ?? '0s', 0);
  const signal = stopSignal();
  const deadline = nodeWorld.monotonic() + waitMs;
  for (;;) {
    const results = await runChecks(settings, command, signal);
    const isPassed = results.every(({ state }) => state !== 'failed');
    if (isPassed || nodeWorld.monotonic() >= deadline) {
      printResult(isJson(command), results, (paint) => renderChecks(results, paint));
      process.exit(isPassed ? 0 : 1); // an open connection to a backend that does not respond would keep the process alive
    }
    await wait(nodeWorld, REPEAT_MS, signal);
  }
}

async function runChecks(
  settings: Settings,
  command: Command,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  const options = clusterOptions(command);
  const log = jsonLogger({ clock: nodeWorld, level: 'error' });
  const database = () => checkDatabase(textOption(command, 'mirrorConfig'), process.env, signal);
  let cluster: Cluster | undefined;
  try {
    cluster = await openCluster(options);
    const text = await cluster.client.raw('/version', { signal });
    const version = textAt(JSON.parse(text), 'gitVersion');
    const account = command.getOptionValue('serviceAccount') === undefined ? undefined : accountOf(command);
    const controllers = await checkedControllers(cluster.client, settings, signal);
    return [
      passed('cluster', `Kubernetes ${version} answers`),
      ...(await checkCrds(cluster.client, settings, controllers, signal)),
      ...(await checkPermissions(cluster.client, settings, controllers, account, signal)),
      ...(await checkWebhooks(cluster.client, settings, controllers, signal)),
      ...(await checkBackends(settings, log, signal)),
      ...(await database()),
    ];
  } catch (error) {
    signal.throwIfAborted();
    const remedy = 'check the kubeconfig and the context (`kubectl cluster-info`)';
    return [
      failed('cluster', messageOf(error), remedy),
      ...(await checkBackends(settings, log, signal)),
      ...(await database()),
    ];
  } finally {
    await cluster?.[Symbol.asyncDispose]();
  }
}

function accountOf(command: Command): string {
  return isSet(command, 'serviceAccount')
    ? 'vmwright'
    : (textOption(command, 'serviceAccount') ?? 'vmwright');
}
