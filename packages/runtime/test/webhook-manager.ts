import { jsonLogger, type LogLine, nodeWorld, type World } from '@vmwright/core';
import type { Cluster } from '@vmwright/testbed';
import { kubeconfigAccess } from '../src/access/kubeconfig.ts';
import { Manager } from '../src/manager/manager.ts';
import type { ManagerElection, ManagerOptions } from '../src/manager/options.ts';
import type { CertificateOptions } from '../src/webhook/certificates/issuer.ts';
import type { Webhook } from '../src/webhook/endpoints.ts';
import { webhookManifests } from '../src/webhook/manifests.ts';
import type { WebhookOptions } from '../src/webhook/webhooks.ts';

/** Returns the minimal roles of a program with webhooks: for its Secret and for the `caBundle` of its own webhooks. */
export function webhookRoles(name: string, namespace: string, crds: readonly string[]): object[] {
  const subjects = [{ kind: 'ServiceAccount', name: 'default', namespace }];
  const roleRef = (kind: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name });
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  return [
    {
      apiVersion,
      kind: 'Role',
      metadata: { name, namespace },
      rules: [
        { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
        {
          apiGroups: [''],
          resources: ['secrets'],
          resourceNames: [`${name}-webhook-certificate`],
          verbs: ['get', 'patch'],
        },
      ],
    },
    { apiVersion, kind: 'RoleBinding', metadata: { name, namespace }, subjects, roleRef: roleRef('Role') },
    {
      apiVersion,
      kind: 'ClusterRole',
      metadata: { name },
      rules: [
        {
          apiGroups: ['admissionregistration.k8s.io'],
          resources: ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'],
          resourceNames: [name],
          verbs: ['get', 'patch'],
        },
        {
          apiGroups: ['apiextensions.k8s.io'],
          resources: ['customresourcedefinitions'],
          resourceNames: crds,
          verbs: ['get', 'patch'],
        },
      ],
    },
    { apiVersion, kind: 'ClusterRoleBinding', metadata: { name }, subjects, roleRef: roleRef('ClusterRole') },
  ];
}

export function listOf(items: readonly object[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}

/** Returns the manifests for webhooks at this port. */
export function manifestsFor(name: string, port: number, webhooks: readonly Webhook[]) {
  return webhookManifests({ name, webhooks, address: { url: `https://127.0.0.1:${port}` } });
}

/** Starts a replica that runs until it is disposed. */
export async function replica(
  kubeconfig: string,
  options: Pick<ManagerOptions, 'name' | 'status' | 'namespaces'> & {
    readonly port: number;
    /** Namespace of the Secret. */
    readonly namespace: string;
    readonly certificates?: CertificateOptions;
    readonly election?: ManagerElection;
    readonly webhooks?: Partial<WebhookOptions>;
    /** @default `nodeWorld`, the real clocks and network */
    readonly world?: World;
  },
  build: (manager: Manager) => void,
) {
  const { port, namespace, certificates = {}, webhooks = {}, world = nodeWorld, ...rest } = options;
  const access = await kubeconfigAccess({ world, path: kubeconfig });
  const lines: LogLine[] = [];
  const serving = Promise.withResolvers<void>();
  const listeners: ((line: LogLine) => void)[] = [];
  const log = jsonLogger({
    clock: nodeWorld,
    write: (text) => {
      const line: LogLine = JSON.parse(text);
      lines.push(line);
      if (line.msg === 'Serving webhooks') serving.resolve();
      for (const listener of listeners) listener(line);
    },
  });
  const address = { url: `https://127.0.0.1:${port}` };
  const manager = new Manager({
    ...rest,
    world,
    access,
    log,
    webhooks: { address, port, host: '127.0.0.1', namespace, certificates, ...webhooks },
  });
  build(manager);
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  running.catch(() => undefined);
  return {
    manager,
    lines,
    running,
    /** Calls the listener with all log lines, past and future. */
    onLine: (listener: (line: LogLine) => void) => {
      for (const line of lines) listener(line);
      listeners.push(listener);
    },
    /** Resolves when the webhooks are served. */
    serving: serving.promise,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
    },
  };
}

/**
 * Waits until every `clientConfig` in these objects has a `caBundle`. The API server observes the `caBundle` later,
 * through a watch, so a request may still fail or skip the webhook. Callers must therefore also wait until a request
 * reaches the webhook.
 */
export async function waitForTrust(cluster: Cluster, paths: readonly string[]): Promise<void> {
  for (const path of paths)
    await cluster.waitFor(path, (object) => {
      const text = JSON.stringify({ ...object, metadata: undefined });
      return text.split('"clientConfig"').length === text.split('"caBundle"').length;
    });
}
