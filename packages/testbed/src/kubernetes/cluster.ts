import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemCode } from '@vmwright/core';
import { Assets } from '../assets/assets.ts';
import { TestbedError } from '../errors.ts';
import { type Result, run, tryRun } from '../process/run.ts';
import { RunSupervisor } from '../process/run-supervisor.ts';
import { Api, ApiError, type KubeObject } from './api.ts';
import { type Access, readKubeconfig, writeKubeconfig } from './kubeconfig.ts';

export interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
}

/** A private namespace on a shared cluster. It is deleted when disposed. */
export interface Namespace extends AsyncDisposable {
  readonly name: string;
}

/** Client for a running cluster. */
export class Cluster implements AsyncDisposable {
  /** The administrator's kubeconfig file. */
  readonly kubeconfig: string;
  readonly access: Access;
  /** API client with administrator rights. */
  readonly api: Api;
  readonly #kubectl: string;

  private constructor(kubeconfig: string, access: Access, kubectl: string) {
    this.kubeconfig = kubeconfig;
    this.access = access;
    this.api = new Api(access);
    this.#kubectl = kubectl;
  }

  static async connect(kubeconfig: string): Promise<Cluster> {
    return new Cluster(kubeconfig, await readKubeconfig(kubeconfig), await new Assets().path('kubectl'));
  }

  /** Runs kubectl as administrator, or with `options.kubeconfig`. Throws an error with kubectl's output if it fails. */
  kubectl(args: readonly string[], options: KubectlOptions = {}): Promise<Result> {
    return run(this.#kubectl, args, this.#runOptions(options));
  }

  /** Like `kubectl`, but returns the result of a failed command, for tests that expect a rejection. */
  tryKubectl(args: readonly string[], options: KubectlOptions = {}): Promise<Result> {
    return tryRun(this.#kubectl, args, this.#runOptions(options));
  }

  /** Applies manifests with server-side apply. @param manifests YAML or JSON text, or paths of files */
  async apply(manifests: string | readonly string[]): Promise<void> {
    const apply = ['apply', '--server-side', '--force-conflicts', '--field-manager=vmwright-testbed'];
    if (typeof manifests === 'string') await this.kubectl([...apply, '-f', '-'], { input: manifests });
    else await this.kubectl([...apply, ...manifests.flatMap((path) => ['-f', path])]);
  }

  /**
   * Writes a kubeconfig for a service account and returns its path. Programs that use it have only the permissions that
   * their RBAC rules grant.
   * @param server URL of the API server, or of a proxy in front of it.
   * @default the URL in the administrator's kubeconfig
   */
  async kubeconfigFor({ namespace, name }: ServiceAccount, server = this.access.server): Promise<string> {
    const token = await this.api.token(namespace, name);
    const path = join(await RunSupervisor.shared.folder('kubeconfig'), `${namespace}-${name}`);
    return writeKubeconfig(path, { ...this.access, server, as: { token } });
  }

  /**
   * Creates a namespace. Waits for two objects that controllers create in it: the default service account, and the
   * ConfigMap with the CA. Otherwise, a test that watches the namespace would see these objects appear.
   */
  async namespace(prefix = 'test'): Promise<Namespace> {
    const { metadata } = await this.api.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { generateName: `${prefix}-` },
    });
    const path = `/api/v1/namespaces/${metadata.name}`;
    await this.waitFor(`${path}/serviceaccounts/default`, () => true);
    await this.waitFor(`${path}/configmaps/kube-root-ca.crt`, () => true);
    return {
      name: metadata.name,
      // Does not wait until the namespace is gone, because its name is never reused.
      [Symbol.asyncDispose]: () => this.api.delete(path),
    };
  }

  /** Watches one object until it satisfies the predicate, and returns it. */
  async waitFor(
    path: string,
    predicate: (object: KubeObject) => boolean,
    options: WaitOptions = {},
  ): Promise<KubeObject> {
    let last: KubeObject | undefined;
    const found = await this.#watchUntil(options, async (signal) => {
      for await (const { type, object } of this.api.watch(watchPath(path), signal)) {
        last = object;
        if (type !== 'DELETED' && predicate(object)) return object;
      }
      return undefined;
    });
    if (found !== undefined) return found;
    const state = JSON.stringify({ ...last, data: undefined }); // omits the data of Secrets
    throw new TestbedError('PART_NOT_READY', `timed out waiting for ${path}; last state: ${state}`);
  }

  /** Waits until the object does not exist. */
  async waitForGone(path: string, options: WaitOptions = {}): Promise<void> {
    const gone = await this.#watchUntil(options, async (signal) => {
      const object = await this.api.get(path).catch((error) => {
        if (!(error instanceof ApiError && error.status === 404)) throw error;
      });
      if (object === undefined) return true;
      const from = `${watchPath(path)}&resourceVersion=${object.metadata.resourceVersion}`;
      for await (const { type } of this.api.watch(from, signal)) if (type === 'DELETED') return true;
      return undefined;
    });
    if (gone === undefined)
      throw new TestbedError('PART_NOT_READY', `timed out waiting for the deletion of ${path}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api[Symbol.asyncDispose]();
  }

  /** Retries when a watch ends or fails, because the server may be restarting or a new CRD may not be served yet. */
  async #watchUntil<T>(
    { timeoutMs = 60_000 }: WaitOptions,
    attempt: (signal: AbortSignal) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const signal = AbortSignal.timeout(timeoutMs);
    while (!signal.aborted) {
      try {
        const found = await attempt(signal);
        if (found !== undefined) return found;
      } catch (error) {
        if (!signal.aborted && isFinal(error)) throw error;
      }
      await sleep(200, undefined, { signal }).catch(() => undefined);
    }
    return undefined;
  }

  #runOptions({ input, kubeconfig = this.kubeconfig }: KubectlOptions) {
    return { env: { ...process.env, KUBECONFIG: kubeconfig }, ...(input !== undefined && { input }) };
  }
}

export interface KubectlOptions {
  readonly input?: string;
  readonly kubeconfig?: string;
}

export interface WaitOptions {
  /** @default 60_000 */
  readonly timeoutMs?: number;
}

/** Returns the path of a watch on one object: its collection with a field selector for its name. */
function watchPath(path: string): string {
  const cut = path.lastIndexOf('/');
  return `${path.slice(0, cut)}?fieldSelector=metadata.name%3D${path.slice(cut + 1)}`;
}

/**
 * Returns whether a retry would be useless, because the server rejects the request, or because the error is neither a
 * response nor a network error.
 */
function isFinal(error: unknown): boolean {
  if (error instanceof ApiError) return [400, 401, 403].includes(error.status);
  return !/^(UND_ERR_|ECONN|EPIPE)/.test(systemCode(error) ?? '');
}
